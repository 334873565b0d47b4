//! Protocols as state machines: sessions, scripts, file sets. No socket, no clock, no printing.
//!
//! A protocol is a folder here and a line in [`PROTOCOLS`]. A shipped suite is a file in
//! `suites/` and a line in [`SHIPPED`].

use std::net::SocketAddr;
use std::sync::Arc;

use plimsoll_engine::seam::Workload;
use plimsoll_model::assignment::OpNames;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::suite::reader::nearest;
use plimsoll_model::suite::{Override, Profile, Suite, SuiteError, TableReader};
use plimsoll_model::target::TargetUrl;

use crate::http::fileset::FileSetId;
use crate::net::{Dial, ErrandError, OnProgress, PointPreparation};
use crate::smb::loadfile::LoadFileSource;

pub mod app;
pub mod content;
mod crew;
mod draw;
pub mod http;
mod keyed;
pub mod net;
pub mod nfs;
mod percent;
pub mod smb;
mod surplus;

/// What the program knows of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Protocol {
    /// As in a suite's `protocol`.
    pub name: &'static str,
    /// URL schemes with their default ports.
    pub schemes: &'static [(&'static str, u16)],
    /// Reads `[workload]`, every default explicit.
    pub read_workload: fn(&TableReader<'_>) -> Result<toml::Table, SuiteError>,
    /// JSON Schema of `[workload]`.
    pub workload_schema: fn() -> schemars::Schema,
    /// Makes the workload of a load point.
    pub plan: fn(&PlanRequest<'_>) -> Result<Plan, PlanError>,
    /// The file set a server must hold for a suite, profile and highest load in ops/s; for
    /// protocols that cannot write it through the server.
    pub needed_file_set: Option<NeededFileSet>,
    /// Removes our file set from a server; for protocols that write it through the server.
    pub clean: Option<Clean>,
}

impl Protocol {
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

/// Removes what carries our marker from a server; answers with what was done, in words.
pub type Clean = fn(&ResolvedTarget, &dyn Dial, &mut OnProgress<'_>) -> Result<String, ErrandError>;

/// All protocols.
pub const PROTOCOLS: &[Protocol] = &[http::PROTOCOL, nfs::PROTOCOL, smb::PROTOCOL, app::PROTOCOL];

/// The suites that come with the program: name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("web-static", include_str!("../../../suites/web-static.toml")),
    ("web-url", include_str!("../../../suites/web-url.toml")),
    ("nfs-v2", include_str!("../../../suites/nfs-v2.toml")),
    ("nfs-v3", include_str!("../../../suites/nfs-v3.toml")),
    ("nfs-v3-2008", include_str!("../../../suites/nfs-v3-2008.toml")),
    ("disk-mix", include_str!("../../../suites/disk-mix.toml")),
    ("disk-mix-ibm", include_str!("../../../suites/disk-mix-ibm.toml")),
    ("disk-mix-superlab", include_str!("../../../suites/disk-mix-superlab.toml")),
    ("nic", include_str!("../../../suites/nic.toml")),
    ("logons", include_str!("../../../suites/logons.toml")),
    ("transactions", include_str!("../../../suites/transactions.toml")),
    ("transactions-processor", include_str!("../../../suites/transactions-processor.toml")),
    ("transactions-disk", include_str!("../../../suites/transactions-disk.toml")),
    ("transactions-network", include_str!("../../../suites/transactions-network.toml")),
];

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
    /// The servers, in the order of the endpoints.
    pub targets: &'a [ResolvedTarget],
    /// What the servers hold, where their description could be read.
    pub file_set: Option<FileSetId>,
    /// Text of the `--urls` file.
    pub urls: Option<&'a str>,
    /// The `--loadfile`.
    pub loadfile: Option<&'a LoadFileSource>,
    /// Opens channels, for protocols that must ask the server before they can plan.
    pub dial: &'a dyn Dial,
}

/// A server and where it is.
#[derive(Clone, Debug)]
pub struct ResolvedTarget {
    /// As the user named it.
    pub url: TargetUrl,
    /// Where to connect.
    pub address: SocketAddr,
}

/// A workload and what must be said about it.
pub struct Plan {
    /// For the engine.
    pub work: Work,
    /// Names of the ops.
    pub op_names: OpNames,
    /// Shares the method wants, in the order of the names; `None` when the mix is not fixed.
    pub op_shares: Option<Vec<f64>>,
    /// Where the clients connect, when it is not where the targets' URLs say (a portmapper knew).
    pub addresses: Option<Vec<SocketAddr>>,
    /// The clients connect from ports below 1024.
    pub reserved_ports: bool,
    /// Every parameter that departs from the published method, timings excepted.
    pub departures: Vec<String>,
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
        departures: Vec<String>,
        facts: Vec<Setting>,
    ) -> Self {
        Self {
            op_names: workload.op_names(),
            op_shares: workload.op_shares(),
            work: Work::Fixed(workload),
            addresses: None,
            reserved_ports: false,
            departures,
            facts,
        }
    }

    /// A plan whose data is brought to the servers before each load point.
    pub fn per_point(
        preparation: impl PointPreparation + 'static,
        op_names: Vec<String>,
        op_shares: Option<Vec<f64>>,
        departures: Vec<String>,
        facts: Vec<Setting>,
    ) -> Self {
        Self {
            work: Work::PerPoint(Box::new(preparation)),
            op_names: OpNames(op_names),
            op_shares,
            addresses: None,
            reserved_ports: false,
            departures,
            facts,
        }
    }
}

/// Why a workload cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No server.
    #[error("no target is given; write for example http://host:port/, builtin: or managed:nginx")]
    NoTarget,
    /// The URL is of another protocol.
    #[error("target {target} is not of protocol {protocol}; its URL begins with one of: {schemes}")]
    Scheme {
        /// The URL.
        target: String,
        /// The suite's protocol.
        protocol: &'static str,
        /// Its schemes.
        schemes: &'static str,
    },
    /// Some servers with TLS and some without.
    #[error("the targets mix http and https; run them one after the other")]
    MixedSchemes,
    /// The URL cannot be asked for, or a file set cannot lie there.
    #[error(
        "target {0} cannot be asked for: a file set needs a plain path without query, and \
         everything outside ASCII must be percent-encoded"
    )]
    Path(String),
    /// The URL names no share that could be asked for.
    #[error("target {target}: {why}; write smb://[user@]host[:port]/share[/directory]")]
    Share {
        /// The URL.
        target: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The server's file set is being prepared or was left unfinished.
    #[error("the server's file set has no complete directory; run plimsoll prepare again")]
    EmptyFileSet,
    /// The list of URLs is wrong.
    #[error(transparent)]
    Urls(#[from] http::urls::UrlsError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] http::tls::TlsError),
    /// The server could not be asked, or refused.
    #[error(transparent)]
    Errand(#[from] ErrandError),
    /// A `[workload]` that no reader of this program made.
    #[error("workload of suite {suite}: {reason}; check the suite with plimsoll check")]
    Workload {
        /// Name of the suite.
        suite: String,
        /// What is wrong.
        reason: String,
    },
}

/// The `[workload]` of a suite, as its protocol's own type.
pub fn typed_workload<W: serde::de::DeserializeOwned>(suite: &Suite) -> Result<W, PlanError> {
    suite.workload.clone().try_into().map_err(|e: toml::de::Error| PlanError::Workload {
        suite: suite.name.clone(),
        reason: e.message().to_owned(),
    })
}

/// The protocol of that name.
pub fn protocol(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.name == name)
}

/// Reads the `[workload]` of a suite of protocol `name`; for [`Suite::parse`].
pub fn read_workload(name: &str, table: &TableReader<'_>) -> Result<toml::Table, SuiteError> {
    if let Some(protocol) = protocol(name) {
        return (protocol.read_workload)(table);
    }
    let known = || PROTOCOLS.iter().map(|protocol| protocol.name);
    let help = match nearest(name, known()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("known protocols: {}", known().collect::<Vec<_>>().join(", ")),
    };
    Err(table.error_at("", format!("protocol \"{name}\" is not known")).with_help(help))
}

/// Reads a suite of any protocol.
pub fn parse_suite(file: &str, text: &str, overrides: &[Override]) -> Result<Suite, SuiteError> {
    Suite::parse(file, text, overrides, &read_workload)
}

/// Text of the shipped suite of that name.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests;
