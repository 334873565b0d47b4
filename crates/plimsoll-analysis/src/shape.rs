//! The shape of throughput over load: where queueing must begin, where growth breaks off, where
//! throughput is highest, and how far a scalability law may be extrapolated.
//!
//! The bounds of a closed ladder are those of operational analysis: X ≤ N / (D + Z), with D + Z
//! from the lowest load, and X ≤ the highest throughput measured. Where they cross queueing must
//! begin, which is not the number of users supported.

mod scalability;

use plimsoll_model::result::PointResult;
use plimsoll_model::shape::{Asymptotes, Knee, Peak, Shape};
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Suite};
use plimsoll_model::units::grouped;

use crate::limit::FALL_MIN_RATIO;
use crate::point::{missed_load, throughput};
use crate::sampling::{self, middle};

pub use scalability::{PredictError, predict, scalability};

/// A peak below this share of N / (D + Z) has left it.
const LEFT_MAX_RATIO: f64 = 0.9;
/// Fewer points have no shape.
const POINTS_MIN: usize = 3;
/// The same bundle gives the same result.
const SEED: u64 = 0x4355_5256_4553;
const RESAMPLES: usize = 400;

/// One measured load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// The load point, from 1.
    pub position: u32,
    /// Clients that took part.
    pub load: f64,
    /// Its throughput.
    pub throughput: f64,
}

/// The shape of a closed ladder; `unit` is that of its throughput. `None` below three loads.
pub fn closed_shape(points: &[Loaded], unit: &str) -> Option<Shape> {
    let points = by_load(points);
    let loads = points.chunk_by(|a, b| a.load == b.load).count();
    if loads < POINTS_MIN {
        return None;
    }
    let peak = peak(&points)?;
    let knee = knee(&points);
    let mut shape = Shape {
        unit: unit.to_owned(),
        // Beyond its knee the lowest load does not show clients who never wait.
        asymptotes: match knee {
            Err(NoKnee::BelowLowest) => None,
            _ => asymptotes(&points, &peak),
        },
        knee: knee.ok(),
        peak: Some(peak),
        scalability: scalability(&points),
        ..Shape::default()
    };
    shape.text = closed_text(&shape, &peak, knee, (points.first()?.load, points.last()?.load));
    Some(shape)
}

/// The highest throughput as measured, of equals the one at the lowest load.
pub fn peak(points: &[Loaded]) -> Option<Peak> {
    let highest =
        by_load(points).into_iter().fold(None, |best: Option<Loaded>, point| match best {
            Some(best) if best.throughput >= point.throughput => Some(best),
            _ => Some(point),
        })?;
    let fallen = (1.0 - FALL_MIN_RATIO) * highest.throughput;
    let falls = points.iter().any(|p| p.load > highest.load && p.throughput < fallen);
    let Loaded { position, load, throughput } = highest;
    Some(Peak { position, load, throughput, falls })
}

/// The shape of a run's ladder: none of a ladder of think times, where clients do not change.
pub(crate) fn shape_of_run(suite: &Suite, points: &[PointResult]) -> Option<Shape> {
    let valid: Vec<&PointResult> = points.iter().filter(|point| point.valid).collect();
    match (&suite.load, &suite.ladder) {
        (LoadSpec::Open { .. }, _) => {
            open_shape(suite.metric, suite.load.unit(suite.metric), &valid)
        }
        (LoadSpec::Closed { .. }, Ladder::Think { .. }) => None,
        (LoadSpec::Closed { .. }, _) => {
            let loaded = |point: &&PointResult| {
                let clients = point.clients_participating.or(point.clients_requested)?;
                loaded(point, f64::from(clients), suite.metric)
            };
            let points: Vec<Loaded> = valid.iter().filter_map(loaded).collect();
            closed_shape(&points, suite.metric.unit())
        }
    }
}

/// Throughput of an open ladder follows the request up to its knee.
fn open_shape(metric: Metric, unit: &str, points: &[&PointResult]) -> Option<Shape> {
    let all: Vec<Loaded> =
        points.iter().filter_map(|point| loaded(point, point.requested, metric)).collect();
    let peak = peak(&all).filter(|_| all.len() >= POINTS_MIN)?;
    let missed = |point: &&&PointResult| missed_load(point);
    let missed = points.iter().filter(missed).map(|p| p.requested).reduce(f64::min);
    let text = match missed {
        Some(load) => format!(
            "throughput no longer follows the request from {} {unit} on; highest throughput when \
             asked for {} {unit}",
            grouped(load),
            grouped(peak.load)
        ),
        None => "throughput follows the request at every valid load: no knee reached".to_owned(),
    };
    let unit = metric.unit().to_owned();
    let peak = Some(peak);
    Some(Shape { text, unit, not_followed_from: missed, peak, ..Shape::default() })
}

fn loaded(point: &PointResult, load: f64, metric: Metric) -> Option<Loaded> {
    let throughput = throughput(metric, point).filter(|rate| rate.is_finite() && *rate > 0.0)?;
    let is_valid = load.is_finite() && load > 0.0;
    is_valid.then_some(Loaded { position: point.position, load, throughput })
}

fn by_load(points: &[Loaded]) -> Vec<Loaded> {
    let mut points = points.to_vec();
    points.sort_by(|a, b| a.load.total_cmp(&b.load).then(a.position.cmp(&b.position)));
    points
}

fn asymptotes(points: &[Loaded], peak: &Peak) -> Option<Asymptotes> {
    let lowest = points.first()?;
    let per_client = lowest.throughput / lowest.load;
    let ceiling = peak.throughput;
    let left = ceiling < LEFT_MAX_RATIO * per_client * peak.load;
    Some(Asymptotes { per_client, ceiling, queueing_from: left.then_some(ceiling / per_client) })
}

fn closed_text(
    shape: &Shape,
    peak: &Peak,
    knee: Result<Knee, NoKnee>,
    (first, last): (f64, f64),
) -> String {
    let number = |load: f64| match load < 10.0 {
        true => format!("{load:.1}").trim_end_matches(".0").to_owned(),
        false => format!("{load:.0}"),
    };
    let queueing = match shape.asymptotes.and_then(|asymptotes| asymptotes.queueing_from) {
        // A ceiling that was not reached is higher, and so is the crossing.
        Some(clients) if shape.knee.is_none() && !peak.falls => {
            format!("queueing must begin at {} clients or later", number(clients))
        }
        Some(clients) => format!("queueing must begin at {} clients", number(clients)),
        None if knee == Err(NoKnee::BelowLowest) => {
            format!("queueing begins at or below {} clients, the lowest load", number(first))
        }
        None => "throughput grows with the clients at every load".to_owned(),
    };
    let knee = match knee {
        Ok(knee) => {
            let [load, low, high] = [knee.load, knee.low, knee.high].map(number);
            format!("knee at {load} ({low}–{high}) clients")
        }
        Err(none) => none.to_string(),
    };
    let peak_load = number(peak.load);
    let highest = match peak.falls {
        true => format!("peak at {peak_load} clients"),
        false if peak.load < last && shape.knee.is_some() => {
            format!("highest at {peak_load} clients, on a plateau to {}", number(last))
        }
        false => format!("highest at {peak_load} clients, no fall beyond"),
    };
    let highest =
        if peak.load < last { highest } else { format!("highest at {peak_load}, the last load") };
    format!("{queueing}; {knee}; {highest}")
}

/// Results of `fit` on resampled throughput: the residuals of the fitted curve, widened for its
/// `parameters`, are put back at random points.
fn resampled<T>(
    points: &[Loaded],
    fitted: &[f64],
    parameters: usize,
    fit: impl Fn(&[Loaded]) -> Option<T>,
) -> Vec<Option<T>> {
    let n = points.len();
    let free = n.saturating_sub(parameters).max(1);
    let widen = (n as f64 / free as f64).sqrt();
    let left: Vec<f64> =
        points.iter().zip(fitted).map(|(p, fit)| (p.throughput - fit) * widen).collect();
    sampling::resampled(SEED, RESAMPLES, |random| {
        let drawn = points.iter().zip(fitted);
        let drawn = drawn
            .map(|(point, fitted)| Loaded { throughput: fitted + random.one(&left), ..*point });
        fit(&drawn.collect::<Vec<_>>())
    })
}

/// Why there is no knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKnee {
    /// Two lines need more points.
    #[error("fewer than {KNEE_LOADS_MIN} loads up to the peak: too few to look for a knee")]
    FewLoads,
    /// The first line would rest on one load.
    #[error("no knee among the loads, which begin beyond it")]
    BelowLowest,
    /// Throughput goes on rising, or it is not certain that it stops.
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

/// The knee with its interval. Where throughput falls, points after the peak are left out.
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
    let best = broken_line(&points).filter(|best| best.break_load().is_some());
    let best = best.ok_or(NoKnee::NotReached)?;
    if begins_beyond(&points, best.knee) {
        return Err(NoKnee::BelowLowest);
    }
    let fitted: Vec<f64> = points.iter().map(|point| best.throughput(point.load)).collect();
    let drawn = resampled(&points, &fitted, PARAMETERS, |points| broken_line(points)?.break_load());
    let knees: Vec<f64> = drawn.iter().copied().flatten().collect();
    if (knees.len() as f64) < AGREE_MIN_RATIO * drawn.len() as f64 {
        return Err(NoKnee::NotReached);
    }
    let [low, high] = middle(knees).ok_or(NoKnee::NotReached)?;
    Ok(Knee { load: best.knee, low: low.min(best.knee), high: high.max(best.knee) })
}

/// Does the first line rest on the lowest load alone, and end close beyond it?
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
    fn throughput(&self, load: f64) -> f64 {
        self.first * load.min(self.knee) + self.second * (load - self.knee).max(0.0)
    }

    fn break_load(&self) -> Option<f64> {
        (self.first > 0.0 && self.second < BREAK_MAX_RATIO * self.first).then_some(self.knee)
    }

    fn squares(&self, points: &[Loaded]) -> f64 {
        points.iter().map(|point| (point.throughput - self.throughput(point.load)).powi(2)).sum()
    }
}

/// The best of all: each split's two lines where they meet between its two loads, and each load
/// itself as the knee.
fn broken_line(points: &[Loaded]) -> Option<BrokenLine> {
    let splits = (1..points.len().saturating_sub(1)).filter_map(|split| meeting(points, split));
    let inner = points.get(..points.len().saturating_sub(2))?;
    let bends = inner.iter().filter_map(|point| bent_at(points, point.load));
    splits
        .chain(bends)
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

#[cfg(test)]
mod tests;
