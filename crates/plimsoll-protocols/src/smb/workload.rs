//! An SMB load point as the engine runs it.
