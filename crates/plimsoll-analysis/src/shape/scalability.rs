//! The universal scalability law, fitted to the throughput itself, and its predictions for
//! unmeasured loads.

#[cfg(test)]
mod scipy;

use plimsoll_model::shape::Scalability;

use super::{Loaded, by_load, peak, resampled};
use crate::equations::solved;
use crate::sampling::middle;

/// γ, α and β, and one load more.
const LOADS_MIN: usize = 4;
const PARAMETERS: usize = 3;
/// All work is contended.
const ALPHA_MAX: f64 = 1.0;
const STEPS_MAX: usize = 200;
/// A step that improves the fit by less ends it.
const BETTER_MIN_RATIO: f64 = 1e-13;

/// Why a fit does not predict a load.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PredictError {
    /// Past the measured loads, and no measured load lies beyond a peak.
    #[error(
        "{load} clients are more than the {measured_to} that were measured, and throughput had \
         not fallen by then: what follows a rise the rise does not tell; measure higher loads"
    )]
    Extrapolates {
        /// The requested load.
        load: f64,
        /// The highest load measured.
        measured_to: f64,
    },
    /// Not a number of clients.
    #[error("{load} is no number of clients; give one from 1 up")]
    NoLoad {
        /// The requested load.
        load: f64,
    },
}

/// Throughput at `load` by the fit, inside the measured loads; beyond them only where a measured
/// load lies beyond the peak.
///
/// # Errors
/// When the fit would have to extrapolate a rise.
pub fn predict(fit: &Scalability, load: f64) -> Result<f64, PredictError> {
    if !load.is_finite() || load < 1.0 {
        return Err(PredictError::NoLoad { load });
    }
    if load > fit.measured_to && !fit.past_peak {
        return Err(PredictError::Extrapolates { load, measured_to: fit.measured_to });
    }
    Ok(law([fit.gamma, fit.alpha, fit.beta], load))
}

/// The fit with α, β ≥ 0; `None` below four loads, and where the points leave α open: then each of
/// the three can replace the others.
pub fn scalability(points: &[Loaded]) -> Option<Scalability> {
    let points = by_load(points);
    if points.chunk_by(|a, b| a.load == b.load).count() < LOADS_MIN {
        return None;
    }
    let best = fit(&points)?;
    let fitted: Vec<f64> = points.iter().map(|point| law(best, point.load)).collect();
    let drawn = resampled(&points, &fitted, PARAMETERS, |points| fit_from(points, best));
    let interval = |at: usize| {
        let [low, high] =
            middle(drawn.iter().flatten().map(|parameters| parameters[at]).collect())?;
        Some([low.min(best[at]), high.max(best[at])])
    };
    let alpha_interval = interval(1).filter(|interval| interval[1] <= ALPHA_MAX)?;
    Some(Scalability {
        gamma: best[0],
        alpha: best[1],
        alpha_interval,
        beta: best[2],
        beta_interval: interval(2)?,
        measured_to: points.last()?.load,
        past_peak: peak(&points)?.falls,
    })
}

pub(super) fn law([gamma, alpha, beta]: [f64; 3], load: f64) -> f64 {
    gamma * load / (1.0 + alpha * (load - 1.0) + beta * load * (load - 1.0))
}

/// From contention alone, from coherency alone, and from both.
fn fit(points: &[Loaded]) -> Option<[f64; 3]> {
    let lowest = points.first()?;
    let gamma = lowest.throughput / lowest.load;
    let starts = [[gamma, 0.05, 0.0], [gamma, 0.0, 1e-3], [gamma, 0.01, 1e-4]];
    let fits = starts.into_iter().filter_map(|start| fit_from(points, start));
    fits.min_by(|a, b| squares(points, *a).total_cmp(&squares(points, *b)))
}

/// Levenberg and Marquardt's steps from `start`. A parameter at its bound that would leave it stays
/// there for the step.
fn fit_from(points: &[Loaded], start: [f64; 3]) -> Option<[f64; 3]> {
    let (mut at, mut damping) = (start, 1e-3);
    let mut error = squares(points, at);
    for _ in 0..STEPS_MAX {
        let (normal, gradient) = normal_equations(points, at);
        let free = [0, 1, 2].map(|i| i == 0 || at[i] > 0.0 || gradient[i] > 0.0);
        let step = damped_step(&normal, gradient, free, damping).unwrap_or_else(|| vec![0.0; 3]);
        let moved =
            [0, 1, 2].map(|i| if i == 0 { at[i] + step[i] } else { (at[i] + step[i]).max(0.0) });
        let reached = squares(points, moved);
        if reached < error {
            let done = error - reached <= BETTER_MIN_RATIO * error;
            (at, error, damping) = (moved, reached, (damping / 10.0).max(1e-12));
            if done {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    (error.is_finite() && at[0] > 0.0).then_some(at)
}

fn squares(points: &[Loaded], at: [f64; 3]) -> f64 {
    points.iter().map(|point| (point.throughput - law(at, point.load)).powi(2)).sum()
}

/// JᵀJ, and Jᵀ times the residual.
fn normal_equations(points: &[Loaded], at: [f64; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut normal, mut gradient) = ([[0.0; 3]; 3], [0.0; 3]);
    for point in points {
        let (n, x) = (point.load, law(at, point.load));
        let below = 1.0 + at[1] * (n - 1.0) + at[2] * n * (n - 1.0);
        let slopes = [n / below, -x * (n - 1.0) / below, -x * n * (n - 1.0) / below];
        for row in 0..3 {
            gradient[row] += slopes[row] * (point.throughput - x);
            for column in 0..3 {
                normal[row][column] += slopes[row] * slopes[column];
            }
        }
    }
    (normal, gradient)
}

/// The damped step of the `free` parameters.
fn damped_step(
    normal: &[[f64; 3]; 3],
    gradient: [f64; 3],
    free: [bool; 3],
    damping: f64,
) -> Option<Vec<f64>> {
    let is_free = |i: usize| free[i] && normal[i][i] > 0.0;
    let cell = |i: usize, j: usize| match (i == j, is_free(i) && is_free(j)) {
        (true, true) => normal[i][i] * (1.0 + damping),
        (false, true) => normal[i][j],
        (same, false) => f64::from(same),
    };
    let right = |i: usize| if is_free(i) { gradient[i] } else { 0.0 };
    let row = |i: usize| (0..3).map(|j| cell(i, j)).chain([right(i)]).collect();
    solved((0..3).map(row).collect(), 0.0)
}
