//! What lies on the share.
