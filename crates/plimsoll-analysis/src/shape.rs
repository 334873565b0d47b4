//! The shape of throughput over load: where queueing must begin, where growth breaks off, where
//! throughput is highest, and how far a law of scalability may be believed.
//!
//! The bounds of a closed ladder are those of operational analysis: X ≤ N / (D + Z), with D + Z
//! from the lowest load, and X ≤ the highest throughput measured. Where they cross queueing must
//! begin, which is not the number of users supported.

mod knee;
mod scalability;
#[cfg(test)]
mod tests;

use plimsoll_model::result::PointResult;
use plimsoll_model::shape::{Asymptotes, Knee, Peak, Shape};
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Suite};
use plimsoll_model::units::grouped;

use crate::limit::FALL_MIN_RATIO;
use crate::metric::throughput;
use crate::point::missed_load;
use crate::sampling;

pub use knee::{KNEE_LOADS_MIN, NoKnee, knee};
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
    /// What was done.
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
        // Beyond its knee the lowest load says nothing of clients who never wait.
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
        (LoadSpec::Open { .. }, _) => open_shape(suite.metric, &valid),
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

/// Throughput of an open ladder follows the request until it does not.
fn open_shape(metric: Metric, points: &[&PointResult]) -> Option<Shape> {
    let all: Vec<Loaded> =
        points.iter().filter_map(|point| loaded(point, point.requested, metric)).collect();
    let peak = peak(&all).filter(|_| all.len() >= POINTS_MIN)?;
    let missed = |point: &&&PointResult| missed_load(point);
    let missed = points.iter().filter(missed).map(|p| p.requested).reduce(f64::min);
    let text = match missed {
        Some(load) => format!(
            "throughput no longer follows the request from {} ops/s on; highest throughput when \
             asked for {} ops/s",
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
    let known = load.is_finite() && load > 0.0;
    known.then_some(Loaded { position: point.position, load, throughput })
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
    let queueing = match shape.asymptotes.and_then(|found| found.queueing_from) {
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
    let place = number(peak.load);
    let highest = match peak.falls {
        true => format!("peak at {place} clients"),
        false if peak.load < last && shape.knee.is_some() => {
            format!("highest at {place} clients, on a plateau to {}", number(last))
        }
        false => format!("highest at {place} clients, no fall beyond"),
    };
    let highest =
        if peak.load < last { highest } else { format!("highest at {place}, the last load") };
    format!("{queueing}; {knee}; {highest}")
}

/// What `fit` gives of throughput drawn again: what the fitted curve leaves over, widened for the
/// `parameters` it took, put back at random places.
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

/// The middle 95 % of `values`.
fn middle(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get(((values.len() as f64 - 1.0) * share).round() as usize);
    Some([*at(0.025)?, *at(0.975)?])
}
