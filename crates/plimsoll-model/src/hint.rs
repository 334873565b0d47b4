//! Signs in the figures of a run that point at a known cause. Facts only: their words are made by
//! `Display`, here and nowhere else. `docs/hints.md` explains each to users.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::{Nanos, grouped};

/// A sign, with what it was seen by. None says that a server is at fault; each is a place to look.
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
        /// Connections that found an accept queue full, where a watched host told.
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
        /// Connections that found an accept queue full, where a watched host told.
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
        }
    }

    /// How much a point shows it, among points that show the same.
    pub fn strength(&self) -> f64 {
        let ratio = |a: u64, b: u64| a as f64 / b.max(1) as f64;
        match *self {
            Self::DelayedAck { share_ratio, .. }
            | Self::Retransmitted { share_ratio, .. }
            | Self::SynRetransmitted { share_ratio, .. } => share_ratio,
            Self::SlowNewConnections { new_p50_ns, kept_p50_ns, .. } => {
                ratio(new_p50_ns, kept_p50_ns)
            }
            Self::SlowTarget { p50_ns, others_p50_ns, .. } => ratio(p50_ns, others_p50_ns),
            Self::EvenPauses { period_ns, length_ns, .. } => ratio(length_ns, period_ns),
        }
    }

    /// Both are signs of the same, at the same place.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SlowTarget { target, .. }, Self::SlowTarget { target: same, .. }) => {
                target == same
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// `310 ops (3.1 %)`.
struct Ops(u64, f64);

impl fmt::Display for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ops, share) = *self;
        let digits = if share < 0.1 { 2 } else { 0 };
        write!(f, "{} ops ({:.digits$} %)", grouped(ops as f64), share * 100.0)
    }
}

/// What a watched host said of its accept queues, as a clause.
struct AcceptQueue(Option<u64>);

impl fmt::Display for AcceptQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(times) if times > 0 => {
                let times = grouped(times as f64);
                write!(f, "; the accept queue of a listening socket was full {times} times")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64| grouped(n as f64);
        match *self {
            Self::DelayedAck { ops, share_ratio, between_ns: [low, high], delayed_acks } => write!(
                f,
                "{} waited {} to {} for the rest of a reply, and this host delayed {} \
                 acknowledgements: the server seems to write a reply in parts without TCP_NODELAY",
                Ops(ops, share_ratio),
                Nanos(low),
                Nanos(high),
                count(delayed_acks),
            ),
            Self::Retransmitted {
                ops,
                share_ratio,
                between_ns: [low, high],
                timeouts,
                listen_overflows,
            } => write!(
                f,
                "{} took {} to {}, as long as TCP's shortest retransmission timeout, and TCP had {} \
                 timeouts or probes for lost tails: packets were lost{}",
                Ops(ops, share_ratio),
                Nanos(low),
                Nanos(high),
                count(timeouts),
                AcceptQueue(listen_overflows),
            ),
            Self::SynRetransmitted { ops, share_ratio, syn_retransmits, listen_overflows } => {
                write!(
                    f,
                    "{} on new connections took 1 s or a few seconds longer, and TCP tried {} \
                     connects again: the server did not take them at first{}",
                    Ops(ops, share_ratio),
                    count(syn_retransmits),
                    AcceptQueue(listen_overflows),
                )
            }
            Self::SlowNewConnections { connections, new_p50_ns, kept_p50_ns } => write!(
                f,
                "the first op on a new connection takes {} (median of {}), later ones {}",
                Nanos(new_p50_ns),
                count(connections),
                Nanos(kept_p50_ns),
            ),
            Self::SlowTarget { ref target, p50_ns, others, others_p50_ns } => {
                let others = match others {
                    1 => "the other target".to_owned(),
                    n => format!("each of the {n} others"),
                };
                write!(
                    f,
                    "{target} takes {} (median), {others} at most {}",
                    Nanos(p50_ns),
                    Nanos(others_p50_ns),
                )
            }
            Self::EvenPauses { pauses, period_ns, length_ns } => write!(
                f,
                "no replies for {} every {} ({} times), with ops in flight: garbage collection, \
                 a timer or a CPU quota in the server",
                Nanos(length_ns),
                Nanos(period_ns),
                count(pauses),
            ),
        }
    }
}

impl fmt::Display for RunHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let points: Vec<String> = self.points.iter().map(u32::to_string).collect();
        let word = if points.len() == 1 { "point" } else { "points" };
        write!(f, "{} ({word} {}; {})", self.hint, points.join(", "), self.hint.page())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Hint; 6] {
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
    fn a_hint_survives_its_file_and_says_its_facts() {
        let texts = all().map(|hint| {
            let json = serde_json::to_string(&hint).unwrap();
            assert_eq!(serde_json::from_str::<Hint>(&json).unwrap(), hint);
            RunHint { points: vec![1, 3], hint }.to_string()
        });
        let facts =
            ["310 ops (3.10 %)", "31 timeouts", "full 31 times", "52.0 ms", "2 others", "500 ms"];
        for (text, fact) in texts.iter().zip(facts) {
            assert!(text.contains(fact) && text.contains("(points 1, 3; docs/"), "{text}");
        }
    }
}
