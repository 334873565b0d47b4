//! Servers, proxies and real peers do what tests ask of them, as foreign judges see it.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod delay_server;
mod fault_server;
mod nfs_judges;
mod peers;
mod proxies;
mod smb_judges;
