//! Stated intervals: what the generator's own delays, the sample and the histogram leave open of a
//! figure.
//!
//! *Below*, the generator's part: each op was also recorded without receive lag and without the
//! largest lateness in flight with it, so that distribution bounds the true one from below. The
//! sample's part goes to both sides ([`crate::blocks`]). A closed load that waits for nothing of the
//! generator would have done more: up to the same work in the time of its clients less the
//! generator's part of it.

use std::collections::BTreeMap;

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{HISTOGRAM_DIGITS, OpTimes, PointRecord, Times};
use plimsoll_model::result::{OverallResponse, PointResult, Summary, TimeIntervals, Uncertainty};
use plimsoll_model::suite::Suite;

use crate::blocks::{Chance, Coarse, chance_of_mean, chance_of_rate, chance_of_share, ratio_parts};
use crate::health::generator_part_of_throughput;
use crate::metric::throughput;
use crate::overall::{CurvePoint, overall_response};
use crate::raw::PointTimes;
use crate::score::overall_score;
use crate::times::percentile;
use crate::validity::load_was_held;

/// Half a step of the histograms, as a share of the value.
const RESOLUTION_RATIO: f64 = 0.5 / 10u32.pow(HISTOGRAM_DIGITS as u32) as f64;

/// Where more of the ops beyond a percentile may have failed to come, those that came do not tell how
/// slow the others would have been: the tail may go on, as steep as it was.
const TAIL_SEEN: f64 = 0.5;

/// The intervals of a point.
#[derive(Debug, Default)]
pub(crate) struct Stated {
    pub(crate) response: Option<TimeIntervals>,
    pub(crate) service: Option<TimeIntervals>,
    pub(crate) achieved: Option<[f64; 2]>,
    /// By name of the figure.
    pub(crate) uncertainty: BTreeMap<String, Uncertainty>,
}

/// A distribution, as measured and without the generator's own delays, and its slices.
struct Known<'a> {
    name: &'a str,
    measured: &'a Times,
    low: &'a Times,
    slices: Vec<&'a Coarse>,
}

/// States what is known of a point whose `total` is merged over window and ops.
pub(crate) fn state(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    times: &PointTimes,
) -> Stated {
    let response = Known {
        name: "response",
        measured: &total.response,
        low: &total.response_low,
        slices: times.slices().map(|(_, slice)| &slice.response).collect(),
    };
    let service = Known {
        name: "service",
        measured: &total.service,
        low: &total.service_low,
        slices: times.slices().map(|(_, slice)| &slice.service).collect(),
    };
    let mut stated = Stated::default();
    stated.response = intervals(&response, &mut stated.uncertainty);
    stated.service = intervals(&service, &mut stated.uncertainty);
    let parts = slice_parts(record, times);
    if let Some(uncertainty) = achieved(suite, record, total, &parts) {
        stated.achieved = Some(span(&uncertainty));
        // More, not less, is what the generator's part of a throughput leaves open.
        stated.uncertainty.insert("achieved_ops_per_s".to_owned(), uncertainty);
    }
    stated
}

/// States what is known of the headline figures, from the points they are made of.
pub(crate) fn state_summary(summary: &mut Summary, suite: &Suite, points: &[PointResult]) {
    let counted = || points.iter().filter(|point| point.counts());
    let scaled = |point: &PointResult| {
        let achieved = point.achieved_ops_per_s.filter(|achieved| *achieved > 0.0)?;
        let [low, high] = point.achieved_interval_ops_per_s?;
        Some([low / achieved, high / achieved])
    };
    let best = counted().find(|point| throughput(suite.metric, point) == summary.value);
    summary.value_interval = summary
        .value
        .zip(best.and_then(scaled))
        .map(|(value, [low, high])| [value * low, value * high]);
    summary.overall_response_interval_ms = overall_interval(summary, counted());
    let mixes = |end: usize| -> Option<Vec<(f64, f64)>> {
        let score = suite.score.as_ref()?;
        let mix = |(index, point): (usize, &PointResult)| {
            Some((point.score? * scaled(point)?[end], score.mix_weight(index)))
        };
        points.iter().enumerate().map(mix).collect()
    };
    summary.score_interval =
        summary.score.and_then(|_| Some([overall_score(&mixes(0)?)?, overall_score(&mixes(1)?)?]));
}

fn overall_interval<'p>(
    summary: &Summary,
    counted: impl Iterator<Item = &'p PointResult>,
) -> Option<[OverallResponse; 2]> {
    let OverallResponse { origin, span } = summary.overall_response_ms;
    origin.or(span)?;
    let mut curves: [Vec<CurvePoint>; 2] = Default::default();
    for point in counted {
        let achieved_ops_per_s = point.achieved_ops_per_s?;
        let ends = point.service_interval_ns?.mean?;
        for (curve, end) in curves.iter_mut().zip(ends) {
            curve.push(CurvePoint { achieved_ops_per_s, response_ms: end / 1e6 });
        }
    }
    let [low, high] = curves.map(|curve| overall_response(&curve));
    // Where throughput falls along the ladder, areas are taken off, and the ends may change places.
    let holds = |value: Option<f64>, low: Option<f64>, high: Option<f64>| match (value, low, high) {
        (Some(value), Some(low), Some(high)) => low <= value && value <= high,
        _ => true,
    };
    let sound = holds(origin, low.origin, high.origin) && holds(span, low.span, high.span);
    sound.then_some([low, high])
}

fn intervals(
    known: &Known<'_>,
    uncertainty: &mut BTreeMap<String, Uncertainty>,
) -> Option<TimeIntervals> {
    if known.measured.is_empty() || known.low.len() != known.measured.len() {
        return None;
    }
    let mut keep = |figure: &str, parts: Option<(Uncertainty, [f64; 2])>| {
        let (parts, interval) = parts?;
        if ["mean", "p50", "p99"].contains(&figure) {
            uncertainty.insert(format!("{}_{figure}_ns", known.name), parts);
        }
        Some(interval)
    };
    let mut percentile = |name, e2| keep(name, of_percentile(known, e2));
    let percentiles = [("p50", 5_000), ("p90", 9_000), ("p95", 9_500), ("p99", 9_900)]
        .map(|(n, e2)| percentile(n, e2));
    let [p50, p90, p95, p99] = in_order(percentiles);
    Some(TimeIntervals { mean: keep("mean", of_mean(known)), p50, p90, p95, p99 })
}

/// A percentile is no less than one below it: where that one must lie, it must too.
fn in_order<const N: usize>(mut intervals: [Option<[f64; 2]>; N]) -> [Option<[f64; 2]>; N] {
    let mut least = f64::NEG_INFINITY;
    for [low, _] in intervals.iter_mut().flatten() {
        least = low.max(least);
        *low = least;
    }
    let mut most = f64::INFINITY;
    for [_, high] in intervals.iter_mut().rev().flatten() {
        most = high.min(most);
        *high = most;
    }
    intervals
}

/// Stated interval of any percentile of the response time (in hundredths of a percent); `None` where
/// the sample is too small for it.
pub(crate) fn response_percentile(
    total: &OpTimes,
    times: &PointTimes,
    percentile_e2: u32,
) -> Option<[f64; 2]> {
    let known = Known {
        name: "response",
        measured: &total.response,
        low: &total.response_low,
        slices: times.slices().map(|(_, slice)| &slice.response).collect(),
    };
    let usable = !known.measured.is_empty() && known.low.len() == known.measured.len();
    of_percentile(&known, percentile_e2).filter(|_| usable).map(|(_, interval)| interval)
}

fn of_mean(known: &Known<'_>) -> Option<(Uncertainty, [f64; 2])> {
    let Chance { below, above } = chance_of_mean(&known.slices)?;
    let value = known.measured.mean();
    let uncertainty = Uncertainty {
        value,
        generator: (value - known.low.mean()).max(0.0),
        sample_below: below,
        sample_above: above,
        resolution: value * RESOLUTION_RATIO,
    };
    let Uncertainty { generator, resolution, .. } = uncertainty;
    let low = (value - generator - below - resolution).max(0.0);
    Some((uncertainty, [low, value + above + resolution]))
}

fn of_percentile(known: &Known<'_>, percentile_e2: u32) -> Option<(Uncertainty, [f64; 2])> {
    let value = percentile(known.measured, percentile_e2)? as f64;
    let share = f64::from(percentile_e2) / 10_000.0;
    let Chance { below, above } = chance_of_share(&known.slices, known.measured, share)?;
    let at = |times: &Times, share: f64| times.value_at_quantile(share.clamp(0.0, 1.0)) as f64;
    let beyond = 1.0 - share;
    // Bursts of slow ops are few, and their number is not spread evenly about what was seen: there
    // may be more of them by the factor that there may be fewer.
    let shifted = |by: f64| share / (share + beyond * (by / (share * beyond)).exp());
    let lowest = at(known.low, shifted(below));
    let highest = match above / beyond {
        _ if share <= 0.5 => at(known.measured, shifted(-above)),
        seen if seen < TAIL_SEEN => at(known.measured, share + above),
        missing => at(known.measured, share + above)
            .max(value + tail_scale(known.measured, share) * reach(missing)),
    };
    let highest = highest.max(value);
    let resolution = value * RESOLUTION_RATIO;
    let uncertainty = Uncertainty {
        value,
        generator: (value - at(known.low, share)).max(0.0),
        sample_below: (value - at(known.measured, share - below)).max(0.0),
        sample_above: highest - value,
        resolution,
    };
    Some((uncertainty, [(lowest.min(value) - resolution).max(0.0), highest + resolution]))
}

/// By how many scales a tail goes on when this part of it is missing: as an exponential one up to nine
/// tenths, from there one more for each whole tail.
fn reach(missing: f64) -> f64 {
    const MOST: f64 = 0.9;
    -(1.0 - missing.min(MOST)).ln() + (missing - MOST).max(0.0)
}

/// Scale of an exponential tail up to a percentile: the most of those through it and the percentile
/// that five times as many ops lie beyond, and through that one and the median. All the same where
/// the tail is exponential, as that of a queue is; what lies beyond, such as one long pause, does not
/// count.
fn tail_scale(times: &Times, share: f64) -> f64 {
    let at = |share: f64| times.value_at_quantile(share) as f64;
    let scale = |from: f64, to: f64| (at(to) - at(from)) / ((1.0 - from) / (1.0 - to)).ln();
    let middle = 1.0 - (1.0 - share) * 5.0;
    match share {
        ..=0.9 => scale(0.5, share),
        _ => scale(middle, share).max(scale(0.5, middle)),
    }
}

/// Throughput; `parts` are ops and length of each slice of the window.
fn achieved(
    suite: &Suite,
    record: &PointRecord,
    total: &OpTimes,
    parts: &[(f64, f64)],
) -> Option<Uncertainty> {
    let seconds = record.measured_ns.as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let value = record.totals.done_in_window as f64 / seconds;
    let generator = match record.load {
        Load::Open { .. } => 0.0,
        Load::Closed { .. } => generator_part_of_throughput(record, total)?.1,
    };
    let exact = matches!(record.load, Load::Open { .. }) && load_was_held(suite, record);
    let chance = match exact {
        // The schedule says how many ops there were, and all were done.
        true => Chance::default(),
        false => {
            let (ops, length) = ratio_parts(parts.iter());
            let scale = if ops > 0.0 { value / (ops / length) } else { 0.0 };
            let Chance { below, above } = chance_of_rate(parts)?;
            Chance { below: below * scale, above: above * scale }
        }
    };
    let Chance { below: sample_below, above: sample_above } = chance;
    Some(Uncertainty { value, generator, sample_below, sample_above, resolution: 0.0 })
}

/// Ops and length of each slice, which reaches to where the next begins.
fn slice_parts(record: &PointRecord, times: &PointTimes) -> Vec<(f64, f64)> {
    let end = record.warm_up_ns.saturating_add(record.measured_ns);
    let ends = times.slices().map(|(start, _)| start).skip(1).chain([end]);
    let parts = times.slices().zip(ends).map(|((start, slice), end)| {
        (slice.response.n as f64, end.saturating_sub(start).as_secs_f64())
    });
    parts.collect()
}

/// The interval of a throughput: the generator's part lies above.
fn span(parts: &Uncertainty) -> [f64; 2] {
    let Uncertainty { value, generator, sample_below, sample_above, .. } = *parts;
    let most = if value > 0.0 { (value + sample_above) * (1.0 + generator / value) } else { 0.0 };
    [(value - sample_below).max(0.0), most]
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::{add_times, new_times};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::analyse;
    use crate::health::generator_part_of_p50;
    use crate::testing::{PointBuilder, RunBuilder};

    fn stated(point: &PointBuilder) -> Stated {
        let times = point.point_times();
        let built = point.build();
        state(&built.suite, &built.record, &times.window_total(), &times)
    }

    #[test]
    fn the_generators_part_lies_below_a_response_time_and_above_a_closed_throughput() {
        // 1 ms of response, of which 0.2 ms lay unread.
        let parts = stated(&PointBuilder::closed(4).receive_lag_ns(200_000));
        let [low, high] = parts.response.unwrap().p50.unwrap();
        assert!((low / 790_000.0 - 1.0).abs() < 0.01, "{low}");
        assert!((high / 1_000_000.0 - 1.0).abs() < 0.002, "{high}");
        assert!(low < 790_000.0 && high > 1_000_000.0, "the histogram's resolution: {low} {high}");
        // Its own lateness of 10 µs is taken out too: 1 / 0.79.
        let [least, most] = parts.achieved.unwrap();
        assert!((least - 4_000.0).abs() < 1.0 && (most / 4_000.0 - 1.0 / 0.79).abs() < 0.002);
        let budget = parts.uncertainty["response_p50_ns"];
        assert!((budget.generator / 210_000.0 - 1.0).abs() < 0.02, "{budget:?}");
    }

    /// Response times of a queue with one server, in slices of a quarter of a second.
    fn slices_of_a_queue(
        random: &mut Xoshiro256PlusPlus,
        (rate, capacity): (f64, f64),
        slices: usize,
    ) -> Vec<Times> {
        const SLICE_S: f64 = 0.25;
        const WARM_UP_S: f64 = 1.0;
        let mut exponential = |rate: f64| {
            let unit = ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            -unit.ln() / rate
        };
        let mut seen = vec![new_times(); slices];
        let (mut now_s, mut free_s) = (exponential(rate), 0.0_f64);
        while now_s < WARM_UP_S + SLICE_S * slices as f64 {
            free_s = free_s.max(now_s) + exponential(capacity);
            if now_s >= WARM_UP_S {
                let slice = (((now_s - WARM_UP_S) / SLICE_S) as usize).min(slices - 1);
                seen[slice].saturating_record(((free_s - now_s) * 1e9) as u64);
            }
            now_s += exponential(rate);
        }
        seen
    }

    /// M/M/1: response time is exponential with the rate that the server has to spare.
    #[test]
    fn intervals_of_a_queue_hold_the_percentiles_of_the_closed_formula() {
        const TRIALS: u32 = 80;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
        // Three seconds are thirty times what a queue at 90 % remembers.
        for (utilisation, slices) in [(0.6, 12), (0.9, 12), (0.9, 24), (0.9, 40)] {
            let (rate, capacity) = (4_000.0 * utilisation, 4_000.0);
            let mut held = [0; 4];
            let percentiles = [5_000_u32, 9_000, 9_500, 9_900];
            for _ in 0..TRIALS {
                let parts = slices_of_a_queue(&mut random, (rate, capacity), slices);
                let mut whole = new_times();
                parts.iter().for_each(|part| add_times(&mut whole, part));
                let coarse = |part: &Times| {
                    let mut coarse = Coarse::default();
                    coarse.add(part);
                    coarse
                };
                let parts: Vec<Coarse> = parts.iter().map(coarse).collect();
                let slices = parts.iter().collect();
                let known = Known { name: "response", measured: &whole, low: &whole, slices };
                for (held, percentile) in held.iter_mut().zip(percentiles) {
                    let (_, [low, high]) = of_percentile(&known, percentile).unwrap();
                    let above = 1.0 - f64::from(percentile) / 10_000.0;
                    let truth_ns = -above.ln() / (capacity - rate) * 1e9;
                    *held += u32::from((low..=high).contains(&truth_ns));
                }
            }
            let least = TRIALS * 9 / 10;
            assert!(held.iter().all(|held| *held >= least), "{utilisation} {slices} {held:?}");
        }
    }

    /// As an exponential queue has them; one pause of the host at the end changes nothing.
    #[test]
    fn the_scale_of_an_exponential_tail_is_found_whatever_lies_beyond() {
        let nth = |n: u32| -(1.0 - (f64::from(n) + 0.5) / 10_000.0).ln() * 1e6;
        let mut times = new_times();
        (0..9_950).for_each(|n| times.saturating_record(nth(n) as u64));
        times.saturating_record_n(900_000_000, 50);
        let near = |share: f64, wanted: f64| {
            let scale = tail_scale(&times, share) / 1e6;
            assert!((scale / wanted - 1.0).abs() < 0.02, "{share}: {scale}");
        };
        [0.9, 0.95, 0.99].into_iter().for_each(|share| near(share, 1.0));
    }

    #[test]
    fn of_a_tail_that_bends_the_flatter_part_gives_the_scale() {
        // Twice as slow in the upper half, or in the slowest twentieth.
        for (from, flat) in [(0.5, [2.0, 2.0]), (0.95, [1.0, 2.0])] {
            let mut times = new_times();
            let bend = -(1.0_f64 - from).ln();
            for n in 0..10_000 {
                let past = -(1.0 - (f64::from(n) + 0.5) / 10_000.0_f64).ln();
                times.saturating_record(((past + (past - bend).max(0.0)) * 1e6) as u64);
            }
            let scales = [0.9, 0.99].map(|share| tail_scale(&times, share) / 1e6);
            let near = |(scale, flat): (f64, f64)| (scale / flat - 1.0).abs() < 0.02;
            assert!(scales.into_iter().zip(flat).all(near), "{from}: {scales:?}");
        }
    }

    /// A server that is faster in some seconds by one part in a hundred.
    #[test]
    fn the_median_of_times_that_are_all_alike_is_known_however_they_change_over_the_window() {
        let mut whole = new_times();
        let slices = (0..12_u64).map(|n| {
            let mut slice = new_times();
            let around = if n * 7 % 12 < 7 { 120_000 } else { 121_500 };
            (0..1_000).for_each(|op| slice.saturating_record(around + op));
            slice.saturating_record_n(30_000, 10);
            add_times(&mut whole, &slice);
            let mut coarse = Coarse::default();
            coarse.add(&slice);
            coarse
        });
        let slices: Vec<Coarse> = slices.collect();
        let known = Known {
            name: "response",
            measured: &whole,
            low: &whole,
            slices: slices.iter().collect(),
        };
        let (_, [low, high]) = of_percentile(&known, 5_000).unwrap();
        assert!((119_500.0..120_500.0).contains(&low), "{low}");
        assert!((121_400.0..123_000.0).contains(&high), "{high}");
    }

    /// The percentile that is stated where the next higher one is not, and bounds nothing.
    #[test]
    fn p90_of_few_ops_reaches_no_further_than_the_tail_of_all() {
        let mut slices = vec![new_times(); 12];
        for n in 0..150_u64 {
            slices[(n * 7 % 12) as usize].saturating_record((100 + 10 * n) * 1_000);
        }
        let mut whole = new_times();
        slices.iter().for_each(|slice| add_times(&mut whole, slice));
        let coarse = |slice: &Times| {
            let mut coarse = Coarse::default();
            coarse.add(slice);
            coarse
        };
        let slices: Vec<Coarse> = slices.iter().map(coarse).collect();
        let slices = slices.iter().collect();
        let known = Known { name: "response", measured: &whole, low: &whole, slices };
        let (_, [_, high]) = of_percentile(&known, 9_000).unwrap();
        assert!((1_450_000.0..4_000_000.0).contains(&high), "{high}");
    }

    #[test]
    fn a_tail_of_which_more_may_be_missing_goes_on_for_longer() {
        assert!((reach(0.5) - 2.0_f64.ln()).abs() < 1e-9);
        assert!((reach(0.9) - 10.0_f64.ln()).abs() < 1e-9);
        assert!((reach(2.4) - 10.0_f64.ln() - 1.5).abs() < 1e-9);
    }

    #[test]
    fn an_open_load_that_was_held_has_an_exact_throughput() {
        assert_eq!(stated(&PointBuilder::open(1_000.0)).achieved, Some([1_000.0, 1_000.0]));
    }

    #[test]
    fn an_open_load_of_which_some_ops_were_not_sent_has_none() {
        let point = PointBuilder::open(1_000.0);
        let mut built = point.build();
        assert!(load_was_held(&built.suite, &built.record));
        // Few enough for the suite.
        built.record.totals.not_sent = 1;
        assert!(!load_was_held(&built.suite, &built.record));
    }

    #[test]
    fn the_interval_of_a_percentile_lies_nowhere_below_that_of_a_lower_one() {
        let wide = [Some([5.0, 8.0]), None, Some([6.0, 90.0]), Some([1.0, 70.0])];
        let ordered = [Some([5.0, 8.0]), None, Some([6.0, 70.0]), Some([6.0, 70.0])];
        assert_eq!(in_order(wide), ordered);
    }

    #[test]
    fn the_headline_and_the_overall_response_have_intervals_too() {
        let points = [1_000.0, 2_000.0, 3_000.0].map(PointBuilder::open);
        let summary = analyse(&RunBuilder::of(points).raw()).summary;
        assert_eq!(summary.value_interval, Some([3_000.0, 3_000.0]));
        let [low, high] = summary.overall_response_interval_ms.unwrap();
        let measured = summary.overall_response_ms;
        assert!(low.span < measured.span && measured.span < high.span, "{low:?} {high:?}");
        assert!(low.origin < measured.origin && measured.origin < high.origin);
    }

    #[test]
    fn an_overall_response_whose_ends_change_places_has_no_interval() {
        // Throughput falls after the first point, so that its time is taken off the span.
        let of = |first_ms: [f64; 2]| {
            let points = [(3_000.0, first_ms), (1_000.0, [1.0; 2]), (4_000.0, [1.0; 2])];
            let points = points.map(|(achieved, mean_ms)| PointResult {
                achieved_ops_per_s: Some(achieved),
                service_interval_ns: Some(TimeIntervals {
                    mean: Some(mean_ms.map(|ms| ms * 1e6)),
                    ..TimeIntervals::default()
                }),
                ..PointResult::default()
            });
            // By hand, of 1 ms at each point.
            let measured = OverallResponse { origin: Some(0.625), span: Some(1.0) };
            let summary = Summary { overall_response_ms: measured, ..Summary::default() };
            overall_interval(&summary, points.iter())
        };
        let [low, high] = of([1.0, 1.0]).unwrap();
        assert_eq!((low.origin, high.span), (Some(0.625), Some(1.0)));
        // Half a millisecond at the first point makes it 1.5.
        assert_eq!(of([0.5, 1.0]), None);
    }

    #[test]
    fn without_arrivals_nothing_is_stated() {
        let mut times = PointBuilder::open(1_000.0).build().times.unwrap();
        times.response_low.reset();
        assert_eq!(generator_part_of_p50(&times), None);
    }
}
