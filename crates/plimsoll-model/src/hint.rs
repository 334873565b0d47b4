//! Signs in the figures of a run that point at a known cause, as facts; `plimsoll-report` turns
//! them into sentences. `docs/hints.md` explains each to users.

use serde::{Deserialize, Serialize};

use crate::limit::LinkDirection;
use crate::monitored::MonitoredHost;

/// A sign, with its evidence. No hint proves that a server is at fault; each is a place to look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Hint {
    /// Replies came in parts, and the rest waited for a delayed acknowledgement.
    DelayedAck {
        /// Ops of which a part of the reply was waited for.
        ops: u64,
        /// Their share of the ops on kept connections.
        share_ratio: f64,
        /// Between these times.
        between_ns: [u64; 2],
        /// Acknowledgements that this host delayed in the window.
        delayed_acks: u64,
    },
    /// A segment was lost and sent again after the shortest retransmission timeout.
    Retransmitted {
        /// Ops that took the timeout longer.
        ops: u64,
        /// Their share of all ops.
        share_ratio: f64,
        /// Between these times.
        between_ns: [u64; 2],
        /// Retransmission timeouts and probes for lost tails on this host in the window, without
        /// those of connects.
        timeouts: u64,
        /// Connections that found an accept queue full, where a watched host reported it.
        listen_overflows: Option<u64>,
    },
    /// Connects waited until their first segment was sent again.
    SynRetransmitted {
        /// Ops on new connections that took a second or a few longer.
        ops: u64,
        /// Their share of the ops on new connections.
        share_ratio: f64,
        /// Connects that this host tried again in the window.
        syn_retransmits: u64,
        /// Connections that found an accept queue full, where a watched host reported it.
        listen_overflows: Option<u64>,
    },
    /// New connections are answered far more slowly than kept ones.
    SlowNewConnections {
        /// New connections in the window.
        connections: u64,
        /// Median service time of their first ops.
        new_p50_ns: u64,
        /// Median service time of later ops.
        kept_p50_ns: u64,
    },
    /// One target is far slower than the others, which are alike.
    SlowTarget {
        /// Which one, as given.
        target: String,
        /// Its median service time.
        p50_ns: u64,
        /// How many others there are.
        others: u64,
        /// Median service time of the slowest of the others.
        others_p50_ns: u64,
    },
    /// No reply at all for a while, again and again at even distances.
    EvenPauses {
        /// How many in the window.
        pauses: u64,
        /// Median distance between their begins.
        period_ns: u64,
        /// Median length.
        length_ns: u64,
    },
    /// A server's host dropped UDP datagrams, as the receive buffer of a socket was full.
    DatagramsDropped {
        /// Which host.
        host: MonitoredHost,
        /// Datagrams.
        dropped_per_s: f64,
        /// Their share of the datagrams that arrived.
        share_ratio: f64,
        /// Requests that clients sent again over UDP in the window.
        retransmissions: u64,
    },
    /// A host or a device on the way dropped packets.
    PacketsDropped {
        /// Which host.
        host: MonitoredHost,
        /// At this interface; absent where the backlog of a processor was full.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interface: Option<String>,
        /// On arrival, or when they were sent.
        direction: LinkDirection,
        /// Packets.
        dropped_per_s: f64,
        /// Their share of all packets that way.
        share_ratio: f64,
    },
}

/// A hint of a run, with the load points that show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunHint {
    /// Their positions in the ladder, in order.
    pub points: Vec<u32>,
    /// As the point shows it that shows it most.
    pub hint: Hint,
}

impl Hint {
    /// Section of the documentation that explains it.
    pub const fn page(&self) -> &'static str {
        match self {
            Self::DelayedAck { .. } => "docs/hints.md#delayed-acknowledgements",
            Self::Retransmitted { .. } => "docs/hints.md#retransmissions",
            Self::SynRetransmitted { .. } => "docs/hints.md#connects-tried-again",
            Self::SlowNewConnections { .. } => "docs/hints.md#slow-new-connections",
            Self::SlowTarget { .. } => "docs/hints.md#one-slow-target",
            Self::EvenPauses { .. } => "docs/hints.md#pauses-at-even-distances",
            Self::DatagramsDropped { .. } => "docs/hints.md#dropped-datagrams",
            Self::PacketsDropped { .. } => "docs/hints.md#dropped-packets",
        }
    }

    /// How much a point shows it, among points that show the same.
    pub fn strength(&self) -> f64 {
        let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
        match *self {
            Self::DelayedAck { share_ratio, .. }
            | Self::Retransmitted { share_ratio, .. }
            | Self::SynRetransmitted { share_ratio, .. }
            | Self::DatagramsDropped { share_ratio, .. }
            | Self::PacketsDropped { share_ratio, .. } => share_ratio,
            Self::SlowNewConnections { new_p50_ns, kept_p50_ns, .. } => {
                ratio(new_p50_ns, kept_p50_ns)
            }
            Self::SlowTarget { p50_ns, others_p50_ns, .. } => ratio(p50_ns, others_p50_ns),
            Self::EvenPauses { period_ns, length_ns, .. } => ratio(length_ns, period_ns),
        }
    }

    /// Both are signs of the same cause, at the same location.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SlowTarget { target, .. }, Self::SlowTarget { target: same, .. }) => {
                target == same
            }
            (
                Self::PacketsDropped { host, interface, direction, .. },
                Self::PacketsDropped { host: other, interface: at, direction: same, .. },
            ) => (host, interface, direction) == (other, at, same),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitored::{RoleBasis, SourceRole};

    fn all() -> [Hint; 8] {
        let host =
            MonitoredHost { source: None, role: SourceRole::Server, basis: RoleBasis::Address };
        let (listen_overflows, share_ratio) = (Some(31), 0.031);
        let between_ns = [39_000_000, 46_000_000];
        [
            Hint::DelayedAck { ops: 310, share_ratio, between_ns, delayed_acks: 312 },
            Hint::Retransmitted {
                ops: 30,
                share_ratio,
                between_ns,
                timeouts: 31,
                listen_overflows,
            },
            Hint::SynRetransmitted { ops: 30, share_ratio, syn_retransmits: 33, listen_overflows },
            Hint::SlowNewConnections {
                connections: 200,
                new_p50_ns: 52_000_000,
                kept_p50_ns: 180_000,
            },
            Hint::SlowTarget {
                target: "http://a/".into(),
                p50_ns: 9_000_000,
                others: 2,
                others_p50_ns: 1_000_000,
            },
            Hint::EvenPauses { pauses: 9, period_ns: 500_000_000, length_ns: 60_000_000 },
            Hint::DatagramsDropped {
                host: host.clone(),
                dropped_per_s: 30.5,
                share_ratio,
                retransmissions: 900,
            },
            Hint::PacketsDropped {
                host,
                interface: Some("eth0".into()),
                direction: LinkDirection::Received,
                dropped_per_s: 30.5,
                share_ratio,
            },
        ]
    }

    #[test]
    fn every_hint_names_a_section_that_the_page_has() {
        let page = include_str!("../../../docs/hints.md");
        let anchor = |title: &str| title.to_lowercase().replace(' ', "-");
        let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        let anchors: Vec<String> = headings.map(anchor).collect();
        for hint in all() {
            let (file, section) = hint.page().split_once('#').unwrap();
            assert_eq!(file, "docs/hints.md");
            assert!(anchors.iter().any(|it| it == section), "{section} is not in {anchors:?}");
        }
    }

    #[test]
    fn a_hint_survives_its_file() {
        for hint in all() {
            let json = serde_json::to_string(&hint).unwrap();
            assert_eq!(serde_json::from_str::<Hint>(&json).unwrap(), hint);
        }
    }
}
