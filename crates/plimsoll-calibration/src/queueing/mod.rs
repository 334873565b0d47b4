//! Queueing theory of servers with a known law: the truth that `plimsoll calibrate` compares the
//! instrument with. Times are in seconds, as floats: these are means and probabilities, no
//! measurements.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`many`] | M/M/c: Erlang C, the distribution of waiting and response time |
//! | [`constant`] | M/D/1: the distribution of waiting and response time |
//! | [`finite`] | M/M/c//N: throughput and mean response of a closed loop |
//! | [`stall`] | D/D/1 with a pause: every response time, exactly |
//! | [`delayed`] | the effect of a measured delay on all of them |
//! | [`scatter`] | how far a run of a given length may be from all of these |
//! | [`family`] | how wide limits are, so that many judgements together rarely break by chance |
//!
//! Closed forms and simulation check each other in the tests; M/G/1 (Pollaczek and Khinchine) is
//! there for nothing else.

pub mod constant;
pub mod delayed;
pub mod family;
pub mod finite;
pub mod many;
pub mod scatter;
pub mod stall;

use plimsoll_model::calibrated::ServiceLaw;
use plimsoll_model::certificate::Statistic;

/// A queue with Poisson arrivals and an exact theory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Exponential service, any number of servers.
    Many(many::Markov),
    /// Constant service, one server.
    Constant(constant::Constant),
}

impl Queue {
    /// The queue of `rate_per_s` arrivals, when it is one of these and has a steady state.
    pub fn from_rate(rate_per_s: f64, service: ServiceLaw, servers: u32) -> Option<Self> {
        match service {
            ServiceLaw::Exponential(mean) => {
                many::Markov::new(rate_per_s, mean.as_secs_f64(), servers).map(Self::Many)
            }
            ServiceLaw::Constant(time) if servers == 1 => {
                constant::Constant::new(rate_per_s, time.as_secs_f64()).map(Self::Constant)
            }
            _ => None,
        }
    }

    /// In Kendall's notation: `M/M/4`.
    pub fn name(&self) -> String {
        match self {
            Self::Many(queue) => format!("M/M/{}", queue.servers()),
            Self::Constant(_) => "M/D/1".to_owned(),
        }
    }

    /// A figure of the response time (waiting and service), in seconds.
    pub fn response_s(&self, statistic: Statistic) -> f64 {
        match (self, statistic.share()) {
            (Self::Many(queue), None) => queue.mean_response_s(),
            (Self::Many(queue), Some(share)) => queue.response_quantile_s(share),
            (Self::Constant(queue), None) => queue.mean_response_s(),
            (Self::Constant(queue), Some(share)) => queue.response_quantile_s(share),
        }
    }
}

/// The point where a falling function of time crosses `level`, from `low` upwards.
fn crossing(level: f64, low: f64, first_step: f64, tail: impl Fn(f64) -> f64) -> f64 {
    /// Halvings after which a double gets no more precise.
    const HALVINGS: u32 = 80;
    let (mut low, mut step) = (low, first_step);
    while tail(low + step) > level {
        low += step;
        step *= 2.0;
    }
    let mut high = low + step;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if tail(middle) > level { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::calibrated::CalibratedSpec;

    use super::*;

    /// The closed form agrees with a long simulated run.
    #[track_caller]
    fn check(text: &str, utilisation: f64, arrivals: f64, tolerance: f64) {
        let spec: CalibratedSpec = text.parse().unwrap();
        let rate = utilisation * spec.capacity_ops_per_s().unwrap();
        let queue = Queue::from_rate(rate, spec.service, spec.servers).unwrap();
        let plan = scatter::Plan {
            rate_per_s: rate,
            service: spec.service,
            servers: spec.servers,
            warm_up_s: 10_000.0 / rate,
            window_s: arrivals / rate,
        };
        let mut simulated = scatter::simulate(&plan, 42);
        for statistic in Statistic::ALL {
            let (exact, simulated_s) =
                (queue.response_s(statistic), scatter::figure(&mut simulated, statistic).unwrap());
            let error = simulated_s / exact - 1.0;
            assert!(error.abs() < tolerance, "{text} at {utilisation}, {statistic:?}: {error}");
        }
    }

    #[test]
    fn simulation_and_closed_form_agree_where_queues_are_short() {
        check("service=exp:1ms,servers=4", 0.3, 400_000.0, 0.02);
        check("service=exp:1ms,servers=4", 0.6, 400_000.0, 0.02);
        check("service=exp:1ms,servers=1", 0.5, 400_000.0, 0.03);
        check("service=const:500us,servers=1", 0.3, 400_000.0, 0.02);
        check("service=const:500us,servers=1", 0.6, 400_000.0, 0.02);
    }

    #[test]
    fn simulation_and_closed_form_agree_where_queues_are_long() {
        check("service=exp:1ms,servers=4", 0.9, 5_000_000.0, 0.06);
        check("service=const:500us,servers=1", 0.9, 5_000_000.0, 0.06);
    }

    #[test]
    fn other_laws_have_no_closed_form_here() {
        for text in ["service=uniform:1ms:2ms", "service=const:1ms,servers=2"] {
            let spec: CalibratedSpec = text.parse().unwrap();
            assert_eq!(Queue::from_rate(100.0, spec.service, spec.servers), None);
        }
        assert_eq!(
            Queue::from_rate(1_000.0, "exp:1ms".parse().unwrap(), 1),
            None,
            "no steady state"
        );
    }

    /// M/G/1: Poisson arrivals, any law of service, one server. Mean time from arrival to
    /// completion, in seconds (Pollaczek and Khinchine: the mean wait is λ E(S²) / 2(1 − ρ));
    /// `None` without a steady state.
    fn mean_response_s(rate_per_s: f64, service: ServiceLaw) -> Option<f64> {
        let mean_s = service.mean_s();
        let idle_share = 1.0 - rate_per_s * mean_s;
        let stable = rate_per_s >= 0.0 && idle_share > 0.0;
        stable.then(|| mean_s + rate_per_s * service.second_moment_s2() / (2.0 * idle_share))
    }

    fn law(text: &str) -> ServiceLaw {
        text.parse().unwrap()
    }

    #[test]
    fn it_agrees_with_the_queues_it_generalises() {
        let rate = 700.0;
        let exponential = many::Markov::new(rate, 1e-3, 1).unwrap().mean_response_s();
        assert!((mean_response_s(rate, law("exp:1ms")).unwrap() - exponential).abs() < 1e-12);
        let constant = constant::Constant::new(rate, 1e-3).unwrap().mean_response_s();
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
            let simulated_s = scatter::figure(&mut simulated, Statistic::Mean).unwrap();
            let exact = mean_response_s(rate_per_s, service).unwrap();
            assert!((simulated_s / exact - 1.0).abs() < 0.02, "{text}: {simulated_s}, not {exact}");
        }
    }
}
