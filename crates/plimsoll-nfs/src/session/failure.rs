//! Why a call failed, as a class for the statistics and as text for an error sample.

use std::fmt;

use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::super::fileset::EntryName;
use super::super::procedure::results::{Kind, ReplyError};
use super::super::wire::record::RecordTooLong;
use super::super::wire::rpc::ReplyOutcome;
use super::super::wire::{Path, XdrError};
use super::connection::LossReason;

/// Why a call failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure<'m> {
    /// The server's NFS status; RFC 1094 and RFC 1813 give the same names and numbers.
    Status { code: u32, name: Option<&'static str> },
    /// It should have failed with one status, and ended with another.
    Unexpected { expected: u32, actual: u32 },
    /// The RPC layer refused it.
    Refused(ReplyOutcome),
    /// The reply is not what RPC and NFS say it must be.
    Undecodable(XdrError),
    /// Decodable, yet not a reply to this call.
    Nonsense(&'static str),
    /// The reply speaks of an object of another kind.
    Kind { expected: Kind, actual: Kind },
    /// The name leads to another handle than the one it led to before the run.
    Handle,
    /// A link's text is another.
    LinkText { expected: EntryName, actual: Path<'m> },
    /// More or fewer bytes than requested.
    Length { requested: u64, got: u64 },
    /// A file is smaller than it was made, or than what was written to it.
    Shrunk { made: u64, actual: u64 },
    /// A byte differs from what was written.
    Content { at: u64, expected: u8, actual: u8, bytes: u64 },
    /// ACCESS does not grant reading.
    Unreadable,
    /// The server restarted since the last write.
    Verifier,
    /// No reply in time.
    Timeout { after: Nanos, sends: u32, lost_by: Option<LossReason> },
    /// No link, and waiting would not bring one.
    NoLink(LossReason, ErrorClass),
    /// The stream of replies cannot be read any further.
    Stream(RecordTooLong),
    /// The server gave no session (NFSv4.1).
    NoSession(&'m str),
}

impl Failure<'_> {
    pub(super) fn status(&self) -> OpStatus {
        OpStatus::Failed(match *self {
            Self::Unexpected { expected, actual } => {
                return OpStatus::Unexpected { expected, actual };
            }
            Self::Status { code, .. } => ErrorClass::Status(code),
            Self::Refused(_) => ErrorClass::Rejected,
            Self::Undecodable(_) | Self::Nonsense(_) | Self::Stream(_) => ErrorClass::Malformed,
            Self::Length { .. } | Self::Shrunk { .. } => ErrorClass::Length,
            Self::Kind { .. }
            | Self::Handle
            | Self::LinkText { .. }
            | Self::Content { .. }
            | Self::Unreadable => ErrorClass::Corrupt,
            Self::Verifier => ErrorClass::Verifier,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::NoLink(_, class) => class,
            Self::NoSession(_) => ErrorClass::Transport,
        })
    }

    /// File data that came all the same.
    pub(super) fn bytes_read(&self) -> u64 {
        match *self {
            Self::Content { bytes, .. } => bytes,
            _ => 0,
        }
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Status { code, name } => {
                write!(f, "{} ({code}){}", name.unwrap_or("a status no RFC names"), hint(code))
            }
            Self::Unexpected { expected, actual } => {
                write!(f, "expected status {expected}, the server answered {actual}")
            }
            Self::Refused(outcome) => {
                write!(f, "refused by the server's RPC layer: {outcome}{}", port_hint(outcome))
            }
            Self::Undecodable(error) => write!(f, "the reply is no reply to this call: {error}"),
            Self::Nonsense(what) => f.write_str(what),
            Self::Kind { expected, actual } => {
                write!(f, "attributes of a {actual}, and not of a {expected}")
            }
            Self::Handle => f.write_str("the name leads to another file than before the run"),
            Self::LinkText { expected, actual } => {
                write!(f, "the link says {actual:?}, but {expected:?} was written")
            }
            Self::Length { requested, got } => write!(f, "asked for {requested} bytes, got {got}"),
            Self::Shrunk { made, actual } => {
                write!(f, "{made} bytes were written, the server says it has {actual}")
            }
            Self::Content { at, expected, actual, .. } => write!(
                f,
                "first wrong byte at offset {at}: 0x{actual:02x}, but 0x{expected:02x} was written"
            ),
            Self::Unreadable => f.write_str("the server does not grant READ on a file of ours"),
            Self::Verifier => f.write_str(
                "the write verifier changed: the server restarted and may have lost data that \
                 was not committed",
            ),
            Self::Timeout { after, sends: 0, lost_by } => {
                write!(f, "no connection within {after}{}", Because(lost_by))
            }
            Self::Timeout { after, sends, lost_by } => {
                let again = if sends > 1 { "; sent more than once" } else { "" };
                write!(f, "no reply within {after}{again}{}", Because(lost_by))
            }
            Self::NoLink(lost_by, _) => write!(f, "no connection: {lost_by}"),
            Self::Stream(error) => write!(f, "{error}; the connection is closed"),
            Self::NoSession(reason) => write!(f, "no session: {reason}"),
        }
    }
}

/// What a status means for the run, where its name does not say it.
fn hint(code: u32) -> &'static str {
    match code {
        70 => {
            ": the file handle is stale; the file was removed or the export changed during the \
             run, or the server forgot it: it restarted, or keeps fewer handles than there are \
             files"
        }
        1 | 13 => ": the export does not permit this to the user and host of the generator",
        28 | 69 => ": the server's disk or quota is full",
        30 => ": the export is read-only",
        10008 => ": the server is busy and asks to try later",
        _ => "",
    }
}

/// What a refusal may mean if the server accepted the same user at the mount.
fn port_hint(outcome: ReplyOutcome) -> &'static str {
    match outcome {
        ReplyOutcome::AuthError(_) => {
            "; it may accept calls from ports below 1024 only: run with permission to use them, \
             or set the export option insecure"
        }
        _ => "",
    }
}

/// Why there is no link now, when that is known.
struct Because(Option<LossReason>);

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |lost_by| write!(f, ": {lost_by}"))
    }
}

impl From<XdrError> for Failure<'_> {
    fn from(error: XdrError) -> Self {
        Self::Undecodable(error)
    }
}

impl From<ReplyError> for Failure<'_> {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::Status { code, name } => Self::Status { code, name },
            ReplyError::Undecodable(error) => Self::Undecodable(error),
        }
    }
}
