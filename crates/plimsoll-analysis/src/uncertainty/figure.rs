//! Intervals of the figures of one distribution: its mean and its percentiles.
//!
//! The sample's part is that of [`StandardError`], and each figure has the shape that its error
//! has: the error of a queue's mean grows with the square of the mean, a percentile's is that of
//! the share of ops below it (Woodruff 1952), and the tail beyond a high percentile goes on where
//! ops beyond it may be missing. What the generator and the histogram leave open lies between two
//! bounds with the same sampling error (Imbens and Manski 2004). Factors that have no source here
//! were fitted in simulation; `cargo lab coverage simulated` has what the intervals hold.

use plimsoll_model::event::{HISTOGRAM_DIGITS, Times};
use plimsoll_model::figure::Figure;
use plimsoll_model::gate::GateFigure;
use plimsoll_model::result::Uncertainty;

use crate::coarse::{Coarse, bucket_of};
use crate::health::ClientTime;
use crate::sampling::OUTSIDE;
use crate::standard_error::StandardError;
use crate::times::percentile;

/// Half a step of the histograms, as a share of the value.
const RESOLUTION_RATIO: f64 = 0.5 / 10u32.pow(HISTOGRAM_DIGITS as u32) as f64;
/// Effective ops of a mean that double its sample's part: how skewed services are.
const MEAN_SKEW_OPS: f64 = 16.0;
/// The same of a share, and of a median …
const SHARE_SKEW_OPS: f64 = 3.0;
/// … towards slow ops, which come in bursts: a queue that was short for the whole window may be
/// long in another.
const BURST_SKEW_OPS: f64 = 12.0;
/// Where more of the ops beyond a percentile may be missing, those that came do not show how slow
/// the others would have been: the tail may go on, as steep as it was.
const TAIL_MISSING_MAX: f64 = 0.5;
/// Effective ops beyond a percentile that the ones beyond a lower one let expect. With fewer the
/// sample does not show how high it may be.
const BEYOND_MIN: f64 = 1.0;

/// A distribution, as measured and without the generator's own delays, and its slices.
pub(super) struct Distribution<'a> {
    pub(super) name: &'a str,
    /// Its figures; none of a time within replies.
    pub(super) figure: Option<fn(Figure) -> GateFigure>,
    pub(super) measured: &'a Times,
    pub(super) low: &'a Times,
    pub(super) slices: Vec<&'a Coarse>,
    /// Of a closed load.
    pub(super) closed: Option<ClientTime>,
    /// Limits the degrees of freedom of standard errors.
    pub(super) degrees_max: f64,
    /// Where ops were not sent or not finished: values above are lower bounds, whose upper end is
    /// not known.
    pub(super) exact_to_ns: Option<u64>,
}

/// What is known of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigureInterval {
    pub(super) parts: Uncertainty,
    pub(super) interval: [f64; 2],
    /// It drifts through the window.
    pub(crate) drifts: bool,
    /// Independent ops that would scatter as much; of a percentile, those beyond it.
    pub(crate) effective_ops: f64,
    /// Windows of this length that would show an upper end: one where this one does.
    windows: f64,
}

impl FigureInterval {
    /// Windows of this length in which the interval would be no wider than this share of the
    /// figure; `None` where the generator alone makes it wider.
    pub(crate) fn windows_needed(&self, ratio: f64) -> Option<f64> {
        let [low, high] = self.interval;
        if high.is_infinite() {
            return Some(self.windows);
        }
        let Uncertainty { value, generator, resolution, .. } = self.parts;
        let bounds = generator + 2.0 * resolution;
        let (sample, left) = (high - low - bounds, ratio * value - bounds);
        // Errors fall as the square root of the window grows.
        (left > 0.0).then(|| (sample / left).powi(2).max(1.0))
    }
}

/// A percentile, in hundredths of a percent, and the index of the one whose effective ops show
/// whether the sample has an upper end for it.
const PERCENTILES: [(u32, Option<usize>); 5] =
    [(5_000, None), (9_000, None), (9_500, Some(1)), (9_900, Some(1)), (9_990, Some(3))];

impl Distribution<'_> {
    /// The part of the server's queue that is left without the generator's own delays.
    fn queue_ratio(&self) -> f64 {
        self.closed.map_or(1.0, |time| time.queue_ratio())
    }

    pub(super) fn has_bounds(&self) -> bool {
        !self.measured.is_empty() && self.low.len() == self.measured.len()
    }

    fn standard_error(&self, part: impl Fn(&Coarse) -> f64) -> Option<StandardError> {
        let parts: Vec<_> = self.slices.iter().map(|it| (part(it), it.n as f64)).collect();
        StandardError::of_ratio(&parts, self.degrees_max)
    }

    pub(super) fn mean(&self) -> Option<FigureInterval> {
        let (ops, value) = (self.measured.len() as f64, self.measured.mean());
        if self.exact_to_ns.is_some() {
            return None;
        }
        let scatter = self.measured.stdev();
        let standard = self.standard_error(|slice| slice.sum_ns)?.at_least(scatter / ops.sqrt());
        let without_generator = (self.low.mean() * self.queue_ratio()).min(value);
        let resolution = value * RESOLUTION_RATIO;
        let (least, most) = (without_generator - resolution, value + resolution);
        let effective_ops = (scatter / standard.error).powi(2);
        let ratio = |errors: f64| match standard.error > 0.0 {
            true => errors * standard.error / value * (1.0 + MEAN_SKEW_OPS / effective_ops),
            false => 0.0,
        };
        let [alone, joined] = [standard.t(), standard.beyond(most - least)].map(ratio);
        let parts = Uncertainty {
            value,
            generator: value - without_generator,
            sample_below: value - value / (1.0 + alone),
            sample_above: risen(value, alone) - value,
            resolution,
        };
        let interval = [(least / (1.0 + joined)).max(0.0), risen(most, joined)];
        let windows = joined.powi(2).max(1.0);
        Some(FigureInterval { parts, interval, drifts: standard.drifts, effective_ops, windows })
    }

    /// Of p50, p90, p95, p99 and p99.9, as far as the sample has them.
    pub(super) fn percentiles(&self) -> [Option<FigureInterval>; 5] {
        let mut shares: [Option<Share>; 5] = [None; 5];
        let mut intervals = [const { None }; 5];
        for (at, (percentile_e2, lower)) in PERCENTILES.into_iter().enumerate() {
            let Some(share) = self.share(percentile_e2) else { continue };
            let expected = lower.and_then(|lower| {
                let lower = shares[lower]?;
                Some(lower.effective_beyond() * share.beyond() / lower.beyond())
            });
            let windows = expected.map_or(1.0, |expected| (BEYOND_MIN / expected).max(1.0));
            shares[at] = Some(share);
            intervals[at] = self.percentile(share, windows);
        }
        intervals
    }

    /// How well the share of ops at or below a percentile is known; `None` where the sample has no
    /// such percentile.
    fn share(&self, percentile_e2: u32) -> Option<Share> {
        let value_ns = percentile(self.measured, percentile_e2)?;
        let share = f64::from(percentile_e2) / 10_000.0;
        let at = bucket_of(value_ns);
        let independent = (share * (1.0 - share) / self.measured.len() as f64).sqrt();
        // A slow wave of clients in step may fill the step of the histogram that the percentile is
        // in: nothing is beyond it, and only what is below it varies.
        let below = self.standard_error(|slice| slice.at_most(at.saturating_sub(1)) as f64)?;
        let standard = self.standard_error(|slice| slice.at_most(at) as f64)?;
        let larger = if below.error > standard.error { below } else { standard };
        let standard = larger.at_least(independent);
        Some(Share { value_ns, share, standard })
    }

    fn percentile(&self, of: Share, windows: f64) -> Option<FigureInterval> {
        let value = of.value_ns as f64;
        if self.exact_to_ns.is_some_and(|exact_to| of.value_ns > exact_to) {
            return None;
        }
        let lowest = |errors: f64| time_of_share(self.low, of.below(errors)) * self.queue_ratio();
        let highest = |errors: f64| match windows > 1.0 {
            true => f64::INFINITY,
            false => self.highest(&of, errors).max(time_of_share(self.measured, of.share)),
        };
        let without_generator = (time_of_share(self.low, of.share) * self.queue_ratio()).min(value);
        let resolution = value * RESOLUTION_RATIO;
        let apart = value - without_generator + 2.0 * resolution;
        // The error of the share, as one of the time.
        let sample_below =
            (value - time_of_share(self.measured, of.below(of.standard.t()))).max(0.0);
        let in_time = StandardError { error: sample_below / of.standard.t(), ..of.standard };
        let errors = in_time.beyond(apart);
        let parts = Uncertainty {
            value,
            generator: value - without_generator,
            sample_below,
            sample_above: (highest(of.standard.t()) - value).max(0.0),
            resolution,
        };
        let low = lowest(errors).min(without_generator) - resolution;
        Some(FigureInterval {
            parts,
            interval: [low.max(0.0), highest(errors) + resolution],
            drifts: of.standard.drifts,
            effective_ops: of.effective_beyond(),
            windows,
        })
    }

    fn highest(&self, of: &Share, errors: f64) -> f64 {
        if of.share <= 0.5 {
            return time_of_share(self.measured, of.below(-errors));
        }
        let missing = errors * of.standard.error / of.beyond();
        let reached = time_of_share(self.measured, of.share + missing * of.beyond());
        if missing < TAIL_MISSING_MAX {
            return reached;
        }
        reached.max(of.value_ns as f64 + tail_scale(self.measured, of.share) * reach(missing))
    }
}

/// The time at this share, in the middle of its step of the histogram.
fn time_of_share(times: &Times, share: f64) -> f64 {
    times.median_equivalent(times.value_at_quantile(share.clamp(0.0, 1.0))) as f64
}

/// A percentile, and how well the share of ops at or below it is known.
#[derive(Clone, Copy)]
struct Share {
    value_ns: u64,
    share: f64,
    standard: StandardError,
}

impl Share {
    fn beyond(&self) -> f64 {
        1.0 - self.share
    }

    /// Independent ops beyond the percentile that would scatter as much.
    fn effective_beyond(&self) -> f64 {
        (self.beyond() / self.standard.error).powi(2)
    }

    /// The share that lies this many errors below (or above, if negative). The number of bursts of
    /// slow ops is not spread evenly about the observed one: there may be more of them by the
    /// factor that there may be fewer.
    fn below(&self, errors: f64) -> f64 {
        let skew_ops = match self.share > 0.5 {
            true => 0.0,
            false if errors < 0.0 => BURST_SKEW_OPS,
            false => SHARE_SKEW_OPS,
        };
        shifted(self.share, self.standard.error, -errors, skew_ops)
    }
}

/// A share moved by this many errors, on the scale of the logarithm of its odds.
fn shifted(share: f64, error: f64, errors: f64, skew_ops: f64) -> f64 {
    let both = share * (1.0 - share);
    let effective_ops = both / (error * error);
    let by = errors * error / both * (1.0 + skew_ops / effective_ops);
    share / (share + (1.0 - share) * (-by).exp())
}

/// Interval of a share that lies between two bounds, of `ops` independent ops or fewer; without an
/// event among them, or with nothing else, what would be missed once in forty times.
pub(crate) fn interval_of_share(
    [least, most]: [f64; 2],
    ops: f64,
    standard: StandardError,
) -> [f64; 2] {
    let missed = OUTSIDE / 2.0;
    let none = 1.0 - missed.powf(1.0 / ops);
    let independent = (least * (1.0 - least) / ops).sqrt();
    let bursts_skew_ops =
        if standard.error > independent { BURST_SKEW_OPS } else { SHARE_SKEW_OPS };
    let standard = standard.at_least(independent);
    let errors = standard.beyond(most - least);
    let low = match least {
        ..=0.0 => 0.0,
        1.0.. => 1.0 - none,
        share => shifted(share, standard.error, -errors, bursts_skew_ops),
    };
    let high = match most {
        ..=0.0 => none,
        1.0.. => 1.0,
        share => shifted(share, standard.error, errors, SHARE_SKEW_OPS),
    };
    [low, high]
}

/// The upper end of a mean, whose inverse has an even error; without one from 100 % on.
fn risen(value: f64, ratio: f64) -> f64 {
    if ratio < 1.0 { value / (1.0 - ratio) } else { f64::INFINITY }
}

/// By how many scales a tail goes on when this part of it is missing: as an exponential one up to
/// nine tenths, from there one more for each whole tail.
fn reach(missing: f64) -> f64 {
    const MOST: f64 = 0.9;
    -(1.0 - missing.min(MOST)).ln() + (missing - MOST).max(0.0)
}

/// Scale of an exponential tail up to a percentile: the largest of those through it and the
/// percentile that five times as many ops lie beyond, and through that one and the median. All are
/// equal where the tail is exponential, as that of a queue is. Values beyond, such as one long
/// pause, do not count.
fn tail_scale(times: &Times, share: f64) -> f64 {
    let at = |share: f64| times.value_at_quantile(share) as f64;
    let scale = |from: f64, to: f64| (at(to) - at(from)) / ((1.0 - from) / (1.0 - to)).ln();
    let middle = 1.0 - (1.0 - share) * 5.0;
    match share {
        ..=0.9 => scale(0.5, share),
        _ => scale(middle, share).max(scale(0.5, middle)),
    }
}

#[cfg(test)]
mod tests;
