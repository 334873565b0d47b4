//! Why a logon failed, and the next move.

use std::fmt;

use super::offer::TokenError;
use crate::seal::{KeyLengthError, SealError};
use crate::wire::WireError;
use crate::wire::status::{self, Named};

/// How far a logon had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Which dialect.
    Negotiate,
    /// Who we are.
    SessionSetup,
    /// Which share.
    TreeConnect,
    /// Whether NEGOTIATE was tampered with.
    ValidateNegotiate,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Negotiate => "NEGOTIATE",
            Self::SessionSetup => "SESSION_SETUP",
            Self::TreeConnect => "TREE_CONNECT",
            Self::ValidateNegotiate => "FSCTL_VALIDATE_NEGOTIATE_INFO",
        })
    }
}

/// Why a logon failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogonError {
    /// The server answered a step with an error.
    #[error(
        "{} to {step}{}; {}",
        Named(*.status),
        if .who.is_empty() { String::new() } else { format!(" of {who}") },
        remedy(*.step, *.status)
    )]
    Refused {
        /// Which step.
        step: Step,
        /// NTSTATUS.
        status: u32,
        /// Who requested what.
        who: String,
    },
    /// The server answered with a dialect that was not offered.
    #[error(
        "the server wants dialect 0x{0:04x}, which was not offered; raise dialect_max, or see \
         whether the server speaks SMB 2.0.2 or later"
    )]
    DialectNotOffered(u16),
    /// The server insists on signing, and it is off.
    #[error("the server demands signed messages; set signing = \"when-asked\"")]
    SigningDemanded,
    /// A guest's or nobody's session has no key.
    #[error(
        "the server gave {who} a guest's session, which cannot be {required}; name a user it \
         knows, or do not ask for that"
    )]
    Keyless {
        /// Who logged on.
        who: String,
        /// "signed" or "encrypted".
        required: &'static str,
    },
    /// We or the server require encryption, and there is no cipher.
    #[error(
        "{by} demands encryption, but dialect {dialect} was agreed on without a cipher; raise \
         dialect_max to 3.0 or later, and allow encryption on the server"
    )]
    NoCipher {
        /// What was agreed on.
        dialect: &'static str,
        /// Who demands it.
        by: &'static str,
    },
    /// The share holds no files.
    #[error("{0} is a printer or a pipe; name a share of files")]
    NotADisk(String),
    /// The server's security token cannot be answered.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// A reply that cannot be read.
    #[error("the reply to {step} cannot be read: {error}; does an SMB server listen there?")]
    Garbled {
        /// Which step.
        step: Step,
        /// Why.
        error: WireError,
    },
    /// A reply that does not fit.
    #[error("the reply to {step} holds {what}; see what the server is, and its log")]
    Unfit {
        /// Which step.
        step: Step,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A reply that was not signed or encrypted as it must be.
    #[error("{step}: {error}; {}", unsealed_remedy(*.step))]
    Unsealed {
        /// Which step.
        step: Step,
        /// What is wrong.
        error: SealError,
    },
    /// The server confirms other facts than those of NEGOTIATE.
    #[error("NEGOTIATE was changed on its way; somebody is between here and the server")]
    Downgraded,
    /// Keys of another length than the algorithms want.
    #[error("{0}; this is a bug, please report it with the server's name and version")]
    Key(#[from] KeyLengthError),
}

impl LogonError {
    /// The server's status, if the logon failed by that.
    pub fn status(&self) -> Option<u32> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn remedy(step: Step, status: u32) -> &'static str {
    match (step, status) {
        (Step::SessionSetup, status::LOGON_FAILURE | status::WRONG_PASSWORD) => {
            "check the user in the URL and the password in PLIMSOLL_PASSWORD"
        }
        (Step::SessionSetup, status::NO_SUCH_USER) => "check the user in the URL",
        (Step::SessionSetup, status::ACCOUNT_DISABLED | status::ACCOUNT_LOCKED_OUT) => {
            "have the account enabled on the server, or name another user"
        }
        (Step::SessionSetup, status::PASSWORD_EXPIRED | status::PASSWORD_MUST_CHANGE) => {
            "give the account a new password on the server"
        }
        (Step::TreeConnect, status::BAD_NETWORK_NAME) => "check the name of the share in the URL",
        (Step::SessionSetup | Step::TreeConnect, status::ACCESS_DENIED) => {
            "name a user who may use the share; a server that demands encryption or signing says \
             this too: raise dialect_max, or set encryption = true"
        }
        (Step::Negotiate, status::NOT_SUPPORTED | status::INVALID_PARAMETER) => {
            "the server knows none of the dialects offered: raise dialect_max"
        }
        (_, status::INSUFFICIENT_RESOURCES | status::REQUEST_NOT_ACCEPTED) => {
            "the server takes no more sessions: use fewer clients, or raise its limit"
        }
        _ => "see the server's log",
    }
}

/// Before there are keys, a message that cannot be opened is none of SMB 2.
fn unsealed_remedy(step: Step) -> &'static str {
    match step {
        Step::Negotiate => "does an SMB 2 server listen there?",
        Step::SessionSetup | Step::TreeConnect | Step::ValidateNegotiate => {
            "somebody between here and the server may change messages"
        }
    }
}
