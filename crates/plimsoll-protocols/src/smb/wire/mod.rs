//! SMB2 messages as bytes, pure.
