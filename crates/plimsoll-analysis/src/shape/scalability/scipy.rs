//! The fit against another program: `scipy/scipy_judge.py` made the curves up and recorded how
//! scipy's bounded `curve_fit` fits the law to them.

use serde::Deserialize;

use super::{Loaded, fit, scalability, squares};

const EXPECTED: &str = include_str!("scipy/scipy.json");
/// Three digits.
const SAME_RATIO: f64 = 5e-4;

#[derive(Deserialize)]
struct ReferenceCases {
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
    let reference: ReferenceCases = serde_json::from_str(EXPECTED).unwrap();
    let mut fitted = 0;
    for case in reference.cases {
        let pairs = (1..).zip(case.loads.iter().zip(&case.throughputs));
        let points: Vec<Loaded> = pairs
            .map(|(position, (load, x))| Loaded { position, load: *load, throughput: *x })
            .collect();
        if case.said[1] > 1.0 {
            // No single parameter is determined.
            assert_eq!(scalability(&points), None, "{}", case.name);
            continue;
        }
        fitted += 1;
        let parameters = fit(&points).unwrap();
        let left = squares(&points, parameters);
        assert!((left / case.squares - 1.0).abs() < SAME_RATIO, "{}: {left}", case.name);
        for ((actual, expected), zero) in
            parameters.into_iter().zip(case.said).zip([0.0, 1e-6, 1e-8])
        {
            let close = (actual - expected).abs() <= SAME_RATIO * expected + zero;
            assert!(close, "{}: {actual}, scipy says {expected}", case.name);
        }
    }
    assert!(fitted >= 20, "{fitted}");
}
