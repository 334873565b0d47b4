//! The load itself: clients, generator, the suite's cap, or no limit at all.

use plimsoll_model::limit::{EarlierService, LimitFacts};
use plimsoll_model::units::grouped;

use crate::sentences::finding::worker_core;

pub(super) fn text(facts: &LimitFacts) -> Option<String> {
    let when = |earlier: &EarlierService| match earlier {
        EarlierService::LowLoad => "at low load",
        EarlierService::FirstOps => "at the first ops",
    };
    Some(match facts {
        LimitFacts::Clients { clients, service_ns, earlier_ns, earlier, most_ops_per_s } => {
            let when = when(earlier);
            format!(
                "the clients: all {clients} were busy while the server answered as fast as {when} \
                 ({service_ns} an op, {earlier_ns} then); {clients} clients of {service_ns} an op \
                 carry no more than {} ops/s: add clients (--set load.clients=N) to see what the \
                 server can do",
                grouped(most_ops_per_s.round()),
            )
        }
        LimitFacts::Slots { waited_ns, service_ns, earlier_ns, earlier } => format!(
            "the sessions' slots: ops waited {waited_ns} of {} for one, while the server answered \
             as fast as {} ({service_ns} an op, {earlier_ns} then): ask for more slots, or add \
             clients, each of which has a session",
            *waited_ns + *service_ns,
            when(earlier),
        ),
        LimitFacts::Generator => {
            "the generator: what the server can do beyond that is unknown".to_owned()
        }
        LimitFacts::Disturbed { core } => format!(
            "the generator was disturbed, so that what the server can do is unknown: {}",
            worker_core(core),
        ),
        LimitFacts::Cap { cap_ms } => {
            format!("the suite's cap on response time: the mean service time is above {cap_ms} ms")
        }
        LimitFacts::Followed => "not saturated: throughput follows the load".to_owned(),
        LimitFacts::NoneFull => {
            "not saturated: no resource was full, as far as one load tells".to_owned()
        }
        LimitFacts::NoneTooMuch => "no load that was tried was too much".to_owned(),
        LimitFacts::ServerFailed => "the server failed ops; which resource is not known".to_owned(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "clients", "clients": 8, "service_ns": 1000000, "earlier_ns": 990000,
               "earlier": "low_load", "most_ops_per_s": 8000.4}"#,
            "the clients: all 8 were busy while the server answered as fast as at low load (1.00 \
             ms an op, 990 µs then); 8 clients of 1.00 ms an op carry no more than 8,000 ops/s: \
             add clients (--set load.clients=N) to see what the server can do",
        ),
        (
            r#"{"kind": "clients", "clients": 8, "service_ns": 1000000, "earlier_ns": 990000,
               "earlier": "first_ops", "most_ops_per_s": 8000.4}"#,
            "the clients: all 8 were busy while the server answered as fast as at the first ops \
             (1.00 ms an op, 990 µs then); 8 clients of 1.00 ms an op carry no more than 8,000 \
             ops/s: add clients (--set load.clients=N) to see what the server can do",
        ),
        (
            r#"{"kind": "slots", "waited_ns": 3200000, "service_ns": 800000, "earlier_ns": 790000,
               "earlier": "low_load"}"#,
            "the sessions' slots: ops waited 3.20 ms of 4.00 ms for one, while the server answered \
             as fast as at low load (800 µs an op, 790 µs then): ask for more slots, or add \
             clients, each of which has a session",
        ),
        (
            r#"{"kind": "generator"}"#,
            "the generator: what the server can do beyond that is unknown",
        ),
        (
            r#"{"kind": "disturbed", "core": {"stolen": {"ratio": 0.11}}}"#,
            "the generator was disturbed, so that what the server can do is unknown: the \
             hypervisor kept 11 % of the processors' time: measure on a host that has its own",
        ),
        (
            r#"{"kind": "cap", "cap_ms": 40.0}"#,
            "the suite's cap on response time: the mean service time is above 40 ms",
        ),
        (r#"{"kind": "followed"}"#, "not saturated: throughput follows the load"),
        (
            r#"{"kind": "none_full"}"#,
            "not saturated: no resource was full, as far as one load tells",
        ),
        (r#"{"kind": "none_too_much"}"#, "no load that was tried was too much"),
        (r#"{"kind": "server_failed"}"#, "the server failed ops; which resource is not known"),
    ];

    #[test]
    fn each_limit_has_its_sentence() {
        check(SENTENCES);
    }
}
