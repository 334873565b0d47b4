//! The knee: two straight lines, the first from the origin, that meet where they fit the points
//! best (least squares, solved for each place between two loads), with a bootstrap interval.

use plimsoll_model::shape::Knee;

use super::{Loaded, by_load, middle, peak, resampled};

/// Why there is no knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKnee {
    /// Two lines need more points.
    #[error("fewer than {KNEE_LOADS_MIN} loads up to the peak: too few to look for a knee")]
    FewLoads,
    /// The first line would rest on one load.
    #[error("no knee among the loads, which begin beyond it")]
    BelowLowest,
    /// Throughput goes on rising, or it is not certain that it does not.
    #[error("no knee reached")]
    NotReached,
}

/// Fewer loads than this cannot tell two lines from scatter.
pub const KNEE_LOADS_MIN: usize = 5;
/// The second line must rise by less than this share of the first.
const BREAK_MAX_RATIO: f64 = 0.5;
/// Share of the bootstrap's samples that must have a knee too.
const AGREE_MIN_RATIO: f64 = 0.95;
/// A knee this close above the lowest load is scatter of a ladder that began beyond it.
const BEGIN_MAX_RATIO: f64 = 1.1;
/// Slope and knee of the first line, slope of the second.
const PARAMETERS: usize = 3;

/// The knee with its interval. Where throughput falls, what comes after the peak has no part in it.
///
/// # Errors
/// When the points have none.
pub fn knee(points: &[Loaded]) -> Result<Knee, NoKnee> {
    let mut points = by_load(points);
    if let Some(peak) = peak(&points).filter(|peak| peak.falls) {
        points.retain(|point| point.load <= peak.load);
    }
    if points.chunk_by(|a, b| a.load == b.load).count() < KNEE_LOADS_MIN {
        return Err(NoKnee::FewLoads);
    }
    let best = broken_line(&points).filter(|best| best.place().is_some());
    let best = best.ok_or(NoKnee::NotReached)?;
    if begins_beyond(&points, best.knee) {
        return Err(NoKnee::BelowLowest);
    }
    let fitted: Vec<f64> = points.iter().map(|point| best.at(point.load)).collect();
    let drawn = resampled(&points, &fitted, PARAMETERS, |points| broken_line(points)?.place());
    let places: Vec<f64> = drawn.iter().copied().flatten().collect();
    if (places.len() as f64) < AGREE_MIN_RATIO * drawn.len() as f64 {
        return Err(NoKnee::NotReached);
    }
    let [low, high] = middle(places).ok_or(NoKnee::NotReached)?;
    Ok(Knee { load: best.knee, low: low.min(best.knee), high: high.max(best.knee) })
}

/// Does the first line rest on the lowest load alone, and go hardly beyond it?
fn begins_beyond(points: &[Loaded], knee: f64) -> bool {
    let Some(lowest) = points.first() else { return true };
    let alone = points.iter().all(|point| point.load == lowest.load || point.load > knee);
    alone && knee <= BEGIN_MAX_RATIO * lowest.load
}

#[derive(Clone, Copy, Debug)]
struct BrokenLine {
    first: f64,
    second: f64,
    knee: f64,
}

impl BrokenLine {
    fn at(&self, load: f64) -> f64 {
        self.first * load.min(self.knee) + self.second * (load - self.knee).max(0.0)
    }

    fn place(&self) -> Option<f64> {
        (self.first > 0.0 && self.second < BREAK_MAX_RATIO * self.first).then_some(self.knee)
    }

    fn squares(&self, points: &[Loaded]) -> f64 {
        points.iter().map(|point| (point.throughput - self.at(point.load)).powi(2)).sum()
    }
}

/// The best of all: each split's two lines where they meet between its two loads, and each load
/// itself as the place.
fn broken_line(points: &[Loaded]) -> Option<BrokenLine> {
    let splits = (1..points.len().saturating_sub(1)).filter_map(|split| meeting(points, split));
    let inner = points.get(..points.len().saturating_sub(2))?;
    let places = inner.iter().filter_map(|point| bent_at(points, point.load));
    splits
        .chain(places)
        .map(|line| (line.squares(points), line))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, line)| line)
}

/// Two lines fitted apart, when they meet between the loads on both sides of `split`.
fn meeting(points: &[Loaded], split: usize) -> Option<BrokenLine> {
    let (low, high) = points.split_at(split);
    let first = ratio(low.iter().map(|p| (p.load, p.throughput)))?;
    let n = high.len() as f64;
    let mean_load = high.iter().map(|p| p.load).sum::<f64>() / n;
    let mean = high.iter().map(|p| p.throughput).sum::<f64>() / n;
    let second = ratio(high.iter().map(|p| (p.load - mean_load, p.throughput - mean)))?;
    let knee = (mean - second * mean_load) / (first - second);
    let between = low.last()?.load..=high.first()?.load;
    between.contains(&knee).then_some(BrokenLine { first, second, knee })
}

/// The best two lines that meet at `knee`.
fn bent_at(points: &[Loaded], knee: f64) -> Option<BrokenLine> {
    let [mut aa, mut ab, mut bb, mut ay, mut by] = [0.0; 5];
    for point in points {
        let (a, b) = (point.load.min(knee), (point.load - knee).max(0.0));
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ay += a * point.throughput;
        by += b * point.throughput;
    }
    let determinant = aa * bb - ab * ab;
    let line = BrokenLine {
        first: (ay * bb - by * ab) / determinant,
        second: (by * aa - ay * ab) / determinant,
        knee,
    };
    (determinant > 0.0).then_some(line)
}

/// Least squares of y = s x.
fn ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (xy, xx) = pairs.fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
    (xx > 0.0).then(|| xy / xx)
}
