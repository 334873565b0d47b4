//! NFS versions 2 and 3 over UDP and TCP, and version 4.1: the `nfs-v2`, `nfs-v3`, `nfs-v3-2008`,
//! `nfs-v4.1` and `nfs-v4.1-open` suites.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | ONC RPC, portmapper, MOUNT, NFS as bytes, pure |
//! | [`op`] | one RPC of the mix, as script and session see it |
//! | [`fileset`], [`script`] | what lies on the server, and what clients request |
//! | [`procedure`] | calls and replies of all versions of NFS, for session and set-up |
//! | [`session`], [`client`] | the state machine of one client |
//! | [`remote`], [`mounting`] | set-up's calls, and mounting an export |
//! | [`validate`], [`prepare`], [`handles`] | set-up around a load point |
//! | [`parameters`], `plan` | from a suite to running clients |

#![warn(unreachable_pub)]

pub mod client;
pub mod fileset;
pub mod handles;
#[cfg(feature = "host")]
pub mod host;
pub mod mounting;
mod nonconformity;
pub mod op;
pub mod parameters;
mod plan;
pub mod prepare;
pub mod procedure;
mod refusal;
pub mod remote;
pub mod script;
#[cfg(feature = "host")]
pub mod server;
pub mod session;
pub mod validate;
pub mod wire;

use plimsoll_protocol::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "nfs",
    title: "NFS",
    suites: &[
        ("nfs-v2", include_str!("../suites/nfs-v2.toml")),
        ("nfs-v3", include_str!("../suites/nfs-v3.toml")),
        ("nfs-v3-2008", include_str!("../suites/nfs-v3-2008.toml")),
        ("nfs-v4.1", include_str!("../suites/nfs-v4.1.toml")),
        ("nfs-v4.1-open", include_str!("../suites/nfs-v4.1-open.toml")),
    ],
    schemes: &[("nfs", 2049)],
    read_workload: |table| parameters::read(table).map(Into::into),
    workload_schema: || schemars::schema_for!(parameters::NfsWorkload),
    plan: plan::plan,
    needed_file_set: None,
    load_files: None,
    clean: Some(prepare::clean_target),
};
