//! The sentence of a recovery.

use plimsoll_model::recovery::{Recovery, RecoveryOutcome, RecoverySpan};
use plimsoll_model::units::{Nanos, grouped};

/// `recovered 12 s after the pulse …`; `unit` is that of the loads.
pub fn text(recovery: &Recovery, unit: &str) -> String {
    let pulse = format!(
        "the pulse of {} {unit} for {} ({} before and after)",
        grouped(recovery.pulse_load),
        recovery.pulse_ns,
        grouped(recovery.load)
    );
    let answer = match recovery.outcome {
        RecoveryOutcome::Recovered => {
            let after = recovery.recovered_after_ns.unwrap_or_default();
            let span = recovery.span_ns;
            let when = match after {
                Nanos::ZERO => format!("recovered at once after {pulse}"),
                after => format!("recovered {after} after {pulse}"),
            };
            format!("{when}: {} as before for {span}", what(recovery))
        }
        RecoveryOutcome::NotRecovered => format!(
            "did not recover in the {} watched after {pulse}, which is a metastable failure unless a \
             longer watch shows otherwise: {}",
            recovery.watched_ns,
            figures(recovery)
        ),
        RecoveryOutcome::NoHoldBefore => format!(
            "not judged after {pulse}: before it the load must be held for {} at least",
            recovery.span_ns
        ),
        RecoveryOutcome::NoHoldAfter => format!(
            "not judged after {pulse}: after it the load before must be held for {} at least",
            recovery.span_ns
        ),
        RecoveryOutcome::NotSustainedBefore => format!(
            "not judged after {pulse}: the server did not sustain the load before it; lower the load"
        ),
    };
    [Some(answer), backlog(recovery), drain(recovery)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

fn what(recovery: &Recovery) -> String {
    match &recovery.percentile[..] {
        "" => "goodput was".to_owned(),
        percentile => format!("goodput and {percentile} were"),
    }
}

fn figures(recovery: &Recovery) -> String {
    let span = |span: &RecoverySpan| {
        let goodput = format!("{} good ops/s", grouped(span.goodput_ops_per_s));
        match span.response_ns {
            Some(ns) => format!("{goodput}, {} {}", recovery.percentile, Nanos(ns as u64)),
            None => goodput,
        }
    };
    format!("{} before, {} at the end", span(&recovery.before), span(&recovery.after))
}

fn backlog(recovery: &Recovery) -> Option<String> {
    let most = recovery.outstanding_ops_max?;
    Some(format!("at most {} ops waited at a time", grouped(most as f64)))
}

fn drain(recovery: &Recovery) -> Option<String> {
    let needed = recovery.healthy_drain_ns?;
    Some(match needed {
        Nanos::ZERO => "a healthy queue needs no time: the pulse is within capacity".to_owned(),
        needed => format!("a healthy queue needs {needed}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recovery(outcome: RecoveryOutcome, after: Option<u64>) -> Recovery {
        Recovery {
            pulse: 2,
            outcome,
            recovered_after_ns: after.map(Nanos::from_secs),
            watched_ns: Nanos::from_secs(90),
            span_ns: Nanos::from_secs(10),
            healthy_drain_ns: Some(Nanos::from_secs(30)),
            load: 80.0,
            pulse_load: 160.0,
            pulse_ns: Nanos::from_secs(10),
            percentile: "p90".to_owned(),
            goodput_low_ops_per_s: 75.0,
            response_high_ns: Some(1e7),
            before: RecoverySpan { goodput_ops_per_s: 80.0, response_ns: Some(9e6) },
            during: RecoverySpan::default(),
            after: RecoverySpan { goodput_ops_per_s: 3.0, response_ns: None },
            outstanding_ops_max: Some(1_234),
            resources: Vec::new(),
            text: String::new(),
        }
    }

    #[test]
    fn the_answer_is_one_sentence_with_the_time_that_a_healthy_queue_needs() {
        let recovered = text(&recovery(RecoveryOutcome::Recovered, Some(12)), "ops/s");
        assert_eq!(
            recovered,
            "recovered 12.0 s after the pulse of 160 ops/s for 10.0 s (80 before and after): \
             goodput and p90 were as before for 10.0 s; at most 1,234 ops waited at a time; a \
             healthy queue needs 30.0 s"
        );
        let at_once = text(&recovery(RecoveryOutcome::Recovered, Some(0)), "ops/s");
        assert!(at_once.starts_with("recovered at once after the pulse"), "{at_once}");
        let never = text(&recovery(RecoveryOutcome::NotRecovered, None), "ops/s");
        assert!(never.starts_with("did not recover in the 90.0 s watched"), "{never}");
        assert!(
            never.contains("80 good ops/s, p90 9.00 ms before, 3 good ops/s at the end"),
            "{never}"
        );
        for outcome in [
            RecoveryOutcome::NoHoldBefore,
            RecoveryOutcome::NoHoldAfter,
            RecoveryOutcome::NotSustainedBefore,
        ] {
            assert!(text(&recovery(outcome, None), "ops/s").starts_with("not judged"));
        }
    }
}
