//! The rules of MLPerf Endpoints, from draft v1.0 of MLCommons' `endpoints_policies` and the
//! documents of the reference client at revision ea332753. Regions and early stopping are the
//! rules' own arithmetic. None of this is an MLPerf result.
//!
//! The steady window is simplified. The reference client cuts a run by passes over its data set, in
//! the order in which requests were issued. A bundle has times by the second in which requests
//! *ended*, so a pass here is an equal part of the window. The steps are the reference's: it crops
//! the warm-up, then takes the first window that is long, without a trend and even enough. Its
//! confidence intervals are left out: Plimsoll reports its own.
//!
//! Trends and breaks: Mann–Kendall's test with the correction of Hamed and Rao (1998) for neighbours
//! that depend on each other, Sen's slope, Pettitt's test (1979).

use plimsoll_model::event::Times;
use plimsoll_model::result::{
    Endpoints, EndpointsPoint, PointResult, Region, RegionName, SteadyStatus, SteadyVerdict,
    SteadyWindow, Wanting,
};

use crate::sampling::{Moments, NORMAL_95, binomial_at_most, normal_above};

/// Concurrencies of the ultra-low region end here.
const ULTRA_LOW_TO: u32 = 32;
/// Points of a submission, without its offline point.
const POINTS_MIN: u32 = 7;

/// Ends of the low and of the medium region: `C_min + 2^I` and `C_min + 2^(2I)` with
/// `I = log2(C_max − C_min) / 3`, each rounded half to even.
fn region_ends(c_min: u32, c_max: u32) -> [u32; 2] {
    let third = f64::from(c_max.saturating_sub(c_min)).max(1.0).log2() / 3.0;
    [1.0, 2.0].map(|thirds| {
        let end = f64::from(c_min) + (thirds * third).exp2();
        end.round_ties_even() as u32
    })
}

/// The four regions between these concurrencies.
fn regions(c_min: u32, c_max: u32, points: &[u32]) -> Vec<Region> {
    let [low_end, medium_end] = region_ends(c_min, c_max);
    let region = |name, from: u32, to: u32| Region {
        name,
        from,
        to,
        points: points.iter().filter(|load| (from..=to).contains(*load)).count() as u32,
    };
    vec![
        region(RegionName::UltraLow, 1, ULTRA_LOW_TO),
        region(RegionName::Low, c_min + 1, low_end),
        region(RegionName::Medium, low_end + 1, medium_end),
        region(RegionName::High, medium_end + 1, c_max),
    ]
}

/// Requirements of the rules that these points do not meet. An empty region has none.
fn wanting(regions: &[Region], c_max: u32, points: u32) -> Vec<Wanting> {
    let few = Wanting::Points { points, points_min: POINTS_MIN };
    let few = (points < POINTS_MIN).then_some(few);
    let low = (c_max <= ULTRA_LOW_TO).then_some(Wanting::HighestConcurrency);
    let bare = regions.iter().filter(|region| region.points == 0 && region.from <= region.to);
    let bare = bare.map(|region| Wanting::Region { name: region.name });
    few.into_iter().chain(low).chain(bare).collect()
}

/// The ladder by the rules; nothing without a point that has generated.
pub(crate) fn endpoints(points: &[PointResult]) -> Option<Endpoints> {
    let figures: Vec<EndpointsPoint> = points.iter().filter_map(figures).collect();
    let valid = |figures: &&EndpointsPoint| {
        points.iter().any(|point| point.position == figures.position && point.valid)
    };
    let loads: Vec<u32> = figures.iter().filter(valid).map(|point| point.concurrency).collect();
    let (c_min, c_max) = (*loads.iter().min()?, *loads.iter().max()?);
    let regions = regions(c_min, c_max, &loads);
    let region_of = |load: u32| {
        let holds = |region: &&Region| (region.from..=region.to).contains(&load);
        regions.iter().rfind(holds).map(|region| region.name)
    };
    let with_region = |point: EndpointsPoint| {
        let region = region_of(point.concurrency);
        EndpointsPoint { region, ..point }
    };
    let wanting = wanting(&regions, c_max, loads.len() as u32);
    let points = figures.into_iter().map(with_region).collect();
    Some(Endpoints { c_min, c_max, wanting, points, regions })
}

fn figures(point: &PointResult) -> Option<EndpointsPoint> {
    let generation = point.generation.as_ref()?;
    Some(EndpointsPoint {
        position: point.position,
        concurrency: point.clients_requested?,
        region: None,
        system_tps: generation.output_tokens_per_s,
        tps_per_user: generation.tps_per_user,
        ttft_p90_ns: generation.first_output_ns.and_then(|times| times.p90),
        tpot_p90_ns: generation.later_token_time_ns.and_then(|times| times.p90),
        tpot_p90_early_ns: generation.later_token_time_p90_early_ns,
        steady: generation.steady.unwrap_or_default(),
    })
}

/// Share of estimates that may be wrong.
const ERROR: f64 = 0.01;

/// The number of samples that may lie above the estimate: the largest `t` for which a true
/// percentile shows no more in one of a hundred samples of that size. `None` below the least size.
fn samples_above(n: u64, percentile_e2: u32) -> Option<u64> {
    let above = 1.0 - f64::from(percentile_e2) / 10_000.0;
    let may = |t: u64| binomial_at_most(t, n, above) <= ERROR;
    if n == 0 || !may(1) {
        return None;
    }
    // At most the expected number: at the mean half of all samples would show as many.
    let (mut holds, mut fails) = (1, (n as f64 * above).ceil() as u64 + 1);
    while fails - holds > 1 {
        let middle = holds.midpoint(fails);
        if may(middle) { holds = middle } else { fails = middle }
    }
    Some(holds)
}

/// The estimate of this percentile (in hundredths of a percent): the sample with as many above it
/// as [`samples_above`] allows, to the resolution of the histogram.
pub(crate) fn early_stopping(times: &Times, percentile_e2: u32) -> Option<u64> {
    let n = times.len();
    let rank = n - samples_above(n, percentile_e2)?;
    // The rank's own sample, not the one below it from rounding.
    Some(times.value_at_quantile((rank as f64 - 0.5) / n as f64))
}

/// Passes that a steady window has at the least.
const PASSES_MIN: usize = 4;
/// The first passes may differ from the median of the back half by this.
const WARM_UP_BAND: f64 = 0.05;
const SIGNIFICANT: f64 = 0.05;
/// A trend over a window below this share of its median is none.
const DRIFT_MIN: f64 = 0.05;
/// Numbers of passes, and the allowed variation of a window of at least that many, as a share of
/// the mean.
const VARIATION_MAX: [(usize, f64); 3] = [(8, 0.08), (6, 0.05), (4, 0.03)];
/// A drift over all passes: as a share of their median, and over their scatter.
const DRIFTING: f64 = 0.15;
const DRIFTING_TO_NOISE: f64 = 2.0;
/// Least length of a steady window, as a multiple of the p99 of the latency.
const LATENCIES: f64 = 5.0;

/// A pass over the data set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pass {
    /// Median time per output token.
    pub(crate) p50_ns: f64,
    /// 90th percentile of it.
    pub(crate) p90_ns: f64,
    pub(crate) seconds: f64,
}

/// Searches the steady window. It must be as long as `seconds_min` and as five times the p99 of the
/// latency.
pub(crate) fn steady_window(passes: &[Pass], seconds_min: f64, p99_s: f64) -> SteadyWindow {
    let length_min = seconds_min.max(LATENCIES * p99_s);
    let seconds = |passes: &[Pass]| passes.iter().map(|pass| pass.seconds).sum::<f64>();
    let status = match passes.len() {
        0 => SteadyStatus::PartialDataset,
        n if n < PASSES_MIN => SteadyStatus::InsufficientPasses,
        _ if seconds(passes) < length_min => SteadyStatus::InsufficientDuration,
        _ => SteadyStatus::Windowable,
    };
    if status != SteadyStatus::Windowable {
        return SteadyWindow { status, ..SteadyWindow::default() };
    }
    let begin = warm_up(passes);
    let starts = begin..=passes.len().saturating_sub(PASSES_MIN);
    let windows = starts.filter_map(|start| Some((start, grown(&passes[start..])?)));
    let long =
        |(start, length): &(usize, usize)| seconds(&passes[*start..start + length]) >= length_min;
    match windows.into_iter().find(long) {
        Some((start, length)) => SteadyWindow {
            status,
            verdict: Some(SteadyVerdict::Steady),
            first_pass: Some(start as u32),
            passes: Some(length as u32),
            seconds: Some(seconds(&passes[start..start + length])),
        },
        None => SteadyWindow {
            status,
            // A deviation that lasts beyond the half is no warm-up.
            verdict: Some(why_none(if 2 * begin < passes.len() {
                &passes[begin..]
            } else {
                passes
            })),
            ..SteadyWindow::default()
        },
    }
}

const SERIES: [fn(&Pass) -> f64; 2] = [|pass| pass.p50_ns, |pass| pass.p90_ns];

fn series(passes: &[Pass]) -> [Vec<f64>; 2] {
    SERIES.map(|of| passes.iter().map(of).collect())
}

/// How many of the first passes are warm-up: at most half.
fn warm_up(passes: &[Pass]) -> usize {
    let half = passes.len() / 2;
    let near = series(passes).map(|values| {
        let level = median(&mut values[half..].to_vec());
        let is_off = |value: &f64| (value - level).abs() > WARM_UP_BAND * level;
        values[..half].iter().take_while(|value| is_off(value)).count()
    });
    near[0].max(near[1])
}

/// How many passes from the first on form the longest steady window; `None` below four.
fn grown(passes: &[Pass]) -> Option<usize> {
    let lengths = PASSES_MIN..=passes.len();
    lengths.take_while(|length| series(&passes[..*length]).iter().all(|it| is_steady(it))).last()
}

fn is_steady(values: &[f64]) -> bool {
    let bound = VARIATION_MAX.iter().find(|(passes, _)| values.len() >= *passes);
    let is_even = bound.is_some_and(|(_, most)| variation(values) <= *most);
    is_even && !is_rising_or_falling(values)
}

fn is_rising_or_falling(values: &[f64]) -> bool {
    let trend = mann_kendall(values).filter(|trend| trend.p < SIGNIFICANT);
    trend.is_some_and(|trend| drift(values, trend.slope).abs() >= DRIFT_MIN)
}

/// From the first value to the last, as a share of the median.
fn drift(values: &[f64], slope: f64) -> f64 {
    let level = median(&mut values.to_vec());
    if level > 0.0 { slope * (values.len() - 1) as f64 / level } else { 0.0 }
}

fn why_none(passes: &[Pass]) -> SteadyVerdict {
    let both = series(passes);
    let drifts = both.iter().filter_map(|values| {
        let slope = mann_kendall(values)?.slope;
        let rest: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - slope * i as f64).collect();
        let noise = variation(&rest) * rest.iter().sum::<f64>() / rest.len() as f64;
        let change = slope * (values.len() - 1) as f64;
        let clear = change.abs() >= DRIFTING_TO_NOISE * noise;
        Some(drift(values, slope)).filter(|drift| clear && drift.abs() >= DRIFTING)
    });
    let shifts = |values: &Vec<f64>| pettitt(values).is_some_and(|(_, p)| p < SIGNIFICANT);
    match drifts.reduce(|a, b| if b.abs() > a.abs() { b } else { a }) {
        _ if both.iter().any(|values| steps(values)) => SteadyVerdict::Anomaly,
        Some(drift) if drift > 0.0 => SteadyVerdict::DriftingUp,
        Some(_) => SteadyVerdict::DriftingDown,
        None if both.iter().any(shifts) => SteadyVerdict::Anomaly,
        None => SteadyVerdict::NotFound,
    }
}

/// Two levels, each of them even: a drift has none.
fn steps(values: &[f64]) -> bool {
    let Some((at, p)) = pettitt(values) else { return false };
    let (before, after) = values.split_at(at);
    let even = |part: &[f64]| part.len() > 1 && !is_rising_or_falling(part);
    let level = |part: &[f64]| median(&mut part.to_vec());
    let jump = (level(after) - level(before)).abs();
    let spread = |part: &[f64]| variation(part) * level(part);
    p < SIGNIFICANT && even(before) && even(after) && jump > 4.0 * spread(before).max(spread(after))
}

/// A trend with its slope per step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trend {
    /// Probability that a series without a trend shows as much.
    p: f64,
    /// Sen's: the median of the slopes between all pairs.
    slope: f64,
}

/// `None` below four values.
fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < 4 {
        return None;
    }
    let pairs = || (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    let s: f64 = pairs().map(|(i, j)| sign(values[j] - values[i])).sum();
    let mut slopes: Vec<f64> =
        pairs().map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    let slope = median(&mut slopes);
    let count = n as f64;
    let ties: f64 = tied(values).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (count * (count - 1.0) * (2.0 * count + 5.0) - ties) / 18.0;
    let corrected = variance * hamed_rao(values, slope);
    let p = match corrected > 0.0 {
        true => 2.0 * normal_above((s.abs() - 1.0).max(0.0) / corrected.sqrt()),
        // All values are the same.
        false => 1.0,
    };
    Some(Trend { p: p.min(1.0), slope })
}

/// By how much correlated neighbours widen the variance: from the significant autocorrelations of
/// the ranks of the detrended values.
fn hamed_rao(values: &[f64], slope: f64) -> f64 {
    let rest: Vec<f64> = values.iter().enumerate().map(|(i, v)| v - slope * i as f64).collect();
    let ranks = ranks(&rest);
    let n = ranks.len();
    let count = n as f64;
    let mean = ranks.iter().sum::<f64>() / count;
    let off: Vec<f64> = ranks.iter().map(|rank| rank - mean).collect();
    let squares: f64 = off.iter().map(|off| off * off).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let sum: f64 = (1..n - 1)
        .map(|lag| (lag, off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>() / squares))
        .filter(|(_, rho)| rho.abs() > NORMAL_95 / count.sqrt())
        .map(|(lag, rho)| {
            let left = count - lag as f64;
            left * (left - 1.0) * (left - 2.0) * rho
        })
        .sum();
    // Anti-correlated neighbours do not make a trend more certain.
    (1.0 + 2.0 * sum / (count * (count - 1.0) * (count - 2.0))).max(1.0)
}

/// The index before which a level shift lies, and the probability that a series without one shows
/// as much.
fn pettitt(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    let shift = |at: usize| -> f64 {
        let (before, after) = values.split_at(at);
        before.iter().flat_map(|a| after.iter().map(move |b| sign(a - b))).sum()
    };
    let all = (1..n).map(|at| (at, shift(at).abs()));
    let (at, k) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let count = n as f64;
    let p = 2.0 * (-6.0 * k * k / (count.powi(3) + count.powi(2))).exp();
    Some((at, p.min(1.0)))
}

/// Standard deviation over mean.
fn variation(values: &[f64]) -> f64 {
    let Moments { mean, variance, .. } = Moments::from_values(values);
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

/// Middle value; sorts. Of none zero.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match (values.len() / 2, values.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => f64::midpoint(values[half - 1], values[half]),
        (half, _) => values[half],
    }
}

fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

/// How many values share each value that several have.
fn tied(values: &[f64]) -> impl Iterator<Item = f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let sizes: Vec<f64> = sorted.chunk_by(|a, b| a == b).map(|same| same.len() as f64).collect();
    sizes.into_iter().filter(|size| *size > 1.0)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let same = values.iter().filter(|other| *other == value).count();
        below as f64 + (same as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests;
