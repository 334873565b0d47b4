//! What the clients do.
