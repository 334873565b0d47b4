//! The reference web server, in this process and in one of its own; a real nginx and a real Caddy; a
//! load that is split up.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod caddy;
mod crews;
mod http2;
mod nginx;
mod process;
mod web;
