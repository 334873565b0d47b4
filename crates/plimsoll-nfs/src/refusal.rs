//! Why a call of set-up failed, in words that say what to do.

use std::fmt;

use super::procedure::results::ReplyError;
use super::wire::record::RecordTooLong;
use super::wire::rpc::{ReplyOutcome, Service, auth};
use super::wire::xdr::XdrError;
use super::wire::{mount, portmap, v3};
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
    Record(#[from] RecordTooLong),
    /// The procedure itself answered with an error.
    #[error(transparent)]
    Status(#[from] NfsStatus),
    /// Another verifier than before: unstable data may be lost.
    #[error("the server restarted meanwhile, and may have lost what it had not yet stored")]
    Restarted,
    /// Under a name of the file set there is something else.
    #[error("something else has that name")]
    Foreign,
    /// The server took no byte of a WRITE, or gave none, without saying why.
    #[error("the server transferred nothing")]
    Nothing,
    /// The caller said stop.
    #[error("stopped")]
    Stopped,
}

impl CallError {
    /// The procedure's own status, when that is what failed.
    pub fn status(&self) -> Option<NfsStatus> {
        match self {
            Self::Status(status) => Some(*status),
            _ => None,
        }
    }

    /// For the user: what could not be done, where, why, and the next move.
    pub fn unable_to(self, doing: &str, place: impl fmt::Display) -> SetupError {
        if matches!(self, Self::Stopped) {
            return SetupError::Stopped;
        }
        let remedy = self.remedy();
        let text = if remedy.is_empty() {
            format!("{place}: cannot {doing}: {self}")
        } else {
            format!("{place}: cannot {doing}: {self}; {remedy}")
        };
        SetupError::Unusable(text)
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Channel(ChannelError::Timeout | ChannelError::Closed) => {
                "see whether the server still runs, and what its log says"
            }
            Self::Channel(ChannelError::Failed(_)) => "see whether the server runs there",
            Self::Garbled(_) | Self::Record(_) => "see whether an NFS server listens on that port",
            Self::Status(status) => status.remedy(),
            Self::Restarted => "start again: what is there will be kept",
            Self::Foreign => "move it away",
            Self::Nothing => "see what the server's log says",
            Self::Refused(_) | Self::Stopped => "",
        }
    }
}

impl From<ReplyError> for CallError {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Status { code, .. } => Self::Status(NfsStatus(code)),
            ReplyError::Undecodable(error) => Self::Garbled(error),
        }
    }
}

/// An error status of NFS: versions 2 and 3 share the numbers (RFC 1094 §2.3.1, RFC 1813 §2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NfsStatus(pub u32);

impl NfsStatus {
    /// Not the owner.
    pub const PERM: Self = Self(1);
    /// No such file or directory.
    pub const NOENT: Self = Self(2);
    /// Permission denied.
    pub const ACCES: Self = Self(13);
    /// The file exists.
    pub const EXIST: Self = Self(17);
    /// No space left on the device.
    pub const NOSPC: Self = Self(28);
    /// Read-only file system.
    pub const ROFS: Self = Self(30);
    /// The directory is not empty.
    pub const NOTEMPTY: Self = Self(66);
    /// Quota exceeded.
    pub const DQUOT: Self = Self(69);
    /// The handle names nothing any more.
    pub const STALE: Self = Self(70);
    /// The server does not have the operation.
    pub const NOTSUPP: Self = Self(10_004);
    /// The server is busy: ask again later.
    pub const JUKEBOX: Self = Self(10_008);

    fn remedy(self) -> &'static str {
        match self {
            Self::PERM | Self::ACCES => {
                "let the export be written by this user (rw, no_root_squash), or run as its owner"
            }
            Self::ROFS => "export the directory for reading and writing",
            Self::NOSPC | Self::DQUOT => "free some space there, or lower the load or the scale",
            Self::STALE => {
                "the export changed under the run, or the server keeps fewer handles than there \
                 are files: start the run again, and raise that limit"
            }
            _ => "see what the server's log says",
        }
    }

    /// As the specifications spell it.
    pub fn name(self) -> Option<&'static str> {
        v3::Status3(self.0).name()
    }
}

impl fmt::Display for NfsStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "the server answered {name}"),
            None => write!(f, "the server answered with status {}", self.0),
        }
    }
}

/// The RPC layer's refusal of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcRefusal {
    /// What was asked for.
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
        let error = CallError::from(NfsStatus::STALE).unable_to("see the size of a", "export");
        let text = error.to_string();
        assert!(text.contains("the server answered NFS3ERR_STALE; the export changed"), "{text}");
        assert!(text.contains("keeps fewer handles than there are files: start the run"), "{text}");
    }
}
