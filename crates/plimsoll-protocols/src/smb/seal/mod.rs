//! Signing and encryption of one session.
