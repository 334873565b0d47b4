//! Why a call of set-up failed; each message says what to do.

use std::fmt;

use super::procedure::results::ReplyError;
use super::wire::rpc::{ReplyOutcome, Service, auth};
use super::wire::v3::Status3;
use super::wire::v4::Status4;
use super::wire::xdr::XdrError;
use super::wire::{mount, portmap, v3};
use plimsoll_protocol::blocking::BlockingError;
use plimsoll_protocol::net::{ChannelError, SetupError};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The network or the server's silence.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The RPC layer refused the call.
    #[error(transparent)]
    Refused(#[from] RpcRefusal),
    /// What came is not a reply.
    #[error("the server's reply cannot be read: {0}")]
    Garbled(#[from] XdrError),
    /// What came is not a record.
    #[error("the server's stream cannot be read: {0}")]
    Stream(String),
    /// The server gives no session (NFSv4.1).
    #[error("{0}")]
    Session(String),
    /// The procedure itself answered with an error; versions 2 and 3 share the numbers.
    #[error("the server answered {}", named(*.0))]
    Status(Status3),
    /// Another verifier than before: unstable data may be lost.
    #[error("the server restarted meanwhile, and may have lost what it had not yet stored")]
    Restarted,
    /// Under a name of the file set there is something else.
    #[error("something else has that name")]
    Foreign,
    /// The server took no byte of a WRITE, or gave none, without saying why.
    #[error("the server transferred nothing")]
    Nothing,
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

impl CallError {
    /// The procedure's own status, if it failed by that.
    pub fn status(&self) -> Option<Status3> {
        match self {
            Self::Status(status) => Some(*status),
            _ => None,
        }
    }

    /// For the user: what could not be done, where, why, and the next move.
    pub fn unable_to(self, doing: &str, location: impl fmt::Display) -> SetupError {
        if matches!(self, Self::Stopped) {
            return SetupError::Stopped;
        }
        let remedy = self.remedy();
        let text = if remedy.is_empty() {
            format!("{location}: cannot {doing}: {self}")
        } else {
            format!("{location}: cannot {doing}: {self}; {remedy}")
        };
        SetupError::Unusable(text)
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Garbled(_) | Self::Stream(_) => "see whether an NFS server listens on that port",
            Self::Status(status) => remedy(*status),
            Self::Restarted => "start again: what is there will be kept",
            Self::Foreign => "move it away",
            Self::Nothing => "see what the server's log says",
            Self::Session(_) => "see whether the server serves NFS version 4.1",
            Self::Refused(_) | Self::Stopped => "",
        }
    }
}

impl From<BlockingError> for CallError {
    fn from(error: BlockingError) -> Self {
        match error {
            BlockingError::Stopped => Self::Stopped,
            BlockingError::Channel(error) => Self::Channel(error),
        }
    }
}

impl From<ReplyError> for CallError {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Status { code, .. } => Self::Status(Status3(code)),
            ReplyError::Undecodable(error) => Self::Garbled(error),
        }
    }
}

/// What to do about an error status of NFS.
fn remedy(status: Status3) -> &'static str {
    match status {
        Status3::PERM | Status3::ACCES => {
            "let the export be written by this user (rw, no_root_squash), or run as its owner"
        }
        Status3::ROFS => "export the directory for reading and writing",
        Status3::NOSPC | Status3::DQUOT => "free some space there, or lower the load or the scale",
        Status3::STALE => {
            "the export changed under the run, or the server keeps fewer handles than there are \
             files: start the run again, and raise that limit"
        }
        _ if status.0 == Status4::WRONGSEC.0 => {
            "let the export allow sec=sys: calls are authenticated by AUTH_SYS alone"
        }
        _ if status.0 == Status4::BAD_STATEID.0 => {
            "set-up writes with the anonymous stateid, which a server has to take (RFC 8881 §8.2.3)"
        }
        _ if status.0 == Status4::MOVED.0 => "give the URL of the server that has it now",
        _ => "see what the server's log says",
    }
}

fn named(status: Status3) -> String {
    let name = status.name().or_else(|| Status4(status.0).name());
    name.map_or_else(|| format!("with status {}", status.0), str::to_owned)
}

/// The RPC layer's refusal of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcRefusal {
    /// The requested service.
    pub service: Service,
    /// What was answered; never a success.
    pub outcome: ReplyOutcome,
}

impl std::error::Error for RpcRefusal {}

impl fmt::Display for RpcRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Service { program, version } = self.service;
        let name = program_name(program);
        match self.outcome {
            ReplyOutcome::Success => f.write_str("the call was accepted"),
            ReplyOutcome::ProgramUnavailable => {
                write!(f, "the server on that port has no {name}; check the ports of the URL")
            }
            ReplyOutcome::ProgramMismatch { low, high } => {
                let versions = match low == high {
                    true => format!("version {low}"),
                    false => format!("versions {low} to {high}"),
                };
                write!(
                    f,
                    "the server speaks {name} {versions}, not {version}; {}let it serve version \
                     {version}",
                    other_suite(program, low, high)
                )
            }
            ReplyOutcome::ProcedureUnavailable => write!(
                f,
                "the server has no such procedure in {name} version {version}; it may not serve \
                 that version in full: use another suite, or see its configuration"
            ),
            ReplyOutcome::GarbageArguments => write!(
                f,
                "the server cannot read the arguments of a call to {name} version {version}; see \
                 what its log says"
            ),
            ReplyOutcome::SystemError => {
                write!(f, "the server had an error of its own in {name}; see what its log says")
            }
            ReplyOutcome::RpcMismatch { low, high } => write!(
                f,
                "the server speaks RPC versions {low} to {high}, not 2; it is no ONC RPC server of \
                 today"
            ),
            ReplyOutcome::AuthError(code) => write!(
                f,
                "the server does not accept our identity ({}); check that the export allows \
                 sec=sys, and source ports above 1023 (export option insecure) or run with \
                 permission to use reserved ports",
                auth::name(code).unwrap_or("an authentication error")
            ),
        }
    }
}

/// What else can be measured where these versions are spoken.
fn other_suite(program: u32, low: u32, high: u32) -> &'static str {
    let for_version_2 = if program == mount::PROGRAM { mount::VERSION_1 } else { 2 };
    let has = |version: u32| (low..=high).contains(&version);
    match program {
        v3::PROGRAM | mount::PROGRAM if has(3) => "use suite nfs-v3, or ",
        v3::PROGRAM | mount::PROGRAM if has(for_version_2) => "use suite nfs-v2, or ",
        _ => "",
    }
}

/// What people call a program.
pub(crate) fn program_name(program: u32) -> &'static str {
    match program {
        portmap::PROGRAM => "portmapper",
        mount::PROGRAM => "MOUNT",
        v3::PROGRAM => "NFS",
        _ => "such program",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_in_set_up_is_told_with_both_of_its_causes() {
        let error = CallError::Status(Status3::STALE).unable_to("see the size of a", "export");
        let text = error.to_string();
        assert!(text.contains("the server answered NFS3ERR_STALE; the export changed"), "{text}");
        assert!(text.contains("keeps fewer handles than there are files: start the run"), "{text}");
    }
}
