//! The program as its users meet it: the real binary, its messages, its exit codes, its files.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod bad_days;
mod interruption;
mod storage;
mod support;
mod tour;
mod usage;
