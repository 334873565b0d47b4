//! Shared by the tests of the workspace: servers with known behaviour, servers that misbehave on
//! purpose, and real peers. A dev-dependency, and a dependency of the laboratory.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot be set up has failed, and a panic says so at once"
)]

pub mod capture;
pub mod clock;
pub mod delay_server;
#[cfg(feature = "servers")]
pub mod dial_driver;
pub mod echo;
pub mod exporter_page;
pub mod fault_server;
pub mod flip_proxy;
pub mod h2_faults;
pub mod hostile_smb;
pub mod llm_server;
pub mod lossy_proxy;
pub mod lru;
pub mod namespaces;
#[cfg(feature = "servers")]
pub mod nfs_peers;
#[cfg(feature = "servers")]
pub mod pairs;
pub mod peers;
pub mod pipeline;
pub mod program;
mod relay;
#[cfg(feature = "servers")]
pub mod shared_files;
#[cfg(feature = "servers")]
pub mod shop;
pub mod sim;
pub mod skips;
pub mod slurm;
#[cfg(feature = "servers")]
pub mod smb_peers;
pub mod snmp_agent;
#[cfg(feature = "servers")]
pub mod sockets;
pub mod sshd;
pub mod suites;
pub mod tls;
