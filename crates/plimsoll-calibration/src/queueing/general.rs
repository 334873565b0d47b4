//! M/G/1: Poisson arrivals, any law of service, one server.

use plimsoll_model::calibrated::ServiceLaw;

/// Mean time from arrival to departure, in seconds (Pollaczek and Khinchine: the mean wait is
/// λ E(S²) / 2(1 − ρ)); `None` without a steady state.
pub(super) fn mean_response_s(rate_per_s: f64, service: ServiceLaw) -> Option<f64> {
    let mean_s = service.mean_s();
    let idle_share = 1.0 - rate_per_s * mean_s;
    let stable = rate_per_s >= 0.0 && idle_share > 0.0;
    stable.then(|| mean_s + rate_per_s * service.second_moment_s2() / (2.0 * idle_share))
}

#[cfg(test)]
mod tests {
    use super::super::{constant::Constant, many::Markov, scatter};
    use super::*;
    use plimsoll_model::certificate::Statistic;

    fn law(text: &str) -> ServiceLaw {
        text.parse().unwrap()
    }

    #[test]
    fn it_agrees_with_the_queues_it_generalises() {
        let rate = 700.0;
        let exponential = Markov::new(rate, 1e-3, 1).unwrap().mean_response_s();
        assert!((mean_response_s(rate, law("exp:1ms")).unwrap() - exponential).abs() < 1e-12);
        let constant = Constant::new(rate, 1e-3).unwrap().mean_response_s();
        assert!((mean_response_s(rate, law("const:1ms")).unwrap() - constant).abs() < 1e-12);
        assert_eq!(mean_response_s(1_000.0, law("exp:1ms")), None);
    }

    #[test]
    fn simulated_means_of_other_laws_lie_where_it_says() {
        for (text, rate_per_s) in [("uniform:1ms:3ms", 300.0), ("lognormal:1ms:0.5", 500.0)] {
            let service = law(text);
            let plan = scatter::Plan {
                rate_per_s,
                service,
                servers: 1,
                warm_up_s: 10.0,
                window_s: 300_000.0 / rate_per_s,
            };
            let mut simulated = scatter::simulate(&plan, 7);
            let seen = scatter::figure(&mut simulated, Statistic::Mean).unwrap();
            let exact = mean_response_s(rate_per_s, service).unwrap();
            assert!((seen / exact - 1.0).abs() < 0.02, "{text}: {seen}, not {exact}");
        }
    }
}
