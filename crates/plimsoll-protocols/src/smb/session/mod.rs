//! The state machine of one client.
