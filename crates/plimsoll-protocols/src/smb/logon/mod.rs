//! From a fresh connection to a tree of a share.
