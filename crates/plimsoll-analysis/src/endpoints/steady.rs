//! The part of a load point in which the time per output token was steady.
//!
//! The reference client cuts a run by passes over its data set, in the order in which requests were
//! issued. A bundle has times by the second in which requests *ended*, so that a pass here is an
//! equal part of the window. The steps are the reference's: what is warm-up still is cropped, then
//! the first window that is long, without a trend and even enough is taken. Its confidence
//! intervals are left out: Plimsoll's own stand beside the figures.

use plimsoll_model::result::{SteadyStatus, SteadyVerdict, SteadyWindow};

use super::trend::{mann_kendall, median, pettitt, variation};

/// Passes that a steady window has at the least.
const PASSES_MIN: usize = 4;
/// What the first passes may differ from the median of the back half.
const WARM_UP_BAND: f64 = 0.05;
const SIGNIFICANT: f64 = 0.05;
/// A trend over a window below this share of its median is none.
const DRIFT_MIN: f64 = 0.05;
/// Numbers of passes, and how much a window of at least that many may vary, as a share of the mean.
const VARIATION_MAX: [(usize, f64); 3] = [(8, 0.08), (6, 0.05), (4, 0.03)];
/// A drift over all passes: as a share of their median, and over their scatter.
const DRIFTING: f64 = 0.15;
const DRIFTING_TO_NOISE: f64 = 2.0;
/// Length of a steady window at the least, in times of the p99 of the latency.
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

/// Searches the steady window. It is to be as long as `seconds_min` and as five times the p99 of
/// the latency.
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
    let found = starts.filter_map(|start| Some((start, grown(&passes[start..])?)));
    let long =
        |(start, length): &(usize, usize)| seconds(&passes[*start..start + length]) >= length_min;
    match found.into_iter().find(long) {
        Some((start, length)) => SteadyWindow {
            status,
            verdict: Some(SteadyVerdict::Steady),
            first_pass: Some(start as u32),
            passes: Some(length as u32),
            seconds: Some(seconds(&passes[start..start + length])),
        },
        None => SteadyWindow {
            status,
            // What is still off at the half is no warm-up.
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

/// How many of the first passes are warm-up still: at most half.
fn warm_up(passes: &[Pass]) -> usize {
    let half = passes.len() / 2;
    let near = series(passes).map(|values| {
        let level = median(&mut values[half..].to_vec());
        let is_off = |value: &f64| (value - level).abs() > WARM_UP_BAND * level;
        values[..half].iter().take_while(|value| is_off(value)).count()
    });
    near[0].max(near[1])
}

/// How many passes from the first on are the longest steady window; `None` below four.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(values: &[f64]) -> Vec<Pass> {
        let pass = |p50: &f64| Pass { p50_ns: *p50, p90_ns: p50 * 1.2, seconds: 100.0 };
        values.iter().map(pass).collect()
    }

    fn verdict(values: &[f64]) -> SteadyWindow {
        steady_window(&passes(values), 600.0, 3.0)
    }

    #[test]
    fn a_load_point_without_a_trend_is_steady_from_where_it_is_warm() {
        let found = verdict(&[14.0, 11.0, 10.0, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0, 10.05]);
        assert_eq!(
            (found.status, found.verdict),
            (SteadyStatus::Windowable, Some(SteadyVerdict::Steady))
        );
        assert_eq!(
            (found.first_pass, found.passes, found.seconds),
            (Some(2), Some(8), Some(800.0))
        );
    }

    #[test]
    fn a_drift_a_level_shift_and_noise_are_told_apart() {
        let rising: Vec<f64> = (0..12).map(|i| 10.0 + 0.6 * f64::from(i)).collect();
        assert_eq!(verdict(&rising).verdict, Some(SteadyVerdict::DriftingUp));
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        assert_eq!(verdict(&falling).verdict, Some(SteadyVerdict::DriftingDown));
        let mut shifted = [10.0, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0, 10.1].to_vec();
        shifted.extend(shifted.clone().iter().map(|value| value * 1.4));
        let long = steady_window(&passes(&shifted), 1_000.0, 3.0);
        assert_eq!(long.verdict, Some(SteadyVerdict::Anomaly));
        assert_eq!(verdict(&shifted).passes, Some(8), "each level is long enough for 600 s");
        let noisy = [10.0, 14.0, 9.0, 15.0, 8.0, 13.0, 10.0, 15.0, 9.0, 14.0];
        assert_eq!(verdict(&noisy).verdict, Some(SteadyVerdict::NotFound));
    }

    #[test]
    fn too_little_is_said_to_be_too_little() {
        assert_eq!(verdict(&[]).status, SteadyStatus::PartialDataset);
        assert_eq!(verdict(&[10.0; 3]).status, SteadyStatus::InsufficientPasses);
        assert_eq!(verdict(&[10.0; 5]).status, SteadyStatus::InsufficientDuration);
        assert_eq!(
            steady_window(&passes(&[10.0; 5]), 60.0, 200.0).status,
            SteadyStatus::InsufficientDuration
        );
    }
}
