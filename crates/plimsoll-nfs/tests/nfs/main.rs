//! The NFS server and what is done with a server before a load.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod server;
mod session4;
mod setup;
