//! Other hosts as sources of the same figures.
//!
//! Whatever a source speaks, it ends as a frame: the texts of `/proc` and `/sys` of one instant, in
//! memory. The samplers of this host read a frame as they read files, so a figure has one name and
//! one meaning wherever it comes from.
//!
//! | source | how the texts come |
//! | --- | --- |
//! | `ssh://` | the system's ssh runs a POSIX loop (`script.sh`, given on its standard input; nothing is installed) that answers each request with the texts themselves |
//! | `http://` | a Prometheus exporter's metrics, written as those texts; of GPUs and language models as they are |
//! | `nginx://` | nginx's status page: figures of the server alone |
//! | `snmp://` | counters of IF-MIB and HOST-RESOURCES-MIB, written as those texts |
//!
//! Every source is asked when a sample is due, so its samples fall on the borders of the window
//! like those of this host, and carry this host's time: the middle between question and answer. No
//! clock of another host is in any figure; how far it is off is told all the same, by the exchange
//! with the shortest round trip. Every source has a thread of its own ([`crate::RemoteMonitor`]).
//! One that does not answer leaves a gap: its next sample is a new base, so no rate spans the gap.

mod exporter;
mod http;
mod messages;
mod nginx;
mod proc_texts;
mod snmp;
mod ssh;
mod url;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_model::disclosure::Setting;
use thiserror::Error;

use crate::clock::ClockReading;
use crate::root::Frame;
pub use http::Post;
pub use nginx::NginxStatus;
pub use url::{COMMUNITY_LEFT_OUT, Community, MonitorUrl, MonitorUrlError};

/// Longest wait for a sample. A source that takes longer is away.
const SAMPLE_WAIT: Duration = Duration::from_secs(3);

/// What a source needs besides its URL.
#[derive(Clone, Debug)]
pub struct SourceWish {
    /// The ssh program.
    pub ssh: PathBuf,
    /// What lets an SNMP agent answer.
    pub community: Option<String>,
}

impl Default for SourceWish {
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
    #[error("{source_name}: {words}; {remedy}")]
    Refused {
        /// Which source.
        source_name: String,
        /// In its own words where it has any.
        words: String,
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
}

impl Source {
    /// Reaches a source and has it answer, before there is any load. It may take 15 s.
    pub fn open(url: &MonitorUrl, wish: &SourceWish) -> Result<Self, SourceError> {
        let refused = |Lost(words): Lost, remedy| SourceError::Refused {
            source_name: url.name(),
            words,
            remedy,
        };
        let frame = Frame::default();
        let opened = match url {
            MonitorUrl::Local => return Err(SourceError::Local),
            MonitorUrl::Ssh { user, host, port } => {
                let whom = ssh::Whom { user: user.clone(), host: host.clone(), port: *port };
                let remedy = "the command `ssh -o BatchMode=yes` to this host must work without a \
                              password: try it";
                ssh::SshPeer::open(whom, wish).map(boxed).map_err(|lost| refused(lost, remedy))
            }
            MonitorUrl::Prometheus { host, port, path } => {
                let remedy = "is node_exporter, windows_exporter, the DCGM exporter or a model \
                              server's /metrics there?";
                exporter::ExporterPeer::open(host, *port, path)
                    .map(boxed)
                    .map_err(|lost| refused(lost, remedy))
            }
            MonitorUrl::Nginx { host, port, path } => {
                let remedy = "is `stub_status` on at that path, and does it allow this host?";
                nginx::NginxPeer::open(host, *port, path)
                    .map(boxed)
                    .map_err(|lost| refused(lost, remedy))
            }
            MonitorUrl::Snmp { host, port, .. } => {
                let remedy = "is an agent there, does it let this host in, and is the community \
                              right (PLIMSOLL_SNMP_COMMUNITY)?";
                let community = wish.community.as_deref().unwrap_or(snmp::COMMUNITY_DEFAULT);
                snmp::SnmpPeer::open(host, *port, community)
                    .map(boxed)
                    .map_err(|lost| refused(lost, remedy))
            }
        };
        let (peer, facts) = opened?;
        let name = url.name();
        let fact = |(what, value): (&str, String)| Setting::new(format!("{what} of {name}"), value);
        Ok(Self { url: url.clone(), frame, peer, facts: facts.into_iter().map(fact).collect() })
    }

    /// What is disclosed of it: what the host says it is, and how far its clock is off.
    pub fn facts(&self) -> &[Setting] {
        &self.facts
    }

    /// Which one it is.
    pub const fn url(&self) -> &MonitorUrl {
        &self.url
    }
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
    let whom = ssh::Whom { user: user.clone(), host: host.clone(), port: *port };
    Some(ssh::arguments(&whom))
}

/// Another host that answers questions.
pub(crate) trait Peer: Send + std::fmt::Debug {
    /// Puts the texts of now into the frame. Returns within [`SAMPLE_WAIT`] where the source is
    /// connected, and in some seconds more where it must be reached anew. `None`: it has nothing
    /// new yet, ask again.
    fn fetch(&mut self, frame: &Frame) -> Result<Option<Fetched>, Lost>;

    /// From the next sample on, whoever listens on these ports is watched, with all descendants.
    fn watch_ports(&mut self, _ports: &[u16]) {}

    /// Looks for the servers' processes again before the next sample.
    fn rescan(&mut self) {}

    /// The next sample has every process and the interrupts, where the source can tell them.
    fn read_all(&mut self) {}

    /// Holds programs that the source runs on this host to these cores.
    fn keep_to(&mut self, _cores: &[u32]) {}

    /// Columns that the source cannot tell, as table and column; the texts have zeros there.
    fn untold(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// What came with a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fetched {
    /// When the texts were read, by the clocks of this host.
    pub(crate) at: ClockReading,
    /// The servers' first processes, where the source can tell.
    pub(crate) servers: Vec<u32>,
    /// CPU time that the source has used on its host so far, where that can be had.
    pub(crate) cost_ns: Option<u64>,
}

/// Why a source did not answer, in words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Lost(pub(crate) String);

/// The instant between question and answer, by both clocks of this host.
fn middle(asked: ClockReading, answered_ns: u64) -> ClockReading {
    let half = answered_ns.saturating_sub(asked.monotonic_ns) / 2;
    ClockReading {
        unix_ns: asked.unix_ns.saturating_add(half),
        monotonic_ns: asked.monotonic_ns.saturating_add(half),
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
    /// Of one exchange. The other clock was read somewhere between question and answer, so the
    /// error is half the round trip, and half of the step in which that clock was told.
    fn of(asked: ClockReading, answered_ns: u64, told_ns: u64, step_ns: u64) -> Self {
        let half = answered_ns.saturating_sub(asked.monotonic_ns) / 2;
        let here = i128::from(asked.unix_ns) + i128::from(half);
        Self {
            offset_ns: i128::from(told_ns) + i128::from(step_ns / 2) - here,
            error_ns: half.saturating_add(step_ns / 2),
        }
    }

    /// The one that is known better.
    fn better(self, other: Self) -> Self {
        if other.error_ns < self.error_ns { other } else { self }
    }

    /// For the disclosure.
    fn text(self, exchanges: usize) -> String {
        let ms = self.offset_ns as f64 / NANOS_PER_MILLI;
        let error = self.error_ns as f64 / NANOS_PER_MILLI;
        let way = if ms < 0.0 { "behind" } else { "ahead of" };
        let of = match exchanges {
            0 | 1 => "one round trip".to_owned(),
            n => format!("the shortest of {n} round trips"),
        };
        format!(
            "{:.2} ms {way} this host's, give or take {error:.2} ms ({of}); samples carry this \
             host's time",
            ms.abs()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: ClockReading = ClockReading { unix_ns: 5_000_000_000, monotonic_ns: 100 };

    #[test]
    fn the_shortest_round_trip_tells_best_and_its_half_is_the_error() {
        let slow = ClockOffset::of(ASKED, 100 + 8_000_000, 5_007_000_000, 0);
        let quick = ClockOffset::of(ASKED, 100 + 1_000_000, 5_002_000_000, 0);
        let best = slow.better(quick);
        assert_eq!(best, quick.better(slow));
        let text = best.text(2);
        assert!(text.starts_with("1.50 ms ahead of this host's, give or take 0.50 ms"), "{text}");
    }

    #[test]
    fn a_clock_told_in_seconds_is_known_to_half_a_second() {
        let offset = ClockOffset::of(ASKED, 100, 4_000_000_000, 1_000_000_000);
        assert_eq!(offset, ClockOffset { offset_ns: -500_000_000, error_ns: 500_000_000 });
        assert!(offset.text(1).contains("behind"), "{}", offset.text(1));
    }
}
