//! Why an export cannot be used; each message says what to do.

use std::net::SocketAddr;

use super::TRANSFER_BYTES_MIN;
use crate::refusal::CallError;
use crate::wire::mount::MountStatus;
use plimsoll_protocol::net::SetupError;

/// Exports an error message names.
const EXPORTS_NAMED_MAX: usize = 8;

/// Why an export cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// A parameter of the URL is not possible.
    #[error("target {target}: {parameter} is not possible; {help}")]
    Parameter {
        /// The URL.
        target: String,
        /// `key=value`.
        parameter: String,
        /// What is possible.
        help: String,
    },
    /// No portmapper, and no port in the URL.
    #[error(
        "target {target}: it names no port, and no portmapper answers at {portmapper}: {source}; \
         write nfs://host:PORT/export?mountport=PORT"
    )]
    NoPortmapper {
        /// The URL.
        target: String,
        /// Where it was looked for.
        portmapper: SocketAddr,
        /// What happened.
        source: CallError,
    },
    /// The port of MOUNT is unknown.
    #[error(
        "target {target}: no portmapper answers at {portmapper} to say where MOUNT is ({source}), \
         and port {nfs} does not serve it; add ?mountport=N to the URL"
    )]
    NoMountPort {
        /// The URL.
        target: String,
        /// Where it was looked for.
        portmapper: SocketAddr,
        /// Port of NFS, where MOUNT was tried too.
        nfs: u16,
        /// What happened.
        source: CallError,
    },
    /// The portmapper knows no such program.
    #[error(
        "target {target}: its portmapper knows no {program} version {version} over {transport}; \
         let the server serve that, choose another suite or transport, or name the ports in the \
         URL (nfs://host:PORT/export?mountport=PORT)"
    )]
    NotRegistered {
        /// The URL.
        target: String,
        /// NFS or MOUNT.
        program: &'static str,
        /// Its version.
        version: u32,
        /// TCP or UDP.
        transport: &'static str,
    },
    /// MNT was answered with an error.
    #[error(
        "target {target}: the server refuses to mount {export} ({status}); {}",
        refusal_help(*status, exports)
    )]
    Export {
        /// The URL.
        target: String,
        /// Requested path.
        export: String,
        /// The answer.
        status: MountStatus,
        /// Exports that the server reports.
        exports: Vec<String>,
    },
    /// The server transfers less than a block.
    #[error(
        "target {target}: the server transfers at most {bytes} bytes in a READ or WRITE, the \
         method's blocks have {TRANSFER_BYTES_MIN}; raise the server's limit"
    )]
    Transfers {
        /// The URL.
        target: String,
        /// The lower of both limits.
        bytes: u32,
    },
    /// The server cannot be measured as it is.
    #[error("target {target}: {reason}")]
    Unusable {
        /// The URL.
        target: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A call failed.
    #[error("{0}")]
    Call(SetupError, #[source] Option<PortRefusal>),
}

/// The refusal may be because of the source port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server may want a source port below 1024")]
pub struct PortRefusal;

fn refusal_help(status: MountStatus, exports: &[String]) -> String {
    let listing = match exports {
        [] => "the server lists no exports".to_owned(),
        some => {
            let named = &some[..some.len().min(EXPORTS_NAMED_MAX)];
            let more = if named.len() < some.len() { ", …" } else { "" };
            format!("it exports {}{more}", named.join(", "))
        }
    };
    match status {
        MountStatus::ACCES | MountStatus::PERM => format!(
            "let it be exported to this host, with sec=sys and source ports above 1023 (export \
             option insecure), or run with permission to use reserved ports; {listing}"
        ),
        _ => listing,
    }
}

impl From<MountError> for SetupError {
    fn from(error: MountError) -> Self {
        match error {
            MountError::Call(error, _) => error,
            MountError::NoPortmapper { source: CallError::Stopped, .. }
            | MountError::NoMountPort { source: CallError::Stopped, .. } => Self::Stopped,
            MountError::Parameter { .. } => Self::Wrong(error.to_string()),
            _ => Self::Unusable(error.to_string()),
        }
    }
}

impl MountError {
    pub(super) fn may_be_the_port(&self) -> bool {
        match self {
            Self::Export { status, .. } => {
                matches!(*status, MountStatus::ACCES | MountStatus::PERM)
            }
            Self::Call(_, refusal) => refusal.is_some(),
            _ => false,
        }
    }
}
