//! SMB 2.0.2 to 3.1.1 over TCP: the `disk-mix`, `nic` and `logons` suites, and their variants.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`wire`] | SMB2 messages as bytes, pure |
//! | [`seal`], [`logon`] | signing and encryption; from a fresh connection to a share |
//! | [`op`] | one desktop operation, as script and session see it |
//! | [`workspace`], `script`, `loadfile` | what lies on the share, and what clients request |
//! | `session` | the state machine of one client |
//! | [`prepare`] | set-up around a load point |
//! | [`parameters`], [`target`], `plan` | from a suite to running clients |

#![warn(unreachable_pub)]

#[cfg(feature = "host")]
pub mod host;
mod loadfile;
pub mod logon;
pub mod op;
pub mod parameters;
mod plan;
pub mod prepare;
mod script;
pub mod seal;
#[cfg(feature = "host")]
pub mod server;
mod session;
pub mod target;
pub mod wire;
pub mod workspace;

use plimsoll_protocol::Protocol;

/// The registration.
pub const PROTOCOL: Protocol = Protocol {
    name: "smb",
    title: "SMB",
    suites: &[
        ("disk-mix", include_str!("../suites/disk-mix.toml")),
        ("disk-mix-ibm", include_str!("../suites/disk-mix-ibm.toml")),
        ("disk-mix-superlab", include_str!("../suites/disk-mix-superlab.toml")),
        ("disk-mix-superlab-1", include_str!("../suites/disk-mix-superlab-1.toml")),
        ("nic", include_str!("../suites/nic.toml")),
        ("logons", include_str!("../suites/logons.toml")),
        ("logons-held", include_str!("../suites/logons-held.toml")),
    ],
    schemes: &[("smb", 445)],
    read_workload: |table| parameters::read(table).map(Into::into),
    workload_schema: || schemars::schema_for!(parameters::SmbWorkload),
    plan: plan::plan,
    needed_file_set: None,
    load_files: Some(loadfile::LOAD_FILES),
    clean: Some(prepare::clean_target),
};
