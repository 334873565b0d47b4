//! Other hosts as sources of the same figures.
//!
//! Every source delivers what the samplers of this host read from files, so a figure has one name
//! and one meaning wherever it comes from: in frames, the texts of files of one instant in memory,
//! or as the `HostFigures` that those texts would be parsed to.
//!
//! | source | what comes |
//! | --- | --- |
//! | `ssh://` | the texts of `/proc` and `/sys`: the system's ssh runs a POSIX loop (`script.sh`, given on its standard input; nothing is installed) that answers each request with them |
//! | `http://` | of a Prometheus exporter, figures of its host; of GPUs and language models the text |
//! | `nginx://` | nginx's status page: figures of the server alone |
//! | `snmp://` | figures from the counters of IF-MIB and HOST-RESOURCES-MIB |
//!
//! Every source is polled when a sample is due, so its samples fall on the borders of the window
//! like those of this host, and carry this host's time: the middle between request and answer. No
//! clock of another host is in any figure; its offset is still reported, from the exchange with the
//! shortest round trip. Every source has a thread of its own ([`crate::RemoteMonitor`]). One that
//! does not answer leaves a gap: its next sample is a new base, so no rate spans the gap.

mod exporter;
mod http;
mod messages;
mod nginx;
mod snmp;
mod ssh;
mod url;

use std::ffi::OsString;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_model::disclosure::Setting;
use thiserror::Error;

use crate::clock::ClockReading;
use crate::inventory::DiskTree;
use crate::parse::whole;
use crate::root::Frame;
use crate::sampler::HostFigures;
pub use http::{Post, PostTls};
pub use nginx::NginxStatus;
pub use url::{COMMUNITY_LEFT_OUT, Community, MonitorUrl, MonitorUrlError};

/// Longest wait for a sample. A source that takes longer is away.
const SAMPLE_WAIT: Duration = Duration::from_secs(3);

/// What a source needs besides its URL.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The ssh program.
    pub ssh: PathBuf,
    /// Community that an SNMP agent answers to.
    pub community: Option<String>,
}

impl Default for SourceOptions {
    /// The system's ssh, no community.
    fn default() -> Self {
        Self { ssh: "ssh".into(), community: None }
    }
}

/// Why a source cannot be used.
#[derive(Debug, Error)]
pub enum SourceError {
    /// It is this host, which needs none.
    #[error("local is this host, which is always watched")]
    Local,
    /// It let us not in, or is not there.
    #[error("{source_name}: {message}; {remedy}")]
    Refused {
        /// Which source.
        source_name: String,
        /// The source's own message where it has any.
        message: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// A source that has answered once.
#[derive(Debug)]
pub struct Source {
    pub(crate) url: MonitorUrl,
    pub(crate) frame: Frame,
    pub(crate) peer: Box<dyn Peer>,
    pub(crate) facts: Vec<Setting>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) disks: DiskTree,
}

impl Source {
    /// Reaches a source and has it answer, before there is any load. It may take 15 s.
    pub fn open(url: &MonitorUrl, options: &SourceOptions) -> Result<Self, SourceError> {
        let mut addresses = match url {
            MonitorUrl::Prometheus { host, port, .. }
            | MonitorUrl::Nginx { host, port, .. }
            | MonitorUrl::Snmp { host, port, .. } => addresses_of_name(host, *port),
            MonitorUrl::Local | MonitorUrl::Ssh { .. } => Vec::new(),
        };
        let mut disks = DiskTree::default();
        let (opened, remedy) = match url {
            MonitorUrl::Local => return Err(SourceError::Local),
            MonitorUrl::Ssh { user, host, port } => {
                let destination =
                    ssh::Destination { user: user.clone(), host: host.clone(), port: *port };
                let remedy = "the command `ssh -o BatchMode=yes` to this host must work without a \
                              password: try it";
                let opened = ssh::SshPeer::open(destination, options);
                let opened = opened.map(|(peer, facts, described)| {
                    (addresses, disks) = described;
                    boxed((peer, facts))
                });
                (opened, remedy)
            }
            MonitorUrl::Prometheus { host, port, path } => {
                let remedy = "is node_exporter, windows_exporter, the DCGM exporter or a model \
                              server's /metrics there?";
                let opened = exporter::ExporterPeer::open(host, *port, path);
                let opened = opened.map(|(peer, facts, names)| {
                    disks = DiskTree::from_names(names);
                    boxed((peer, facts))
                });
                (opened, remedy)
            }
            MonitorUrl::Nginx { host, port, path } => {
                let remedy = "is `stub_status` on at that path, and does it allow this host?";
                (nginx::NginxPeer::open(host, *port, path).map(boxed), remedy)
            }
            MonitorUrl::Snmp { host, port, .. } => {
                let remedy = "is an agent there, does it let this host in, and is the community \
                              right (PLIMSOLL_SNMP_COMMUNITY)?";
                let community = options.community.as_deref().unwrap_or(snmp::COMMUNITY_DEFAULT);
                (snmp::SnmpPeer::open(host, *port, community).map(boxed), remedy)
            }
        };
        let name = url.name();
        let (peer, facts) = opened.map_err(|Lost(message)| SourceError::Refused {
            source_name: name.clone(),
            message,
            remedy,
        })?;
        let fact = |(what, value): (&str, String)| Setting::new(format!("{what} of {name}"), value);
        let facts = facts.into_iter().map(fact).collect();
        Ok(Self { url: url.clone(), frame: Frame::default(), peer, facts, addresses, disks })
    }

    /// Its disclosure: the host's description of itself, and the offset of its clock.
    pub fn facts(&self) -> &[Setting] {
        &self.facts
    }

    /// Addresses of its host, those of loopback and of single links left out: all that a host
    /// lists (ssh), else those that the name in the URL stands for.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The disks of its host; none where it reports none.
    pub const fn disks(&self) -> &DiskTree {
        &self.disks
    }

    /// Which one it is.
    pub const fn url(&self) -> &MonitorUrl {
        &self.url
    }
}

fn addresses_of_name(host: &str, port: u16) -> Vec<IpAddr> {
    let resolved = (host, port).to_socket_addrs().into_iter().flatten();
    resolved.map(|it| it.ip().to_canonical()).filter(|ip| !ip.is_loopback()).collect()
}

/// A fact of a source: its name, to which the source's is added, and its value.
type Fact = (&'static str, String);
type Boxed = (Box<dyn Peer>, Vec<Fact>);

fn boxed<P: Peer + 'static>((peer, facts): (P, Vec<Fact>)) -> Boxed {
    (Box::new(peer), facts)
}

/// Arguments of ssh for a shell on the host of a source; `None` where it is none of ssh's.
pub(crate) fn ssh_arguments(url: &MonitorUrl) -> Option<Vec<OsString>> {
    let MonitorUrl::Ssh { user, host, port } = url else { return None };
    let destination = ssh::Destination { user: user.clone(), host: host.clone(), port: *port };
    Some(ssh::arguments(&destination))
}

/// Another host that answers questions.
pub(crate) trait Peer: Send + std::fmt::Debug {
    /// Puts the current texts into the frame, if it has any. Returns within [`SAMPLE_WAIT`] where the source is
    /// connected, and in some seconds more where it must reconnect. `None`: it has nothing new
    /// yet, poll again.
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost>;

    /// From the next sample on, whoever listens on these ports is watched, with all descendants.
    fn watch_ports(&mut self, _ports: &[u16]) {}

    /// Looks for the servers' processes again before the next sample.
    fn rescan(&mut self) {}

    /// The next sample has every process and the interrupts, where the source can report them.
    fn read_all(&mut self) {}

    /// Holds programs that the source runs on this host to these cores.
    fn keep_to(&mut self, _cores: &[u32]) {}
}

/// Data of one instant, besides the texts of a frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fetched {
    /// When it was read, by the clocks of this host.
    pub(crate) at: ClockReading,
    /// The host's figures, where they are not in texts.
    pub(crate) figures: Option<HostFigures>,
    /// The servers' first processes, where the source reports them.
    pub(crate) servers: Vec<u32>,
    /// CPU time that the source has used on its host so far, where that can be had.
    pub(crate) cost_ns: Option<u64>,
}

/// Why a source did not answer, as text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Lost(pub(crate) String);

/// As `/proc/stat` counts time, in ticks of 10 ms.
fn ticks(seconds: f64) -> u64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    whole(seconds * TICKS_PER_SECOND)
}

/// As `/proc/meminfo` measures sizes, to the KiB.
fn whole_kib(bytes: f64) -> Option<u64> {
    const KIB: f64 = 1024.0;
    whole(bytes / KIB).checked_mul(KIB as u64)
}

/// Name of a disk or an interface in rows, without the blanks and colons of other systems.
fn row_name(name: &str) -> String {
    let allowed = |c: char| if c.is_alphanumeric() || "._-()#@".contains(c) { c } else { '_' };
    let word: String = name.trim_end_matches(':').chars().map(allowed).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}

/// The instant between question and answer, by both clocks of this host.
fn middle(requested: ClockReading, answered_ns: u64) -> ClockReading {
    let half = answered_ns.saturating_sub(requested.monotonic_ns) / 2;
    ClockReading {
        unix_ns: requested.unix_ns.saturating_add(half),
        monotonic_ns: requested.monotonic_ns.saturating_add(half),
    }
}

const NANOS_PER_MILLI: f64 = 1e6;

/// Another clock's reading less this host's, and by how much that may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockOffset {
    offset_ns: i128,
    error_ns: u64,
}

impl ClockOffset {
    /// Offset from one exchange. The other clock was read somewhere between request and answer, so
    /// the error is half the round trip, and half of that clock's resolution.
    fn from_exchange(
        requested: ClockReading,
        answered_ns: u64,
        reported_ns: u64,
        step_ns: u64,
    ) -> Self {
        let half = answered_ns.saturating_sub(requested.monotonic_ns) / 2;
        let here = i128::from(requested.unix_ns) + i128::from(half);
        Self {
            offset_ns: i128::from(reported_ns) + i128::from(step_ns / 2) - here,
            error_ns: half.saturating_add(step_ns / 2),
        }
    }

    /// The more accurate one.
    fn better(self, other: Self) -> Self {
        if other.error_ns < self.error_ns { other } else { self }
    }

    /// For the disclosure.
    fn text(self, exchanges: usize) -> String {
        let ms = self.offset_ns as f64 / NANOS_PER_MILLI;
        let error = self.error_ns as f64 / NANOS_PER_MILLI;
        let direction = if ms < 0.0 { "behind" } else { "ahead of" };
        let of = match exchanges {
            0 | 1 => "one round trip".to_owned(),
            n => format!("the shortest of {n} round trips"),
        };
        format!(
            "{:.2} ms {direction} this host's, give or take {error:.2} ms ({of}); samples carry this \
             host's time",
            ms.abs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTED: ClockReading = ClockReading { unix_ns: 5_000_000_000, monotonic_ns: 100 };

    #[test]
    fn the_shortest_round_trip_tells_best_and_its_half_is_the_error() {
        let slow = ClockOffset::from_exchange(REQUESTED, 100 + 8_000_000, 5_007_000_000, 0);
        let quick = ClockOffset::from_exchange(REQUESTED, 100 + 1_000_000, 5_002_000_000, 0);
        let best = slow.better(quick);
        assert_eq!(best, quick.better(slow));
        let text = best.text(2);
        assert!(text.starts_with("1.50 ms ahead of this host's, give or take 0.50 ms"), "{text}");
    }

    #[test]
    fn a_clock_told_in_seconds_is_known_to_half_a_second() {
        let offset = ClockOffset::from_exchange(REQUESTED, 100, 4_000_000_000, 1_000_000_000);
        assert_eq!(offset, ClockOffset { offset_ns: -500_000_000, error_ns: 500_000_000 });
        assert!(offset.text(1).contains("behind"), "{}", offset.text(1));
    }
}
