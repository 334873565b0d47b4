//! What workers count over the window of a load point, and how it adds up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::session_counts::{GenerationCounts, JourneyCounts, is_zero, sum};
use super::{CoarseTimes, Phase, Signs};
use crate::counters::{Counter, adds_up, with_counters};
use crate::late::{LateOps, sum_of_late};
use crate::nonconformity::Nonconformities;
use crate::outcome::{ClientCounts, ErrorClass};
use crate::units::{Nanos, keep_least};

adds_up! {
    /// Counts of one op kind over the window.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct OpCounts {
        /// Ops due in the window that ended, however.
        pub count: u64 => sum,
        /// Of those, failed or unexpected.
        pub errors: u64 => sum,
        /// Of those, failed as the script expected.
        pub expected_failures: u64 => sum,
        /// Ops that ended within the window, in any way, whenever they were due. The shares of a
        /// mix are taken from these: if ops wait long, the ops due in the window and those done in
        /// it come from different draws.
        #[serde(default)]
        pub ended_in_window: u64 => sum,
    }
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

with_counters! {
    /// One worker's totals of a point. Everything adds up over workers.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct WorkerTotals adds up {
        /// Ops whose due time lies in the window.
        pub due: u64 => sum,
        /// Ops that finished without error within the window, whatever their due time.
        pub done_in_window: u64 => sum,
        /// Ops due in the window that ended well and kept the limits of a good op.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub good: u64 => sum,
        /// Ops that ended within the window, well and within these limits, whatever their due time.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub good_in_window: u64 => sum,
        /// Ops due in the window still without reply when the drain ended, before their timeout. No
        /// errors: neither in `ops` nor in `errors`.
        pub unfinished: u64 => sum,
        /// The least age, at the end of the drain, of an op that was not sent or not finished:
        /// response times up to it are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub response_age_min: Option<Nanos> => keep_least,
        /// The least time since it was sent of an op that was not finished.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub service_age_min: Option<Nanos> => keep_least,
        /// The first ops of the point: those sent before a quarter of the clients were busy.
        #[serde(default)]
        pub first_ops: u64 => sum,
        /// Their service time, summed.
        #[serde(default)]
        pub first_service_ns_total: u64 => sum,
        /// By op name, over ops due in the window.
        pub ops: BTreeMap<String, OpCounts> => sum_by_op,
        /// By text form of the error class, over ops due in the window.
        pub errors: BTreeMap<String, u64> => sum_by_class,
        /// Errors of ops due in warm-up, by class: a server that is broken is broken there too.
        pub warm_up_errors: BTreeMap<String, u64> => sum_by_class,
        /// Of the failed ops due in the window, those whose requests were not yet sent whole.
        #[serde(default, skip_serializing_if = "CutOff::is_empty")]
        pub cut_off: CutOff => CutOff::add,
        /// Application bytes read and written by failed ops that finished in the window.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub failed_bytes: u64 => sum,
        /// Unexpected statuses, over ops due in the window.
        pub unexpected: Vec<UnexpectedCount> => sum_by_status,
        /// Where replies of the window differ from their specification and mean the same.
        #[serde(default, skip_serializing_if = "Nonconformities::is_empty")]
        pub nonconformities: Nonconformities => each_once,
        /// Ops whose stream the server reset, on a connection that it kept.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub stream_resets: u64 => sum,
        /// Totals of a language model's streamed answers.
        #[serde(default, skip_serializing_if = "GenerationCounts::is_empty")]
        pub generation: GenerationCounts => GenerationCounts::add,
        /// Totals of journeys.
        #[serde(default, skip_serializing_if = "JourneyCounts::is_empty")]
        pub journeys: JourneyCounts => JourneyCounts::add,
        /// Ops due in the window whose `arrived` is the kernel's stamp.
        #[serde(default)]
        pub arrived_stamped: u64 => sum,
        /// Ops due in the window whose `arrived` is only bounded, by the end of the connection's
        /// previous empty read: several replies were waiting, or the socket has no stamps.
        #[serde(default)]
        pub arrived_bounded: u64 => sum,
        /// Clients that took part to the end of the window.
        pub clients_participating: u32 => sum,
        /// Closed loads: pieces of work finished in the window.
        pub pieces: u64 => sum,
        /// Closed loads: time in the window from due to done of those pieces, summed.
        pub piece_ns_total: u64 => sum,
        /// Closed loads: think time drawn for those pieces, summed.
        pub think_ns_total: u64 => sum,
        /// Closed loads: the squares of the lengths of those pieces with their think times, in ns²,
        /// summed.
        #[serde(default, skip_serializing_if = "is_zero_f64")]
        pub cycle_ns_squares: f64 => sum,
        /// Open loads: when the last op of the window that was sent came due, from the start of the
        /// point.
        #[serde(default)]
        pub last_due: Nanos => latest,
        /// When it was sent.
        #[serde(default)]
        pub last_sent: Nanos => latest,
        /// Recorded schedules that play once: ops of the window that were sent late.
        #[serde(default, skip_serializing_if = "LateOps::is_empty")]
        pub late: LateOps => sum_of_late,
        /// By target, in the order of the assignment's endpoints: the same server may be named
        /// twice, for twice the connections.
        #[serde(default)]
        pub per_target: Vec<TargetTotals> => sum_by_target,
        /// By client, in the order of their numbers; empty unless the assignment requests it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub per_client: Vec<ClientCounts> => all_clients,
        /// Ops that ended in each [`TICK`] of the window's first minute.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub done_by_tick: Vec<u32> => sum_by_tick,
        /// Ops that were sent in each, of those that ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub sent_by_tick: Vec<u32> => sum_by_tick,
        /// Counts of each of the equal slices of the window, by `Phases::slice_of_window`; empty
        /// where the window is a number of ops.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub slices: Vec<SliceCounts> => sum_by_slice,
        /// What replies looked like.
        #[serde(default, skip_serializing_if = "Signs::is_empty")]
        pub signs: Signs => Signs::add,
    }
}

fn is_zero_f64(value: &f64) -> bool {
    *value == 0.0
}

with_counters! {
    /// What only a protocol can count: its sessions use the counters that are theirs.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct SessionCounters adds up {
        /// Where replies differ from their specification and mean the same.
        pub nonconformities: Nonconformities => each_once,
        /// Ops whose stream the server reset, on a connection that it kept.
        pub stream_resets: u64 => sum,
        /// Totals of a language model's streamed answers.
        pub generation: GenerationCounts => GenerationCounts::add,
        /// Totals of journeys.
        #[serde(default, skip_serializing_if = "JourneyCounts::is_empty")]
        pub journeys: JourneyCounts => JourneyCounts::add,
    }
}

adds_up! {
    /// One target's share of a point.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TargetTotals {
        /// As given, without password.
        pub target: String => alike,
        /// Ops that finished without error in the window.
        pub done_in_window: u64 => sum,
        /// Ops due in the window that failed.
        pub errors: u64 => sum,
        /// Application bytes read by ops that finished in the window.
        pub bytes_read: u64 => sum,
        /// Application bytes written by ops that finished in the window.
        #[serde(default)]
        pub bytes_written: u64 => sum,
        /// done − sent of ops due in the window that went well.
        #[serde(default, skip_serializing_if = "CoarseTimes::is_empty")]
        pub service: CoarseTimes => sum_of_times,
    }
}

adds_up! {
    /// One second of a point, or a part of it: of one worker, or over all workers.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SecondRecord {
        /// 0, 1, 2 … from the start of the point.
        pub second: u32 => alike,
        /// Phase in which the ops finished; a second that contains a border has a record for each
        /// side.
        pub phase: Phase => alike,
        /// Length of this record.
        pub length_ns: u64 => alike,
        /// Ops that finished, whatever their due time.
        pub done: u64 => sum,
        /// Of those, failed.
        pub errors: u64 => sum,
        /// Application bytes read by them.
        pub bytes_read: u64 => sum,
        /// Application bytes written by them.
        pub bytes_written: u64 => sum,
        /// Of them, those that ended well and kept the limits of a good op.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub good: u64 => sum,
        /// Chunks of streamed replies that came, whatever the due time of their op.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub chunks: u64 => sum,
    }
}

adds_up! {
    /// Counts of a slice of the window: of what ended in it, whenever it was due.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct SliceCounts {
        /// Ops, however they ended.
        #[serde(skip_serializing_if = "is_zero")]
        pub done: u64 => sum,
        /// Of those, the ones that failed.
        #[serde(skip_serializing_if = "is_zero")]
        pub errors: u64 => sum,
        /// Of the ops, those that ended well and kept the limits of a good op.
        #[serde(skip_serializing_if = "is_zero")]
        pub good: u64 => sum,
        /// Chunks of streamed replies, whatever the due time of their op.
        #[serde(skip_serializing_if = "is_zero")]
        pub chunks: u64 => sum,
        /// Closed loads: pieces of work.
        #[serde(skip_serializing_if = "is_zero")]
        pub pieces: u64 => sum,
        /// Closed loads: the cycles of those pieces, summed. A cycle is the time from the end of a
        /// client's last piece to the end of this one: its think time and the piece.
        #[serde(skip_serializing_if = "is_zero")]
        pub cycle_ns_total: u64 => sum,
    }
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

    /// Adds what sessions counted.
    pub fn add_sessions(&mut self, sessions: &SessionCounters) {
        for counter in Counter::ALL {
            *self.counter_mut(*counter) += sessions.counter(*counter);
        }
        self.nonconformities.add(&sessions.nonconformities);
        self.stream_resets += sessions.stream_resets;
        self.generation.add(sessions.generation.clone());
        self.journeys.add(sessions.journeys.clone());
    }
}

/// Every part has the same.
fn alike<T>(_: &mut T, _: T) {}

fn latest(latest: &mut Nanos, part: Nanos) {
    *latest = (*latest).max(part);
}

fn sum_by_op(sum: &mut BTreeMap<String, OpCounts>, part: BTreeMap<String, OpCounts>) {
    part.into_iter().for_each(|(op, counts)| sum.entry(op).or_default().add(counts));
}

fn sum_by_class(sum: &mut BTreeMap<String, u64>, part: BTreeMap<String, u64>) {
    part.into_iter().for_each(|(class, count)| *sum.entry(class).or_default() += count);
}

fn sum_by_status(sum: &mut Vec<UnexpectedCount>, part: Vec<UnexpectedCount>) {
    for item in part {
        let same = |existing: &&mut UnexpectedCount| {
            (&existing.op, existing.expected, existing.actual)
                == (&item.op, item.expected, item.actual)
        };
        match sum.iter_mut().find(same) {
            Some(existing) => existing.count += item.count,
            None => sum.push(item),
        }
    }
    sum.sort();
}

fn sum_by_target(sum: &mut Vec<TargetTotals>, part: Vec<TargetTotals>) {
    for (at, target) in part.into_iter().enumerate() {
        match sum.get_mut(at) {
            Some(existing) => existing.add(target),
            None => sum.push(target),
        }
    }
}

fn sum_by_tick(sum: &mut Vec<u32>, part: Vec<u32>) {
    sum.resize(sum.len().max(part.len()), 0);
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

fn sum_by_slice(sum: &mut Vec<SliceCounts>, part: Vec<SliceCounts>) {
    sum.resize(sum.len().max(part.len()), SliceCounts::default());
    sum.iter_mut().zip(part).for_each(|(sum, part)| sum.add(part));
}

fn sum_of_times(sum: &mut CoarseTimes, part: CoarseTimes) {
    sum.add(&part);
}

fn all_clients(all: &mut Vec<ClientCounts>, part: Vec<ClientCounts>) {
    all.extend(part);
    all.sort_by_key(|counts| counts.client);
}

fn each_once(all: &mut Nonconformities, part: Nonconformities) {
    all.add(&part);
}

/// Outcomes of ops whose requests the socket had not taken whole. A server that answers before
/// it has read a body, and closes, resets the connection: some clients get its status, others only
/// the reset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutOff {
    /// Ops that got a status other than the expected one: each status and how many.
    pub answered: Vec<(u32, u64)>,
    /// Ops that lost their connection, before the reply began or within it.
    pub lost: u64,
}

impl CutOff {
    /// There were none.
    pub fn is_empty(&self) -> bool {
        self.lost == 0 && self.answered.is_empty()
    }

    /// Counts one more, if its request was cut off by the server.
    pub fn count(&mut self, class: ErrorClass) {
        match class {
            ErrorClass::Status(status) => self.answer(status, 1),
            ErrorClass::Transport | ErrorClass::Truncated => self.lost += 1,
            _ => {}
        }
    }

    /// Adds what another worker saw.
    pub fn add(&mut self, other: Self) {
        self.lost += other.lost;
        for (status, count) in other.answered {
            self.answer(status, count);
        }
    }

    fn answer(&mut self, status: u32, more: u64) {
        match self.answered.iter_mut().find(|(existing, _)| *existing == status) {
            Some((_, count)) => *count += more,
            None => self.answered.push((status, more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same_server(done_in_window: u64) -> TargetTotals {
        TargetTotals { target: "http://h/".into(), done_in_window, ..TargetTotals::default() }
    }

    fn did(client: u32, ops: u64) -> ClientCounts {
        ClientCounts { client, done: vec![ops] }
    }

    #[test]
    fn totals_of_workers_add_up() {
        let one = WorkerTotals {
            due: 3,
            arrived_stamped: 2,
            arrived_bounded: 1,
            errors: BTreeMap::from([("timeout".into(), 1)]),
            clients_participating: 4,
            per_target: vec![same_server(5), same_server(7)],
            per_client: vec![did(1, 4), did(3, 2)],
            retransmissions: 2,
            ..WorkerTotals::default()
        };
        let mut sum = WorkerTotals::default();
        sum.add(one.clone());
        sum.add(WorkerTotals { per_client: vec![did(0, 9)], ..one });
        assert_eq!((sum.arrived_stamped, sum.arrived_bounded), (4, 2));
        assert_eq!((sum.due, sum.errors["timeout"], sum.clients_participating), (6, 2, 8));
        assert_eq!(sum.per_target, [same_server(10), same_server(14)]);
        assert_eq!(sum.per_client, [did(0, 9), did(1, 4), did(3, 2)], "by number");
        assert_eq!(sum.counter(Counter::Retransmissions), 4);
        sum.add_sessions(&SessionCounters { retransmissions: 3, ..SessionCounters::default() });
        assert_eq!(sum.retransmissions, 7);
    }

    #[test]
    fn statuses_and_losses_add_up_over_workers_and_are_left_out_of_a_journal_without_any() {
        let mut sum = CutOff::default();
        assert!(sum.is_empty());
        sum.count(ErrorClass::Timeout);
        assert!(sum.is_empty(), "a server that is silent has cut nothing off");
        for class in [ErrorClass::Status(413), ErrorClass::Transport, ErrorClass::Truncated] {
            sum.count(class);
        }
        sum.add(sum.clone());
        let json = serde_json::to_string(&sum).unwrap();
        assert_eq!(json, r#"{"answered":[[413,2]],"lost":4}"#);
        assert_eq!(serde_json::from_str::<CutOff>(&json).unwrap(), sum);
    }
}
