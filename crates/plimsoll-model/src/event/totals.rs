//! What workers count over the window of a load point.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CoarseTimes, CutOff, Phase, Signs};
use crate::nonconformity::Nonconformities;
use crate::outcome::ClientCounts;
use crate::units::Nanos;

/// Counts of one op kind over the window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpCounts {
    /// Ops due in the window that ended, however.
    pub count: u64,
    /// Of those, failed or unexpected.
    pub errors: u64,
    /// Of those, failed as the script wanted.
    pub expected_failures: u64,
    /// Ops that ended within the window, however, whenever they were due. The shares of a mix are
    /// taken from these: when ops wait long, those due in the window and what follows from those
    /// done in it are not of the same draws.
    #[serde(default)]
    pub ended_in_window: u64,
}

/// An op that ended with another status than expected, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnexpectedCount {
    /// Op name.
    pub op: String,
    /// Status expected.
    pub expected: u32,
    /// Status seen.
    pub actual: u32,
    /// How often.
    pub count: u64,
    /// The protocol's name of `expected`, where it has names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_name: Option<String>,
    /// The protocol's name of `actual`, where it has names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_name: Option<String>,
}

/// One worker's totals of a point. Everything adds up over workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerTotals {
    /// Ops whose due time lies in the window.
    pub due: u64,
    /// Ops that finished without error within the window, whatever their due time.
    pub done_in_window: u64,
    /// Ops due in the window that were never sent (backlog full, or still waiting after the drain).
    pub not_sent: u64,
    /// Ops due in the window still without reply when the drain ended, before their timeout. No
    /// errors: neither in `ops` nor in `errors`.
    pub unfinished: u64,
    /// The least age, at the end of the drain, of an op that was not sent or not finished: response
    /// times up to it are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_age_min: Option<Nanos>,
    /// The least time since it was sent of an op that was not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_age_min: Option<Nanos>,
    /// The first ops of the point: those sent before a quarter of the clients were busy.
    #[serde(default)]
    pub first_ops: u64,
    /// Their service time, summed.
    #[serde(default)]
    pub first_service_ns_total: u64,
    /// By op name, over ops due in the window.
    pub ops: BTreeMap<String, OpCounts>,
    /// By text form of the error class, over ops due in the window.
    pub errors: BTreeMap<String, u64>,
    /// Errors of ops due in warm-up, by class: a server that is broken is broken there too.
    pub warm_up_errors: BTreeMap<String, u64>,
    /// Of the failed ops due in the window, those whose requests were not yet sent whole.
    #[serde(default, skip_serializing_if = "CutOff::is_empty")]
    pub cut_off: CutOff,
    /// Unexpected statuses, over ops due in the window.
    pub unexpected: Vec<UnexpectedCount>,
    /// Ops sent again although the first try may have worked.
    pub ambiguous: u64,
    /// UDP retransmissions.
    pub retransmissions: u64,
    /// Connections opened in the window.
    pub connects: u64,
    /// Application bytes read by ops that finished in the window.
    pub bytes_read: u64,
    /// Application bytes written by ops that finished in the window.
    pub bytes_written: u64,
    /// Bytes received on sockets in the window.
    pub wire_bytes_in: u64,
    /// Bytes sent on sockets in the window.
    pub wire_bytes_out: u64,
    /// Ops whose content was verified in full.
    pub verified: u64,
    /// Where replies of the window differ from their specification and mean the same.
    #[serde(default, skip_serializing_if = "Nonconformities::is_empty")]
    pub nonconformities: Nonconformities,
    /// Ops due in the window whose `arrived` is the kernel's stamp.
    #[serde(default)]
    pub arrived_stamped: u64,
    /// Ops due in the window whose `arrived` is only bounded, by the end of the connection's
    /// previous empty read: several replies were waiting, or the socket has no stamps.
    #[serde(default)]
    pub arrived_bounded: u64,
    /// Clients that took part to the end of the window.
    pub clients_participating: u32,
    /// Closed loads: pieces of work finished in the window.
    pub pieces: u64,
    /// Closed loads: time in the window from due to done of those pieces, summed.
    pub piece_ns_total: u64,
    /// Closed loads: think time drawn for those pieces, summed.
    pub think_ns_total: u64,
    /// Open loads: when the last op of the window that was sent came due, from the start of the
    /// point.
    #[serde(default)]
    pub last_due: Nanos,
    /// When it was sent.
    #[serde(default)]
    pub last_sent: Nanos,
    /// By target, in the order of the assignment's endpoints.
    #[serde(default)]
    pub per_target: Vec<TargetTotals>,
    /// By client, in the order of their numbers; empty when the assignment did not ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_client: Vec<ClientCounts>,
    /// Ops that ended in each [`TICK`] of the window's first minute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done_by_tick: Vec<u32>,
    /// Ops that were sent in each, of those that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sent_by_tick: Vec<u32>,
    /// What replies looked like.
    #[serde(default, skip_serializing_if = "Signs::is_empty")]
    pub signs: Signs,
}

/// One second of a point over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondRecord {
    /// 0, 1, 2 … from the start of the point.
    pub second: u32,
    /// Phase in which the ops finished; a second that holds a border has a record for each side.
    pub phase: Phase,
    /// Length of this record.
    pub length_ns: u64,
    /// Ops finished.
    pub done: u64,
    /// Of those, failed.
    pub errors: u64,
    /// Application bytes read.
    pub bytes_read: u64,
    /// Application bytes written.
    pub bytes_written: u64,
}

/// One target's share of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetTotals {
    /// As given, without password.
    pub target: String,
    /// Ops that finished without error in the window.
    pub done_in_window: u64,
    /// Ops due in the window that failed.
    pub errors: u64,
    /// Application bytes read by ops that finished in the window.
    pub bytes_read: u64,
    /// Application bytes written by ops that finished in the window.
    #[serde(default)]
    pub bytes_written: u64,
    /// done − sent of ops due in the window that went well.
    #[serde(default, skip_serializing_if = "CoarseTimes::is_empty")]
    pub service: CoarseTimes,
}

/// Time over which ops are counted for what changes within a second.
pub const TICK: Nanos = Nanos::from_millis(50);
/// Ticks of a load point that are kept: a minute.
pub const TICKS_MAX: usize = 1_200;

impl WorkerTotals {
    /// By op name, the ops from which shares of the mix are taken: those that ended within the
    /// window. A bundle written before they were counted has those due in it instead.
    pub fn mix(&self) -> BTreeMap<&str, u64> {
        let of = |pick: fn(&OpCounts) -> u64| {
            self.ops.iter().map(move |(name, counts)| (name.as_str(), pick(counts)))
        };
        if of(|counts| counts.ended_in_window).all(|(_, ended)| ended == 0) {
            return of(|counts| counts.count).collect();
        }
        of(|counts| counts.ended_in_window).collect()
    }
}
