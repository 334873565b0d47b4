//! The interface of a protocol: its registration, its plan, and the requests to a server around the
//! load points. This crate knows no protocol. No socket, no clock, no printing.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`net`] | channels from set-up to a server; the program opens them |
//! | [`blocking`] | a session that set-up drives over such a channel |
//! | [`assembler`] | the messages in a stream of bytes |
//! | [`channel_pool`] | several channels at work on one server |
//! | [`files`] | files that a suite names |
//! | [`content`], [`marker`] | the bytes of files; the file that marks them as ours |
//! | [`data_set`] | our directory on a server, and room in it |
//! | [`draw`] | draws that keep their shares |
//! | `host` (a feature) | servers and whatever else needs sockets |

#![warn(unreachable_pub)]

use std::any::Any;
use std::fmt;
use std::io::BufRead;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_engine::pacer::Recorded;
use plimsoll_engine::workload::Workload;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::PageLimits;
use plimsoll_model::method::Practice;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::sessions::SessionsPlan;
use plimsoll_model::suite::{self, Changes, Profile, Suite, SuiteError, TableReader, nearest};
use plimsoll_model::target::TargetUrl;

use crate::files::{CachedFiles, InputFiles};
use crate::net::{Dial, OnProgress, PointPreparation, SetupError};

pub mod assembler;
pub mod blocking;
pub mod channel_pool;
pub mod content;
pub mod data_set;
pub mod draw;
pub mod files;
#[cfg(feature = "host")]
pub mod host;
pub mod marker;
pub mod net;

/// Seed of a run when none is given: the year of the Merchant Shipping Act.
pub const DEFAULT_SEED: u64 = 1876;

/// What the program knows of a protocol, apart from servers.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// As in a suite's `protocol`.
    pub name: &'static str,
    /// As people write it: `HTTP`.
    pub title: &'static str,
    /// The suites that come with it: name and text.
    pub suites: &'static [(&'static str, &'static str)],
    /// URL schemes with their default ports.
    pub schemes: &'static [(&'static str, u16)],
    /// Reads `[workload]`, every default explicit.
    pub read_workload: fn(&TableReader<'_>) -> Result<suite::Workload, SuiteError>,
    /// JSON Schema of `[workload]`.
    pub workload_schema: fn() -> schemars::Schema,
    /// Makes the workload of a load point. There is a target, and the URL of each has one of the
    /// schemes.
    pub plan: fn(&PlanRequest<'_>) -> Result<Plan, PlanError>,
    /// The file set a server must hold for a suite, profile and highest load in ops/s; for
    /// protocols that cannot write it through the server.
    pub needed_file_set: Option<NeededFileSet>,
    /// For protocols that replay recorded loads.
    pub load_files: Option<LoadFiles>,
    /// Removes our file set from a server; for protocols that write it through the server.
    pub clean: Option<Clean>,
}

impl Protocol {
    /// Text of its shipped suite of that name.
    pub fn shipped(&self, name: &str) -> Option<&'static str> {
        self.suites.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
    }

    /// Reads a suite of this protocol.
    pub fn parse_suite<'a>(
        &self,
        file: &str,
        text: &str,
        changes: impl Into<Changes<'a>>,
    ) -> Result<Suite, SuiteError> {
        parse_suite(&[self], file, text, changes)
    }

    /// The file set a server must hold before the run; `None` where none is, or where it is
    /// written through the server.
    pub fn file_set_needed(
        &self,
        suite: &Suite,
        profile: &Profile,
        highest_ops_per_s: Option<f64>,
    ) -> Result<Option<FileSetId>, PlanError> {
        match self.needed_file_set {
            Some(needed) => needed(suite, profile, highest_ops_per_s),
            None => Ok(None),
        }
    }
}

/// From a suite, a profile and the highest load in ops/s to the file set a server must hold.
pub type NeededFileSet = fn(&Suite, &Profile, Option<f64>) -> Result<Option<FileSetId>, PlanError>;

/// Removes what carries our marker from a server; returns a message that says what was done.
pub type Clean = fn(&ResolvedTarget, &dyn Dial, &mut OnProgress<'_>) -> Result<String, SetupError>;

/// How the file set of a server is generated from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSetId {
    /// Seed of the content.
    pub seed: u64,
    /// Directories, from 1.
    pub directories: u32,
}

/// A file that the user names for a run, and its content.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Where it lies, absolute, so that a resumed run finds it.
    pub path: PathBuf,
    /// Of its bytes, in hexadecimal.
    pub sha256: String,
    /// What [`LoadFiles::read`] made of it.
    pub content: Content,
}

/// Content of a file, as the protocol that read it knows it.
pub type Content = Arc<dyn Any + Send + Sync>;

/// How a protocol replays recorded loads (`--loadfile`).
#[derive(Clone, Copy, Debug)]
pub struct LoadFiles {
    /// What they belong to, for messages.
    pub belong_to: &'static str,
    /// Whether a suite can replay one.
    pub fit: fn(&Suite) -> bool,
    /// Reads one, named for messages; refuses what is none.
    pub read: fn(&mut dyn BufRead, &str) -> Result<Content, PlanError>,
    /// When the ops of one were due, for files that record it.
    pub due_times: fn(&Content) -> Option<Recorded>,
}

/// What a workload is made for.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// The suite.
    pub suite: &'a Suite,
    /// The profile in use.
    pub profile: &'a Profile,
    /// Seed of the run.
    pub seed: u64,
    /// Highest load of the run in ops/s; `None` while the peak is searched.
    pub highest_ops_per_s: Option<f64>,
    /// The servers that the clients use, in the order of the endpoints.
    pub targets: &'a [ResolvedTarget],
    /// URLs of all servers of the run, where the clients of this plan use some of them.
    pub run_urls: Option<&'a [TargetUrl]>,
    /// What the servers hold, where their description could be read.
    pub file_set: Option<FileSetId>,
    /// Reads the files that the suite names.
    pub files: &'a dyn InputFiles,
    /// The `--loadfile`.
    pub loadfile: Option<&'a InputFile>,
    /// Opens channels, for protocols that must ask the server before they can plan.
    pub dial: &'a dyn Dial,
    /// Who plans.
    pub planner: Planner,
    /// What the controller's plan has learnt of the servers ([`Plan::learnt`]), for an agent.
    pub learnt: Option<&'a str>,
}

impl<'a> PlanRequest<'a> {
    /// The controller's request, with the default seed and no optional parts.
    pub fn plain(
        suite: &'a Suite,
        profile: &'a Profile,
        targets: &'a [ResolvedTarget],
        dial: &'a dyn Dial,
    ) -> Self {
        static NO_FILES: CachedFiles = CachedFiles::NONE;
        Self {
            suite,
            profile,
            seed: DEFAULT_SEED,
            highest_ops_per_s: None,
            targets,
            run_urls: None,
            file_set: None,
            files: &NO_FILES,
            loadfile: None,
            dial,
            planner: Planner::Controller,
            learnt: None,
        }
    }
}

/// Who plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planner {
    /// Leads the run: tries the servers before any load.
    Controller,
    /// Works on servers that the controller has tried. Sends no measured request while it plans, so
    /// that a server's log has only the load.
    Agent,
}

/// A server and where it is.
#[derive(Clone, Debug)]
pub struct ResolvedTarget {
    /// As the user named it.
    pub url: TargetUrl,
    /// Where to connect.
    pub address: SocketAddr,
    /// Unix socket of this host to connect to instead; the address is then loopback, port 0.
    pub unix: Option<PathBuf>,
    /// Further addresses of its name, at which nobody connects.
    pub others: Vec<SocketAddr>,
    /// Other addresses of its name are targets of their own.
    pub is_one_of_several: bool,
}

impl ResolvedTarget {
    /// A target at an address.
    pub const fn new(url: TargetUrl, address: SocketAddr) -> Self {
        Self { url, address, unix: None, others: Vec::new(), is_one_of_several: false }
    }

    /// Where to connect, for a person.
    pub fn endpoint(&self) -> String {
        match &self.unix {
            Some(path) => format!("unix:{}", path.display()),
            None => self.address.to_string(),
        }
    }
}

/// A workload and what must be reported about it.
pub struct Plan {
    /// For the engine.
    pub work: Work,
    /// Names of the ops.
    pub op_names: OpNames,
    /// Shares that the method requires, in the order of the names; `None` when the mix is not
    /// fixed.
    pub op_shares: Option<Vec<f64>>,
    /// Of pages, in the order of the names; empty where no page has any.
    pub page_limits: Vec<PageLimits>,
    /// How the clients open the sessions that they keep; `None` where they keep none.
    pub sessions: Option<SessionsPlan>,
    /// What is spoken, if the protocol's name does not say it: a certificate of calibration holds
    /// for one such variant.
    pub spoken: Option<&'static str>,
    /// Where the clients connect, when it is not where the targets' URLs say (a portmapper knew).
    pub addresses: Option<Vec<SocketAddr>>,
    /// The clients connect from ports below 1024.
    pub reserved_ports: bool,
    /// What was learnt of the servers, as only the protocol reads it: agents plan from it and ask
    /// nothing.
    pub learnt: Option<String>,
    /// Values derived from the parameters in this run, and choices that no key of the suite sets.
    pub practices: Vec<Practice>,
    /// For the disclosure.
    pub facts: Vec<Setting>,
}

/// Where the workload of a load point comes from.
pub enum Work {
    /// The same for every load point.
    Fixed(Arc<dyn Workload>),
    /// Made for each load point, after its data has been written to the servers.
    PerPoint(Box<dyn PointPreparation>),
}

impl Plan {
    /// A plan whose workload serves every load point.
    pub fn fixed(
        workload: Arc<dyn Workload>,
        practices: Vec<Practice>,
        facts: Vec<Setting>,
    ) -> Self {
        let ops = (workload.op_names(), workload.op_shares());
        let page_limits = workload.page_limits();
        Self { page_limits, ..Self::new(Work::Fixed(workload), ops, practices, facts) }
    }

    /// A plan whose data is brought to the servers before each load point.
    pub fn per_point(
        preparation: impl PointPreparation + 'static,
        op_names: Vec<String>,
        op_shares: Option<Vec<f64>>,
        practices: Vec<Practice>,
        facts: Vec<Setting>,
    ) -> Self {
        let work = Work::PerPoint(Box::new(preparation));
        Self::new(work, (OpNames(op_names), op_shares), practices, facts)
    }

    fn new(
        work: Work,
        (op_names, op_shares): (OpNames, Option<Vec<f64>>),
        practices: Vec<Practice>,
        facts: Vec<Setting>,
    ) -> Self {
        Self {
            work,
            op_names,
            op_shares,
            page_limits: Vec::new(),
            sessions: None,
            spoken: None,
            addresses: None,
            reserved_ports: false,
            learnt: None,
            practices,
            facts,
        }
    }

    /// The same plan, whose clients open sessions and keep them.
    pub fn holding(self, sessions: Option<SessionsPlan>) -> Self {
        Self { sessions, ..self }
    }
}

/// Why a workload cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No server.
    #[error("no target is given; write for example http://host:port/, builtin: or managed:nginx")]
    NoTarget,
    /// What only one protocol can meet.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
    /// The server could not be reached, or refused.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Settings of a suite that its protocol cannot combine.
    #[error("workload of suite {suite}: {reason}; check the suite with plimsoll check")]
    Unfit {
        /// Name of the suite.
        suite: String,
        /// What is wrong.
        reason: String,
    },
}

impl PlanError {
    /// What only one protocol can meet.
    pub fn own(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Own(Box::new(error))
    }
}

/// Reads a suite of one of `protocols`.
pub fn parse_suite<'a>(
    protocols: &[&Protocol],
    file: &str,
    text: &str,
    changes: impl Into<Changes<'a>>,
) -> Result<Suite, SuiteError> {
    Suite::parse(file, text, changes, &|name, table| {
        if let Some(protocol) = protocols.iter().find(|protocol| protocol.name == name) {
            return (protocol.read_workload)(table);
        }
        let names = || protocols.iter().map(|protocol| protocol.name);
        let help = match nearest(name, names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("known protocols: {}", names().collect::<Vec<_>>().join(", ")),
        };
        Err(table.error_at("", format!("protocol \"{name}\" is not known")).with_help(help))
    })
}

/// Decodes the percent-encoding of URLs (RFC 3986 §2.1): codes such as `%2F` become bytes; all else
/// stays.
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = code
            .filter(|code| code.iter().all(u8::is_ascii_hexdigit))
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    out
}

/// Bytes after the end of a reply that belong to no reply. All protocols use this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailingBytes(pub usize);

impl fmt::Display for TrailingBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = if self.0 == 1 { "byte" } else { "bytes" };
        write!(f, "the server sent {} {bytes} behind the reply", self.0)
    }
}
