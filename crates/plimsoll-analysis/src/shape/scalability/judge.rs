//! The fit against another program: `judge/scipy_judge.py` made the curves up and wrote down how
//! scipy's bounded `curve_fit` fits the law to them.

use serde::Deserialize;

use super::{Loaded, fit, scalability, squares};

const SAID: &str = include_str!("judge/scipy.json");
/// Three digits.
const SAME_RATIO: f64 = 5e-4;

#[derive(Deserialize)]
struct Judged {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    loads: Vec<f64>,
    throughputs: Vec<f64>,
    squares: f64,
    /// γ, α, β.
    said: [f64; 3],
}

#[test]
fn the_law_is_fitted_as_scipy_fits_it() {
    let judged: Judged = serde_json::from_str(SAID).unwrap();
    let mut fitted = 0;
    for case in judged.cases {
        let pairs = (1..).zip(case.loads.iter().zip(&case.throughputs));
        let points: Vec<Loaded> = pairs
            .map(|(position, (load, x))| Loaded { position, load: *load, throughput: *x })
            .collect();
        if case.said[1] > 1.0 {
            // No parameter is known by itself.
            assert_eq!(scalability(&points), None, "{}", case.name);
            continue;
        }
        fitted += 1;
        let found = fit(&points).unwrap();
        let left = squares(&points, found);
        assert!((left / case.squares - 1.0).abs() < SAME_RATIO, "{}: {left}", case.name);
        for ((found, said), zero) in found.into_iter().zip(case.said).zip([0.0, 1e-6, 1e-8]) {
            let close = (found - said).abs() <= SAME_RATIO * said + zero;
            assert!(close, "{}: {found}, scipy says {said}", case.name);
        }
    }
    assert!(fitted >= 20, "{fitted}");
}
