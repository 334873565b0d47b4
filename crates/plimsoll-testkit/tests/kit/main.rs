//! Servers, proxies and real peers behave as tests request, according to foreign programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod delay_server;
mod fault_server;
mod nfs_cross_checks;
mod peers;
mod proxies;
mod smb_cross_checks;
