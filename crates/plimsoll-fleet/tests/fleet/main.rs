//! Fleets under one controller: whole runs in virtual time, arbitrary messages, and agents' processes
//! through real launchers.
#![allow(missing_docs, reason = "a test has no readers of its documentation")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod hostile;
mod launchers;
mod simulated;
mod support;
