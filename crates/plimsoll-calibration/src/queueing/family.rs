//! The width of limits with which a sound instrument breaks *any* of a certificate's judgements at
//! most once in twenty: each judgement gets the share of that chance that Šidák's correction gives.

use plimsoll_analysis::normal_above;

/// Chance that a sound instrument breaks any of [`JUDGEMENTS_MAX`] judgements.
pub const FAMILY_ERROR: f64 = 0.05;
/// More judgements than a certificate of one protocol has. One of all has about 430, and the same
/// limits: it breaks with 7 %.
pub const JUDGEMENTS_MAX: f64 = 300.0;
/// The spread of a sample is taken to be as large as it is in 95 of 100 cases.
const SPREAD_DEVIATE: f64 = 1.645;

/// Chance that a sound instrument breaks one judgement: Šidák (1967), 1 − (1 − 0.05)^(1/n).
pub fn error_of_one() -> f64 {
    1.0 - (1.0 - FAMILY_ERROR).powf(1.0 / JUDGEMENTS_MAX)
}

/// How many standard deviations to either side leave out that chance.
pub fn deviate() -> f64 {
    normal_quantile(1.0 - error_of_one() / 2.0)
}

/// The interval of one more value like these, except for that chance. Their logarithms are taken to
/// be normal, with a standard deviation no smaller than the sample supports (Wilson and Hilferty's
/// approximation of χ²). Never narrower than the sample itself. `None` of fewer than two.
pub fn tolerance_interval(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let (low, high) = (
        values.iter().copied().fold(f64::INFINITY, f64::min),
        values.iter().copied().fold(0.0, f64::max),
    );
    if values.len() < 2 || low <= 0.0 {
        return None;
    }
    let mean = values.iter().map(|x| x.ln()).sum::<f64>() / n;
    let freedom = n - 1.0;
    let variance = values.iter().map(|x| (x.ln() - mean).powi(2)).sum::<f64>() / freedom;
    let width = 2.0 / (9.0 * freedom);
    let chi_square = freedom * (1.0 - width - SPREAD_DEVIATE * width.sqrt()).powi(3);
    let spread = (variance * freedom / chi_square * (1.0 + 1.0 / n)).sqrt() * deviate();
    Some((low.min((mean - spread).exp()), high.max((mean + spread).exp())))
}

/// Rank of a share in a sample of `n`, at its upper end: no draw of that size has more of it below.
pub fn upper_rank(share: f64, n: usize) -> f64 {
    (share + deviate() * (share * (1.0 - share) / n.max(1) as f64).sqrt()).min(1.0)
}

/// Most ops of an open load in a queue at this utilisation, except for that chance: its length
/// falls off at least as fast as the utilisation's powers.
pub fn queue_length_max(utilisation: f64, servers: u32) -> f64 {
    let inside = utilisation.clamp(0.01, 0.99);
    (error_of_one() / 2.0).ln() / inside.ln() + f64::from(servers)
}

/// Quantile of the normal distribution: halved to the end.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if normal_below(middle) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

fn normal_below(x: f64) -> f64 {
    if x < 0.0 { normal_above(-x) } else { 1.0 - normal_above(x) }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::certificate::Statistic;

    use super::super::scatter::{Plan, figure, scatter, simulate};
    use super::*;

    #[test]
    fn the_normal_quantiles_are_those_of_the_tables() {
        for (share, expected) in
            [(0.975, 1.959_96), (0.5, 0.0), (0.9995, 3.290_53), (0.05, -1.644_85)]
        {
            let actual = normal_quantile(share);
            assert!((actual - expected).abs() < 1e-4, "{share}: {actual}");
        }
    }

    #[test]
    fn three_hundred_judgements_break_once_in_twenty_certificates() {
        let sound = (1.0 - error_of_one()).powf(JUDGEMENTS_MAX);
        assert!((sound - 0.95).abs() < 1e-12, "{sound}");
        assert!((3.7..3.8).contains(&deviate()), "{}", deviate());
    }

    /// The fullest queue at quick's window, where figures scatter most: 2,000 further runs by other
    /// seeds, of which by the limit one or two in a thousand may lie outside for each statistic at
    /// the very most.
    #[test]
    fn simulated_runs_of_a_sound_instrument_lie_within_the_tolerance_interval() {
        let service = "const:500us".parse().unwrap();
        let plan = Plan { rate_per_s: 1_800.0, service, servers: 1, warm_up_s: 1.0, window_s: 3.0 };
        let limits = scatter(&plan);
        let mut outside = [0; Statistic::ALL.len()];
        for seed in 0..2_000 {
            let mut responses = simulate(&plan, 9_000_000 + seed);
            for (statistic, count) in Statistic::ALL.into_iter().zip(&mut outside) {
                let (low, high) = limits.interval_s(statistic).unwrap();
                let actual = figure(&mut responses, statistic).unwrap();
                *count += u32::from(!(low..=high).contains(&actual));
            }
        }
        assert!(outside.iter().all(|count| *count <= 3), "{outside:?} of 2,000");
    }

    #[test]
    fn a_queue_is_longer_than_its_bound_hardly_ever() {
        // M/M/1 at 0.9: P(N > n) = 0.9^(n + 1).
        let beyond = 0.9_f64.powf(queue_length_max(0.9, 1) + 1.0);
        assert!(beyond < error_of_one(), "{beyond}");
        assert!(queue_length_max(0.3, 1) < 10.0);
    }
}
