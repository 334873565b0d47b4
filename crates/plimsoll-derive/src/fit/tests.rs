use super::*;

/// Uniform numbers from zero to one.
fn units() -> impl FnMut() -> f64 {
    let mut state = 7_u64;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

fn sample(n: usize, mut draw: impl FnMut() -> f64) -> Sample {
    let mut sample = Sample::default();
    (0..n).for_each(|_| sample.insert(draw() as u64));
    sample
}

#[test]
fn laws_are_recognised_with_their_parameters() {
    let mut unit = units();
    let exponential = sample(20_000, || -unit().ln() * 2e6).fit().unwrap();
    assert!(
        matches!(exponential.law, Law::Exponential { mean } if (mean / 2e6 - 1.0).abs() < 0.03),
        "{exponential:?}"
    );
    let mut normal = || (-2.0 * unit().ln()).sqrt() * (std::f64::consts::TAU * unit()).cos();
    let lognormal = sample(20_000, || (0.8 * normal() + 10.0).exp()).fit().unwrap();
    let mean = (10.0 + 0.32_f64).exp();
    assert!(
        matches!(lognormal.law, Law::Lognormal { mean: it, shape } if (it / mean - 1.0).abs() < 0.03 && (shape - 0.8).abs() < 0.02),
        "{lognormal:?}"
    );
    assert_eq!(sample(100, || 7_000.0).fit().unwrap().law, Law::Constant(7_000.0));
    assert_eq!(Sample::default().fit(), None);
}

#[test]
fn a_sample_of_no_law_is_its_quantiles_with_its_mean() {
    let mut unit = units();
    let two_humps = sample(10_000, || {
        if unit() < 0.7 { 100.0 + 50.0 * unit() } else { 1e5 * (1.0 + unit() * unit()) }
    });
    let fitted = two_humps.fit().unwrap();
    let Law::Quantiles(values) = &fitted.law else { panic!("{fitted:?}") };
    assert!(values.is_sorted() && values.len() == 101);
    let mean = values.windows(2).map(|pair| f64::midpoint(pair[0], pair[1])).sum::<f64>() / 100.0;
    assert!((mean / two_humps.mean().unwrap() - 1.0).abs() < 0.01, "{mean}");
    assert!((values[50] / two_humps.quantile(0.5) - 1.0).abs() < 0.01);
}

#[test]
fn the_exponent_of_zipfs_law_is_that_of_the_sample() {
    let mut unit = units();
    for exponent in [0.6, 1.0, 1.4] {
        let weights: Vec<f64> = (1..=1_000).map(|rank| f64::from(rank).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let mut counts = vec![0_u64; 1_000];
        for _ in 0..100_000 {
            let mut left = unit() * total;
            let rank = weights.iter().position(|weight| {
                left -= weight;
                left <= 0.0
            });
            counts[rank.unwrap_or(999)] += 1;
        }
        let fit = ZipfFit::from_counts(counts.into_iter()).unwrap();
        assert!((fit.exponent - exponent).abs() < 0.02, "{exponent}: {fit:?}");
        assert!(fit.interval[1] - fit.interval[0] < 0.05, "{fit:?}");
    }
    assert_eq!(ZipfFit::from_counts([100, 5].into_iter()), None);
}

#[test]
fn the_normal_distribution_is_that_of_the_tables() {
    for (z, share) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.96, 0.024_997_9)] {
        assert!((normal_below(z) - share).abs() < 1e-6);
    }
}
