//! Why an op failed or a client is lost, as a class for the statistics and as text.

use std::fmt;

use plimsoll_engine::interface::LinkError;
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::super::logon::LogonError;
use super::super::op::SmbOp;
use super::super::seal::SealError;
use super::super::wire::WireError;
use super::super::wire::frame::FrameError;
use super::super::wire::header::Command;
use super::super::wire::status::{self, Named};

const SEE_WHETHER_IT_RUNS: &str = "see whether the server still runs, and what its log says";
const SEE_WHAT_IT_IS: &str = "see what the server is, and its log";
const SEE_WHO_IS_BETWEEN: &str = "somebody between here and the server may change messages";

/// Why no further messages of the received bytes are handled.
#[derive(Debug)]
pub(super) enum Stop {
    /// The client is lost.
    Lost,
    /// The stream cannot be read on.
    Stream(FrameError),
}

impl From<FrameError> for Stop {
    fn from(error: FrameError) -> Self {
        Self::Stream(error)
    }
}

/// What went wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure<'m> {
    /// The server answered with another status than the script expects.
    Unexpected { expected: u32, actual: u32 },
    /// More or fewer bytes than there should be.
    Length { expected: u32, actual: u32 },
    /// A byte differs from what was written.
    Content { at: u64, expected: u8, actual: u8 },
    /// No end in time.
    Timeout { after: Nanos, waited_for: &'static str },
    /// The connection did not open or broke.
    Broken(LinkError),
    /// The server closed the connection.
    Closed,
    /// The logon did not succeed.
    Logon(&'m LogonError),
    /// The server ended the session or took the share away.
    Gone { command: Command, status: u32 },
    /// The reply is not one to its command.
    Malformed { command: Command, error: WireError },
    /// Decodable, but not an answer to the request.
    Nonsense { command: Command, what: &'static str },
    /// The message has no commands that could be read.
    Message(WireError),
    /// The signature is wrong or missing, or the message does not decrypt.
    Seal(&'m SealError),
    /// The same of the reply to LOGOFF.
    Unsealed,
    /// A logon of its own failed, and the message was reported already.
    Refused(OpStatus),
    /// The stream cannot be read any further.
    Stream(FrameError),
    /// The client had left the mix.
    Left,
}

impl Failure<'_> {
    pub(super) fn status(&self) -> OpStatus {
        OpStatus::Failed(match *self {
            Self::Unexpected { expected, actual } => {
                return OpStatus::Unexpected { expected, actual };
            }
            Self::Refused(status) => return status,
            Self::Length { .. } => ErrorClass::Length,
            Self::Content { .. } => ErrorClass::Corrupt,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Broken(LinkError { class, .. }) => class,
            Self::Closed | Self::Left => ErrorClass::Transport,
            Self::Logon(error) => class_of(error),
            Self::Gone { status, .. } => ErrorClass::Status(status),
            Self::Malformed { .. }
            | Self::Nonsense { .. }
            | Self::Message(_)
            | Self::Seal(_)
            | Self::Unsealed
            | Self::Stream(_) => ErrorClass::Malformed,
        })
    }
}

impl fmt::Display for Failure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Unexpected { expected, actual } => {
                write!(f, "expected {}, the server answered {}", Named(expected), Named(actual))
            }
            Self::Length { expected, actual } => {
                write!(f, "{actual} bytes where {expected} should be")
            }
            Self::Content { at, expected, actual } => write!(
                f,
                "first wrong byte at offset {at}: 0x{actual:02x}, but 0x{expected:02x} was written"
            ),
            Self::Timeout { after, waited_for } => {
                write!(f, "no {waited_for} within {after}; {SEE_WHETHER_IT_RUNS}")
            }
            Self::Broken(error) => {
                write!(f, "the connection failed: {error}; {}", after_break(error.class))
            }
            Self::Closed => f.write_str(
                "the server closed the connection; its log says why (a crash, a limit, an idle \
                 time-out)",
            ),
            Self::Logon(error) => write!(f, "{error}"),
            Self::Gone { command, status } => {
                write!(f, "{command:?} was answered with {}: {}", Named(status), gone(status))
            }
            Self::Malformed { command, error } => {
                write!(f, "the reply to {command:?} cannot be read: {error}; {SEE_WHAT_IT_IS}")
            }
            Self::Nonsense { command, what } => {
                write!(f, "the reply to {command:?} makes no sense: {what}; {SEE_WHAT_IT_IS}")
            }
            Self::Message(error) => {
                write!(f, "a message from the server cannot be read: {error}; {SEE_WHAT_IT_IS}")
            }
            Self::Seal(error) => write!(f, "{error}; {SEE_WHO_IS_BETWEEN}"),
            Self::Unsealed => {
                write!(f, "the reply to LOGOFF is not sealed as it must be; {SEE_WHO_IS_BETWEEN}")
            }
            Self::Refused(_) => f.write_str("the logon failed"),
            Self::Stream(error) => write!(
                f,
                "the server's stream cannot be read: {error}; see whether an SMB server listens \
                 on that port"
            ),
            Self::Left => f.write_str("the client has left the mix"),
        }
    }
}

/// How a logon's failure counts.
pub(super) fn class_of(error: &LogonError) -> ErrorClass {
    match error {
        LogonError::Refused { status, .. } => ErrorClass::Status(*status),
        LogonError::Garbled { .. } | LogonError::Unfit { .. } | LogonError::Unsealed { .. } => {
            ErrorClass::Malformed
        }
        _ => ErrorClass::Rejected,
    }
}

/// What to do after a connection did not open or broke.
fn after_break(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::PortsExhausted => {
            "use fewer clients or a lower rate, connect from more addresses (--source), or widen \
             net.ipv4.ip_local_port_range"
        }
        ErrorClass::DescriptorsExhausted => {
            "use fewer clients, or raise the limit of open files (ulimit -n)"
        }
        _ => SEE_WHETHER_IT_RUNS,
    }
}

/// The meaning of a status that ends a session.
fn gone(code: u32) -> &'static str {
    match code {
        status::USER_SESSION_DELETED => "the server has forgotten the session",
        status::NETWORK_SESSION_EXPIRED => {
            "the session has expired; the server wants a new logon before the load point ends"
        }
        status::NETWORK_NAME_DELETED => "the share was removed, or its connection closed",
        _ => "the session cannot go on",
    }
}

/// A message that is not sealed as it must be. A server that no longer knows the session cannot
/// sign, so its status counts.
pub(super) fn unsealed(error: &SealError) -> Failure<'_> {
    match *error {
        SealError::Unsigned { command, status } | SealError::Unencrypted { command, status }
            if is_gone(status) =>
        {
            let command = Command::try_from(command).unwrap_or(Command::SessionSetup);
            Failure::Gone { command, status }
        }
        _ => Failure::Seal(error),
    }
}

/// The session or share is gone, whatever the request was.
pub(super) fn is_gone(code: u32) -> bool {
    matches!(
        code,
        status::USER_SESSION_DELETED
            | status::NETWORK_SESSION_EXPIRED
            | status::NETWORK_NAME_DELETED
    )
}

/// An op and its object, as in `read of handle 3 at offset 8192`.
pub(super) struct Described<'o>(pub(super) &'o SmbOp);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.kind().name();
        match self.0 {
            SmbOp::Create { path, handle, .. } => write!(f, "{name} {path} (handle {})", handle.0),
            SmbOp::Read { handle, offset, length, .. }
            | SmbOp::Write { handle, offset, length, .. } => {
                write!(f, "{name} of {length} bytes at {offset} (handle {})", handle.0)
            }
            SmbOp::Lock { handle, offset, length } | SmbOp::Unlock { handle, offset, length } => {
                write!(f, "{name} of {length} bytes at {offset} (handle {})", handle.0)
            }
            SmbOp::Close { handle }
            | SmbOp::Flush { handle }
            | SmbOp::FindNext { handle }
            | SmbOp::WriteText { handle, .. } => {
                write!(f, "{name} (handle {})", handle.0)
            }
            SmbOp::QueryFile { handle, level } => {
                write!(f, "{name} {level:?} (handle {})", handle.0)
            }
            SmbOp::SetFile { handle, set } => write!(f, "{name} {set:?} (handle {})", handle.0),
            SmbOp::Rename { path, to, .. } => write!(f, "{name} {path} to {to}"),
            SmbOp::Unlink { path }
            | SmbOp::Mkdir { path }
            | SmbOp::Rmdir { path }
            | SmbOp::Deltree { path } => write!(f, "{name} {path}"),
            SmbOp::QueryPath { path, level } => write!(f, "{name} {path} {level:?}"),
            SmbOp::QueryFs { level } => write!(f, "{name} {level:?}"),
            SmbOp::Find { directory, pattern, .. } => write!(f, "{name} {directory}\\{pattern}"),
            SmbOp::Echo | SmbOp::Logon | SmbOp::OpenSession => f.write_str(name),
        }
    }
}
