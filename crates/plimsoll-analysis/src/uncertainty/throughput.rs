//! The interval of a throughput.
//!
//! An open load that was sustained did what its schedule has: that is exact. Other open loads are
//! counts of slices. In a closed load a window cuts the waves of its clients anywhere, so that
//! counts are off by up to a wave. The time of a client's cycle is known all the same: N clients
//! that take C for each piece of work do N / C of them a second, and its error is that of the mean
//! cycle (waiting times of queues are estimated alike: Kim and Whitt, Operations Research 2013).
//!
//! A closed load without the generator's delays would have done more: up to the same work in the
//! time of its clients less the generator's part of it.

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{OpTimes, PointRecord, SliceCounts};
use plimsoll_model::result::Uncertainty;
use plimsoll_model::suite::Suite;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::health::ClientTime;
use crate::raw::PointTimes;
use crate::sampling::NORMAL_95;
use crate::standard_error::{StandardError, ratio_parts};
use crate::validity::load_was_sustained;

/// Ops to each degree of freedom.
pub(crate) const OPS_PER_DEGREE: f64 = 4.0;
/// Waves of clients to each degree of freedom.
const WAVES_PER_DEGREE: f64 = 2.0;

/// Throughput of a point.
pub(super) fn achieved(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> Option<Uncertainty> {
    let seconds = record.measured_ns.as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let value = record.totals.done_in_window as f64 / seconds;
    let is_open = matches!(record.load, Load::Open { .. });
    if is_open && !record.load.is_sessions() && load_was_sustained(suite, record) {
        // The schedule gives the number of ops, and all were done.
        return Some(Uncertainty { value, ..Uncertainty::default() });
    }
    let rate = match Cycles::from_record(record, total, times) {
        Some(cycles) => cycles.answers(record),
        None => Rate::from_counts(value, &done_by_slice(record, times))?,
    };
    let closed = if is_open { None } else { Some(ClientTime::from_record(record, total)?) };
    Some(rate.uncertainty(closed))
}

/// Ops and length of each slice of the window.
fn done_by_slice(record: &PointRecord, times: &PointTimes) -> Vec<(f64, f64)> {
    let by_slice = by_slice(record, |slice| slice.done as f64);
    if !by_slice.is_empty() {
        return by_slice;
    }
    // Each reaches to where the next begins.
    let end = record.warm_up_ns.saturating_add(record.measured_ns);
    let ends = times.slices().map(|(start, _)| start).skip(1).chain([end]);
    let parts = times.slices().zip(ends).map(|((start, slice), end)| {
        (slice.response.n as f64, end.saturating_sub(start).as_secs_f64())
    });
    parts.collect()
}

/// What was counted in each slice of the window, and its length; empty where slices were not
/// counted.
pub(crate) fn by_slice(
    record: &PointRecord,
    count: impl Fn(&SliceCounts) -> f64,
) -> Vec<(f64, f64)> {
    let slices = &record.totals.slices;
    let length = record.measured_ns.as_secs_f64() / slices.len().max(1) as f64;
    slices.iter().map(|slice| (count(slice), length)).collect()
}

/// A number per second, and how far chance may have moved it, at 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    per_s: f64,
    /// As a share of it.
    error_ratio: f64,
}

impl Rate {
    /// `value`, with the scatter of counts over the slices of a window; `None` where that is not
    /// known. Nothing counted is no estimate of nothing.
    pub(crate) fn from_counts(value: f64, slices: &[(f64, f64)]) -> Option<Self> {
        let (counted, length) = ratio_parts(slices.iter());
        if counted <= 0.0 {
            return None;
        }
        let standard = StandardError::of_ratio(slices, f64::INFINITY)?;
        Some(Self { per_s: value, error_ratio: standard.half_width() * length / counted })
    }

    /// Times a mean, which is known to this share of itself.
    pub(crate) fn times(self, mean: f64, error_ratio: f64) -> Self {
        let Self { per_s, error_ratio: own } = self;
        Self { per_s: per_s * mean, error_ratio: own.hypot(error_ratio) }
    }

    /// Its parts; those of a closed load have the generator's, which lies above.
    pub(crate) fn uncertainty(self, closed: Option<ClientTime>) -> Uncertainty {
        let Self { per_s: value, error_ratio } = self;
        let sample = value * error_ratio;
        Uncertainty {
            value,
            generator: closed.map_or(0.0, |time| value * (time.longer_ratio() - 1.0)),
            sample_below: sample,
            sample_above: sample,
            resolution: 0.0,
        }
    }
}

/// The interval of a throughput: the generator's part lies above.
pub(crate) fn span(parts: &Uncertainty) -> [f64; 2] {
    let Uncertainty { value, generator, sample_below, sample_above, .. } = *parts;
    let longer_ratio = if value > 0.0 { 1.0 + generator / value } else { 1.0 };
    [(value - sample_below).max(0.0), (value + sample_above) * longer_ratio]
}

/// The cycles of the clients of a closed load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycles<'r> {
    clients: f64,
    /// Pieces of work a second.
    pieces: Rate,
    slices: &'r [SliceCounts],
    degrees_max: f64,
}

impl<'r> Cycles<'r> {
    /// `None` of an open load, where clients left, where no piece of work ended in the window, and
    /// where pieces hold several ops: those of a piece that has not ended count too.
    pub(crate) fn from_record(
        record: &'r PointRecord,
        total: &OpTimes,
        times: &PointTimes,
    ) -> Option<Self> {
        let Load::Closed { clients, .. } = &record.load else { return None };
        let totals = &record.totals;
        let are_ops = totals.pieces > 0 && totals.pieces >= totals.done_in_window;
        let all_stayed = totals.clients_participating == *clients && record.ops.is_none();
        if !are_ops || !all_stayed {
            return None;
        }
        let (clients, degrees_max) = (f64::from(*clients), degrees_max(record, total));
        let slices = &totals.slices;
        let parts: Vec<_> =
            slices.iter().map(|it| (it.cycle_ns_total as f64, it.pieces as f64)).collect();
        let (cycles_ns, pieces) = ratio_parts(parts.iter());
        let pieces = match StandardError::of_ratio(&parts, degrees_max) {
            Some(standard) => Rate {
                per_s: clients * pieces / cycles_ns * NANOS_PER_SECOND as f64,
                error_ratio: standard.half_width() * pieces / cycles_ns,
            },
            None => by_means(record, total, times)?,
        };
        Some(Self { clients, pieces, slices, degrees_max })
    }

    /// Ops that went well, a second.
    pub(crate) fn answers(&self, record: &PointRecord) -> Rate {
        let totals = &record.totals;
        self.pieces.times(totals.done_in_window as f64 / totals.pieces as f64, 0.0)
    }

    /// What clients get done in their cycles, per second of them.
    pub(crate) fn rate(&self, count: impl Fn(&SliceCounts) -> f64) -> Option<Rate> {
        let parts: Vec<_> =
            self.slices.iter().map(|it| (count(it), it.cycle_ns_total as f64)).collect();
        let (counted, cycles_ns) = ratio_parts(parts.iter());
        let standard = StandardError::of_ratio(&parts, self.degrees_max)?;
        (counted > 0.0).then(|| Rate {
            per_s: self.clients * counted / cycles_ns * NANOS_PER_SECOND as f64,
            error_ratio: standard.half_width() * cycles_ns / counted,
        })
    }
}

/// Limits the degrees of freedom: a quarter of the ops, however much each of them answers, and half
/// of the waves of clients that may go in step. Those that never think may, and those whose think
/// time does not vary; users think as their journeys say.
pub(super) fn degrees_max(record: &PointRecord, total: &OpTimes) -> f64 {
    let by_ops = total.response.len() as f64 / OPS_PER_DEGREE;
    match &record.load {
        Load::Closed { clients, think, .. } if record.totals.pieces > 0 => {
            let of_journeys =
                !record.totals.journeys.is_empty() && record.totals.think_ns_total > 0;
            let of_load = think.mean.0 > 0 && think.distribution.variation() > 0.0;
            let varies = of_journeys || of_load;
            let waves = record.totals.pieces as f64 / f64::from(*clients);
            if varies { by_ops } else { by_ops.min(waves / WAVES_PER_DEGREE) }
        }
        _ => by_ops,
    }
}

/// From the mean response and think times, of bundles whose cycles were not counted by slice.
fn by_means(record: &PointRecord, total: &OpTimes, times: &PointTimes) -> Option<Rate> {
    let Load::Closed { clients, think, .. } = &record.load else { return None };
    let (totals, response) = (&record.totals, &total.response);
    if response.is_empty() {
        return None;
    }
    let pieces = totals.pieces as f64;
    let spent_ns = (totals.piece_ns_total + totals.think_ns_total) as f64;
    let parts: Vec<_> =
        times.slices().map(|(_, it)| (it.response.sum_ns, it.response.n as f64)).collect();
    let independent = response.stdev() / (response.len() as f64).sqrt();
    let standard =
        StandardError::of_ratio(&parts, degrees_max(record, total))?.at_least(independent);
    let at_work_ratio = totals.piece_ns_total as f64 / spent_ns;
    let work_ratio = standard.half_width() / response.mean() * at_work_ratio;
    let think_ns = think.mean.0 as f64 * think.distribution.variation();
    let think_ratio = NORMAL_95 * think_ns / pieces.sqrt() / (spent_ns / pieces);
    Some(Rate {
        per_s: f64::from(*clients) * pieces / spent_ns * NANOS_PER_SECOND as f64,
        error_ratio: work_ratio.hypot(think_ratio),
    })
}

#[cfg(test)]
mod tests;
