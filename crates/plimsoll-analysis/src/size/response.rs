//! Response time over the use of the processors: the measured curve between two loads, beyond them
//! the law of a queue, R = r + q ρ^(√(2(n+1))−1) / (1 − ρ) (Sakasegawa 1977 for n processors). The
//! figures of a distribution keep their measured ratio to the mean.

use plimsoll_model::capacity::Figure;
use plimsoll_model::result::TimeSummary;
use plimsoll_model::size::{Estimate, ResponseLaw};

use super::measured::Measured;
use crate::sampling::NORMAL_95;

/// Beyond it a closed load's response time is made by its clients.
const BUSY_MAX_RATIO: f64 = 0.95;
/// A mean that is known better differs by this from run to run.
const ERROR_MIN_RATIO: f64 = 0.03;

/// The response times of one size of the server, by rising use of its processors.
pub(super) struct Response {
    points: Vec<At>,
    /// r and q.
    law: [f64; 2],
    exponent: f64,
    /// What the law leaves over.
    error_ratio: f64,
}

struct At {
    busy_ratio: f64,
    times: TimeSummary,
    mean: f64,
    error_ratio: f64,
}

impl Response {
    /// `None` where no load point has both.
    pub(super) fn of(points: &[&Measured]) -> Option<Self> {
        let at = |point: &&Measured| {
            let mean = point.response.mean.filter(|mean| *mean > 0.0)?;
            let busy_ratio = point.busy_ratio().filter(|busy| *busy < BUSY_MAX_RATIO)?;
            let error_ratio = (point.response_error_ns / mean).max(ERROR_MIN_RATIO);
            Some(At { busy_ratio, times: point.response, mean, error_ratio })
        };
        let mut found: Vec<At> = points.iter().filter_map(at).collect();
        found.sort_by(|a, b| a.busy_ratio.total_cmp(&b.busy_ratio));
        let cores = points.iter().find_map(|point| point.cores)?;
        let exponent = exponent(cores);
        // Of requests that take equally long and come as they like, with the last demand measured.
        let demand = points.iter().rev().find_map(|point| Some(point.cpu_ns?.value))?;
        let least = demand / cores.max(1.0) / 2.0;
        let law = fitted(&found, exponent, least)?;
        let mut response = Self { points: found, law, exponent, error_ratio: 0.0 };
        let off = |at: &At| (response.mean(at.busy_ratio) / at.mean - 1.0).powi(2);
        let squares: f64 = response.points.iter().map(off).sum();
        response.error_ratio = (squares / response.points.len() as f64).sqrt();
        Some(response)
    }

    /// The mean by the law, in nanoseconds.
    pub(super) fn mean(&self, busy_ratio: f64) -> f64 {
        self.law[0] + self.law[1] * queued(busy_ratio, self.exponent)
    }

    /// A figure where the processors are used so much.
    pub(super) fn at(&self, figure: Figure, busy_ratio: f64) -> Option<(Estimate, ResponseLaw)> {
        let known = |at: &&At| value(&at.times, figure).is_some();
        let points: Vec<&At> = self.points.iter().filter(known).collect();
        let above = points.iter().position(|at| at.busy_ratio >= busy_ratio);
        if let Some(above) = above.filter(|above| *above > 0) {
            let (a, b) = (points[above - 1], points[above]);
            let part = (busy_ratio - a.busy_ratio) / (b.busy_ratio - a.busy_ratio);
            let between = |a: f64, b: f64| a + part * (b - a);
            let found = between(value(&a.times, figure)?, value(&b.times, figure)?);
            let error = a.error_ratio.max(b.error_ratio);
            return Some((around(found, error), ResponseLaw::Measured));
        }
        let nearest = if above == Some(0) { points.first()? } else { points.last()? };
        let to_mean = value(&nearest.times, figure)? / nearest.mean;
        // An error of the law grows as the queue does.
        let grows = (1.0 - nearest.busy_ratio) / (1.0 - busy_ratio.min(BUSY_MAX_RATIO));
        let error = NORMAL_95 * self.error_ratio.hypot(nearest.error_ratio) * grows.max(1.0);
        Some((around(self.mean(busy_ratio) * to_mean, error), ResponseLaw::Queue))
    }
}

/// An interval of a factor to either side.
fn around(value: f64, error_ratio: f64) -> Estimate {
    let factor = 1.0 + error_ratio;
    Estimate { value, low: value / factor, high: Some(value * factor) }
}

pub(super) fn exponent(cores: f64) -> f64 {
    (2.0 * (cores.max(1.0) + 1.0)).sqrt() - 1.0
}

/// What waits, in services of one of the processors.
pub(super) fn queued(busy_ratio: f64, exponent: f64) -> f64 {
    busy_ratio.max(0.0).powf(exponent) / (1.0 - busy_ratio).max(1e-3)
}

/// r and q by weighted least squares, q no less than `least`, r no less than zero.
fn fitted(points: &[At], exponent: f64, least: f64) -> Option<[f64; 2]> {
    let [mut n, mut x, mut y, mut xx, mut xy] = [0.0; 5];
    for at in points {
        let (weight, queued) =
            ((at.error_ratio * at.mean).powi(-2), queued(at.busy_ratio, exponent));
        n += weight;
        x += weight * queued;
        y += weight * at.mean;
        xx += weight * queued * queued;
        xy += weight * queued * at.mean;
    }
    let determinant = n * xx - x * x;
    let slope = if determinant > 1e-9 * n * xx { (n * xy - x * y) / determinant } else { 0.0 };
    let q = slope.max(least);
    (n > 0.0).then(|| [((y - q * x) / n).max(0.0), q])
}

/// A figure of a distribution.
fn value(times: &TimeSummary, figure: Figure) -> Option<f64> {
    let whole = |value: Option<u64>| value.map(|ns| ns as f64);
    match figure {
        Figure::Mean => times.mean,
        Figure::P50 => whole(times.p50),
        Figure::P90 => whole(times.p90),
        Figure::P95 => whole(times.p95),
        Figure::P99 => whole(times.p99),
        Figure::P999 => whole(times.p999),
        Figure::Max => whole(times.max),
    }
}
