//! Why a workload of HTTP cannot be made.

use plimsoll_model::suite::SuiteError;
use plimsoll_protocol::PlanError;

use crate::tls::TlsError;
use crate::urls::UrlsError;
use crate::wire::template::TemplateError;

/// Why a workload of HTTP cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum HttpPlanError {
    /// Some servers with TLS and some without.
    #[error("the targets mix http and https; run them one after the other")]
    MixedSchemes,
    /// A file set cannot lie there.
    #[error("target {0}: a file set needs a plain path without query")]
    Path(String),
    /// The host cannot be written into a request.
    #[error("target {0}: its host is not in ASCII; write the name's form that begins with xn--")]
    Host(String),
    /// The URL cannot be requested.
    #[error("target {0} cannot be asked for: percent-encode spaces in its path and query")]
    Url(String),
    /// A random part of the body or the URL is malformed.
    #[error("{0}")]
    Body(#[from] TemplateError),
    /// The file with the body cannot be read.
    #[error("cannot read the body of the requests from {file}: {reason}")]
    BodyFile {
        /// Its path.
        file: String,
        /// Why.
        reason: String,
    },
    /// A header field that HTTP/2 does not have.
    #[error("HTTP/2 has no header field {0:?}, which is of HTTP/1.1's connections: leave it out")]
    ForeignField(String),
    /// The file of a journey cannot be read.
    #[error("cannot read the journey from {file}: {reason}")]
    JourneyFile {
        /// Its path.
        file: String,
        /// Why.
        reason: String,
    },
    /// A suite of a replay without its file.
    #[error("a replay needs its file: write replay_file = \"replay.csv\" below [workload]")]
    NoReplay,
    /// A suite of users without a journey.
    #[error("users need a journey: write --journey FILE (docs/users.md)")]
    NoJourney,
    /// A mistake in the file of a journey.
    #[error("{0}{help}", help = .0.help.as_ref().map_or(String::new(), |help| format!("; {help}")))]
    Journey(Box<SuiteError>),
    /// More users than rows that each session has once.
    #[error(
        "data {data:?} has {rows} rows, each for one session, and there are {users} users; give it \
         more rows, or write order = \"in_turn\""
    )]
    TooFewRows {
        /// Of the data.
        data: String,
        /// How many.
        rows: u64,
        /// Of the highest load point.
        users: f64,
    },
    /// Certificates of users, and one of all.
    #[error(
        "the rows of {0:?} have certificates, and all users have one (--cert); leave one of them out"
    )]
    TwoCertificates(String),
    /// Certificates of users, and no TLS.
    #[error(
        "the rows of {0:?} have certificates, and a target is not https: write https URLs, or leave \
         `certificate` out"
    )]
    CertificatesWithoutTls(String),
    /// More streams than a server allows.
    #[error(
        "{target}: the server allows {allowed} streams on a connection, and --streams {requested} asks \
         for more; write --streams {allowed} or fewer"
    )]
    TooManyStreams {
        /// URL of the target.
        target: String,
        /// By the server.
        allowed: u32,
        /// By the suite.
        requested: u32,
    },
}

impl From<HttpPlanError> for PlanError {
    fn from(error: HttpPlanError) -> Self {
        Self::own(error)
    }
}

impl From<UrlsError> for PlanError {
    fn from(error: UrlsError) -> Self {
        Self::own(error)
    }
}

impl From<TlsError> for PlanError {
    fn from(error: TlsError) -> Self {
        Self::own(error)
    }
}
