//! How one op ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Index of an op's name in the workload's list of op names ([`OpNames`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpKind(pub u8);

/// Why an op failed. The text form is the key of `errors` in `result.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// No reply within the suite's op timeout.
    Timeout,
    /// The connection was refused, reset, unreachable, or closed before the reply began.
    Transport,
    /// The TLS handshake or record layer failed.
    Tls,
    /// No local port was free for a new connection (`EADDRNOTAVAIL`).
    PortsExhausted,
    /// This process may open no more files or connections (`EMFILE`, `ENFILE`).
    DescriptorsExhausted,
    /// A status other than the expected one (HTTP status, NFS error, NTSTATUS).
    Status(u32),
    /// The reply broke off before its announced end.
    Truncated,
    /// The reply is not of the protocol, or over one of its limits.
    Malformed,
    /// More bytes came than the reply has: together with it, or later and before the next request.
    TrailingBytes,
    /// The reply has another length than the file it represents.
    Length,
    /// The reply's content differs from what the server was given.
    Corrupt,
    /// The server refused the call before it looked at the op (ONC RPC: program, version or
    /// procedure unavailable, arguments not understood, credentials not accepted).
    Rejected,
    /// The stream of a good status contains an error.
    InBand,
    /// A stream without any output.
    Empty,
    /// A reply lacks what the next request of a journey needs.
    NotTaken,
    /// The reply lacks the text that was expected in it.
    Content,
    /// A redirect that leads to another server, to nowhere or in circles.
    Redirect,
    /// A user gave up before the page was complete.
    Abandoned,
    /// The server restarted and may have lost data it had not committed (NFS write verifier).
    Verifier,
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timeout"),
            Self::Transport => f.write_str("transport"),
            Self::Tls => f.write_str("tls"),
            Self::PortsExhausted => f.write_str("ports_exhausted"),
            Self::DescriptorsExhausted => f.write_str("descriptors_exhausted"),
            Self::Status(code) => write!(f, "status:{code}"),
            Self::Truncated => f.write_str("truncated"),
            Self::Malformed => f.write_str("malformed"),
            Self::TrailingBytes => f.write_str("surplus"),
            Self::Length => f.write_str("length"),
            Self::Corrupt => f.write_str("corrupt"),
            Self::Rejected => f.write_str("rejected"),
            Self::InBand => f.write_str("in_band"),
            Self::Empty => f.write_str("empty"),
            Self::NotTaken => f.write_str("not_taken"),
            Self::Content => f.write_str("content"),
            Self::Redirect => f.write_str("redirect"),
            Self::Abandoned => f.write_str("abandoned"),
            Self::Verifier => f.write_str("verifier"),
        }
    }
}

/// How one op ended. The engine keeps the times; this is what only the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which op it was.
    pub kind: OpKind,
    /// Success, or why not.
    pub status: OpStatus,
    /// Payload bytes from the server (application bytes, no headers).
    pub bytes_read: u64,
    /// Payload bytes to the server.
    pub bytes_written: u64,
    /// The op was sent again although its first try may have worked.
    pub ambiguous: bool,
}

/// Success, an expected failure, or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpStatus {
    /// Did what it should.
    Ok,
    /// Failed as the script expected (an open of a name that must not exist).
    ExpectedFailure,
    /// Failed.
    Failed(ErrorClass),
    /// Ended with another status than the script expects.
    Unexpected {
        /// Status the script expects.
        expected: u32,
        /// Status the server gave.
        actual: u32,
    },
}

impl Outcome {
    /// The op failed, or ended with another status than the script expects.
    pub const fn is_failure(&self) -> bool {
        matches!(self.status, OpStatus::Failed(_) | OpStatus::Unexpected { .. })
    }
}

/// What one client got done in the window of a load point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCounts {
    /// Its number.
    pub client: u32,
    /// Ops that finished without error within the window, whatever their due time, by [`OpKind`].
    pub done: Vec<u64>,
}

/// One sampled failure, kept so that a user can see what went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorSample {
    /// Op name.
    pub op: String,
    /// Text form of the [`ErrorClass`].
    pub class: String,
    /// What exactly: the URL and status, the errno text, the offset of the first wrong byte.
    pub detail: String,
    /// Nanoseconds from the start of the load point.
    pub at_ns: u64,
}

/// Names of a workload's ops; [`OpKind`] indexes this list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpNames(pub Vec<String>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_classes_have_the_keys_of_the_result_format() {
        assert_eq!(ErrorClass::Status(404).to_string(), "status:404");
        assert_eq!(ErrorClass::Timeout.to_string(), "timeout");
        assert_eq!(ErrorClass::Corrupt.to_string(), "corrupt");
    }
}
