//! The demand of an op as a curve over load: D = a + w (1 − ρ) + b / x + c x + k (n − 1).
//!
//! All terms are linear in their coefficients, of which none may be below zero. Akaike's criterion,
//! with its correction for few observations, selects the terms. The selection is repeated for each
//! of the curves drawn (parametric bootstrap), so that the interval includes its uncertainty.

use plimsoll_model::size::{Estimate, Term, TermKind};

use crate::equations::solved;
use crate::sampling::{self, NORMAL_95, middle, quantile};

/// The same runs give the same figures.
const SEED: u64 = 0x5349_5a45;
const RESAMPLES: usize = 400;
/// Relative error of a demand that a monitor read: smaller differences are not distinguished.
const ERROR_MIN_RATIO: f64 = 0.005;
/// Relative error of a demand without an interval of its own.
const ERROR_RATIO: f64 = 0.02;
/// A column keeps less than this share of its squares next to the others.
const LEFT_MIN_RATIO: f64 = 1e-9;
/// Steps of the normal distribution that errors are drawn from.
const NORMAL_SCORES: usize = 40;
const NS_PER_S: f64 = 1e9;

/// One measured demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) ops_per_s: f64,
    /// Cores of the server; one where processors play no part.
    pub(super) cores: f64,
    /// How busy these are.
    pub(super) busy_ratio: f64,
    pub(super) value: f64,
    pub(super) interval: Option<[f64; 2]>,
}

impl Observation {
    fn error_ratio(&self) -> f64 {
        let half = |[low, high]: [f64; 2]| (high - low) / 2.0 / NORMAL_95 / self.value;
        self.interval.map_or(ERROR_RATIO, half).max(0.0).hypot(ERROR_MIN_RATIO)
    }

    fn regressor(&self, kind: TermKind) -> f64 {
        match kind {
            TermKind::Constant => 1.0,
            TermKind::WakeUps => 1.0 - self.busy_ratio.clamp(0.0, 1.0),
            TermKind::Background => 1.0 / self.ops_per_s,
            TermKind::Contention => self.ops_per_s,
            TermKind::Processors => further(self.cores),
        }
    }
}

/// Processors after the first: a quota below one is one processor for a part of the time.
fn further(cores: f64) -> f64 {
    (cores - 1.0).max(0.0)
}

/// A law with its coefficients.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) terms: Vec<Term>,
}

impl Curve {
    /// The coefficient of a term.
    pub(super) fn coefficient(&self, kind: TermKind) -> f64 {
        self.terms.iter().find(|term| term.kind == kind).map_or(0.0, |term| term.value)
    }

    /// Demand of an op where the processors are used to this ratio.
    pub(super) fn demand(&self, ops_per_s: f64, cores: f64, busy_ratio: f64) -> f64 {
        let here = Observation { ops_per_s, cores, busy_ratio, value: 1.0, interval: None };
        self.terms.iter().map(|term| term.value * here.regressor(term.kind)).sum()
    }

    /// Throughput of these cores at this use of them, for a demand in nanoseconds.
    pub(super) fn carried(&self, cores: f64, busy_ratio: f64) -> Option<f64> {
        let [a, w, b, c, k] = self.coefficients();
        let per_op = a + w * (1.0 - busy_ratio) + k * further(cores);
        let left = busy_ratio * cores * NS_PER_S - b;
        // The positive root of c x² + per_op x = left, in the form that c = 0 has too.
        let root = (per_op * per_op + 4.0 * c * left).sqrt();
        let ops_per_s = 2.0 * left / (per_op + root);
        (left > 0.0 && ops_per_s.is_finite() && ops_per_s > 0.0).then_some(ops_per_s)
    }

    /// Number of cores for that throughput at this use of them; `None` where further ones cost more
    /// than they bring.
    pub(super) fn cores_for(&self, ops_per_s: f64, busy_ratio: f64) -> Option<f64> {
        let [a, w, b, c, k] = self.coefficients();
        let per_op = a + w * (1.0 - busy_ratio) + c * ops_per_s;
        let one = (ops_per_s * per_op + b) / (busy_ratio * NS_PER_S);
        if one <= 1.0 {
            return Some(one);
        }
        let below = busy_ratio * NS_PER_S - ops_per_s * k;
        let cores = (ops_per_s * (per_op - k) + b) / below;
        (below > 0.0 && cores.is_finite()).then_some(cores)
    }

    fn coefficients(&self) -> [f64; 5] {
        use TermKind::{Background, Constant, Contention, Processors, WakeUps};
        [Constant, WakeUps, Background, Contention, Processors].map(|kind| self.coefficient(kind))
    }
}

/// The best curve, and those drawn around it.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    pub(super) curve: Curve,
    drawn: Vec<Curve>,
}

impl Fitted {
    /// With the terms that may be added to the constant one; those in `always` are in every law.
    pub(super) fn from_observations(
        observations: &[Observation],
        may: &[TermKind],
        always: &[TermKind],
    ) -> Option<Self> {
        let candidates = candidates(may, always);
        // A law with as many terms as there are loads proves nothing.
        let terms_max = (loads(observations).max(1) - 1).max(1 + always.len());
        let candidates: Vec<_> =
            candidates.into_iter().filter(|it| it.len() <= terms_max).collect();
        let (curve, squares) = chosen(observations, &candidates)?;
        let free = observations.len().saturating_sub(curve.terms.len()).max(1) as f64;
        // The monitors' own intervals, or the residual of the law where that is more.
        let widen = (squares / free).sqrt().max(1.0);
        let scores = normal_scores();
        let drawn = sampling::resampled(SEED, RESAMPLES, |random| {
            let draw = |it: &Observation| {
                let fitted = curve.demand(it.ops_per_s, it.cores, it.busy_ratio);
                let error = it.error_ratio() * widen * random.one(&scores);
                Observation { value: fitted * (1.0 + error).max(0.01), ..*it }
            };
            let drawn: Vec<Observation> = observations.iter().map(draw).collect();
            chosen(&drawn, &candidates).map(|(curve, _)| curve)
        });
        Some(Self { curve, drawn: drawn.into_iter().flatten().collect() })
    }

    /// A figure of the curve, with the middle 95 % of its values on the drawn ones.
    pub(super) fn estimate(&self, figure: impl Fn(&Curve) -> Option<f64>) -> Option<Estimate> {
        let value = figure(&self.curve)?;
        let all: Vec<Option<f64>> = self.drawn.iter().map(&figure).collect();
        let values: Vec<f64> = all.iter().flatten().copied().collect();
        // Curves without the figure have it beyond any bound.
        let bounded = (values.len() as f64) >= 0.975 * all.len() as f64;
        let [low, high] = middle(values)?;
        Some(Estimate { value, low: low.min(value), high: bounded.then_some(high.max(value)) })
    }
}

/// Sets of terms, smaller ones first.
fn candidates(may: &[TermKind], always: &[TermKind]) -> Vec<Vec<TermKind>> {
    let mut sets: Vec<Vec<TermKind>> = (0..1_u32 << may.len())
        .map(|chosen| {
            let more = (0..may.len()).filter(|at| chosen >> at & 1 == 1).map(|at| may[at]);
            [TermKind::Constant].into_iter().chain(always.iter().copied()).chain(more).collect()
        })
        .collect();
    sets.sort_by_key(Vec::len);
    sets
}

/// The law that explains most for its number of terms, and its squared residual, in errors.
fn chosen(observations: &[Observation], sets: &[Vec<TermKind>]) -> Option<(Curve, f64)> {
    let n = observations.len() as f64;
    // The monitors' errors weigh the observations; their size comes from the scatter, which may be
    // less. The least residual is the smallest distinguishable difference.
    let least = |it: &Observation| (ERROR_MIN_RATIO / it.error_ratio()).powi(2);
    let least = observations.iter().map(least).sum::<f64>() / n;
    let mut best: Option<(f64, Curve, f64)> = None;
    for set in sets {
        let terms = set.len() as f64;
        let Some(curve) = least_squares(observations, set) else { continue };
        let squares = squared_residuals(observations, &curve);
        let per_term = 2.0 * n / (n - terms - 1.0).max(1.0);
        let score = n * (least + squares / n).ln() + per_term * terms;
        if best.as_ref().is_none_or(|(least, ..)| score < *least) {
            best = Some((score, curve, squares));
        }
    }
    best.map(|(_, curve, squares)| (curve, squares))
}

/// Number of different loads: repeats count once. Each size of the server has its own.
pub(super) fn loads(observations: &[Observation]) -> usize {
    const SAME_RATIO: f64 = 1.05;
    let mut all: Vec<(f64, f64)> = observations.iter().map(|it| (it.cores, it.ops_per_s)).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    all.chunk_by(|a, b| a.0 == b.0 && b.1 <= a.1 * SAME_RATIO).count()
}

fn squared_residuals(observations: &[Observation], curve: &Curve) -> f64 {
    let left = |it: &Observation| {
        let off = curve.demand(it.ops_per_s, it.cores, it.busy_ratio) / it.value - 1.0;
        (off / it.error_ratio()).powi(2)
    };
    observations.iter().map(left).sum()
}

/// Weighted by the errors; `None` where a coefficient would fall below zero or cannot be
/// distinguished from the others, and where the demand would vanish.
fn least_squares(observations: &[Observation], set: &[TermKind]) -> Option<Curve> {
    let size = set.len();
    let mut rows = vec![vec![0.0; size + 1]; size];
    for it in observations {
        let weight = 1.0 / (it.error_ratio() * it.value).powi(2);
        let columns: Vec<f64> = set.iter().map(|kind| it.regressor(*kind)).collect();
        for (row, a) in rows.iter_mut().zip(&columns) {
            for (sum, b) in row.iter_mut().zip(columns.iter().chain([&it.value])) {
                *sum += weight * a * b;
            }
        }
    }
    let values = solved(rows, LEFT_MIN_RATIO)?;
    let lowest = observations.iter().map(|it| it.value).fold(f64::INFINITY, f64::min);
    let fits = values.iter().all(|value| value.is_finite() && *value >= 0.0);
    // The part of an op's demand that no saving removes.
    const LEAST_RATIO: f64 = 0.1;
    let remains = values.first().is_some_and(|constant| *constant >= LEAST_RATIO * lowest);
    let terms = set.iter().zip(values).map(|(kind, value)| Term { kind: *kind, value });
    (fits && remains).then(|| Curve { terms: terms.collect() })
}

/// Values of the normal distribution, equally likely.
fn normal_scores() -> Vec<f64> {
    let half = (0..NORMAL_SCORES / 2)
        .map(|at| quantile(0.5 + (at as f64 + 0.5) / NORMAL_SCORES as f64, f64::INFINITY));
    half.flat_map(|score| [score, -score]).collect()
}
