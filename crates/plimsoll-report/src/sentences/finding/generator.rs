//! Did the generator measure the server, or itself?

use plimsoll_model::finding::{Missing, PartOf, Rule};
use plimsoll_model::late::{LATE_MIN, LateOps};
use plimsoll_model::units::percent;

use super::{Text, advised, count, worker_core};
use crate::sentences::late;

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::GeneratorCpu {
            wanted_ratio: demand_ratio,
            limit_ratio,
            busy_ratio,
            waiting_ratio,
            core,
        } => {
            let [demand, limit, busy, waiting] =
                [demand_ratio, limit_ratio, busy_ratio, waiting_ratio].map(|it| percent(*it));
            Text::from(format!(
                "generator limited: a worker asked for {demand} of its core (limit {limit}; \
                 work up to {busy}, ready and kept waiting up to {waiting})"
            ))
            .advise(worker_core(core))
        }
        Rule::GeneratorError { part_of, own_ns, of_ns, ratio, limit_ratio, core } => {
            let (part, limit) = (percent(*ratio), percent(*limit_ratio));
            advised(
                match part_of {
                    PartOf::ResponseP50 => format!(
                        "the generator's own delays may be {part} of response p50 ({own_ns} of \
                         {of_ns}, limit {limit}): replies lay unread and ops left late"
                    ),
                    PartOf::ServerTime => format!(
                        "the generator's own delays were {part} of the time that the server took \
                         ({own_ns} an op beside {of_ns}, limit {limit}): clients of a closed load \
                         waited for replies that lay unread, and asked the server for less"
                    ),
                },
                worker_core(core),
            )
        }
        Rule::MissingEvidence { missing } => missing_evidence(*missing),
        Rule::SendLag { percentile, own_ns, limit_ns, core } => Text::from(format!(
            "generator late: send lag {percentile} = {own_ns} (limit {limit_ns}), waits for a \
             connection left out; the intervals of the figures are wider for it"
        ))
        .advise(worker_core(core)),
        Rule::Connections { percentile, all_ns, own_ns, limit_ns } => Text::from(format!(
            "ops waited for a free connection: send lag {percentile} = {all_ns} (limit \
             {limit_ns}), of which the generator's own is {own_ns}; the wait counts as \
             response time"
        ))
        .advise("if your users would not wait, give it more connections (--set load.clients=N)"),
        Rule::LateOps { late, of_ops } => late_ops(late, *of_ops),
        Rule::Monitors { used_ratio, limit_ratio } => Text::from(format!(
            "the monitors used {} of a core (limit {}), although they sample less often where \
             that is expensive",
            percent(*used_ratio),
            percent(*limit_ratio),
        ))
        .advise("watch fewer hosts and processes, or measure for longer"),
        _ => return None,
    })
}

/// Late requests that a sentence names; the report has a table of more.
const NAMED_MAX: usize = 3;

fn late_ops(ops: &LateOps, of_ops: u64) -> Text {
    let named = ops.first.iter().take(NAMED_MAX).map(late::text);
    let text = format!(
        "{} of {} requests were sent more than {LATE_MIN} after they were due, {} of them by the \
         generator's own doing: {}",
        count(ops.count),
        count(of_ops),
        count(ops.by_generator),
        named.collect::<Vec<_>>().join("; ")
    );
    let waits = ops.count > ops.by_generator;
    Text::from(text).advise(match waits {
        true => "if no client was free, give the replay more connections (--connections N)",
        false => "add a worker, or leave its cores to the generator",
    })
}

fn missing_evidence(missing: Missing) -> Text {
    match missing {
        Missing::WorkerHealth => advised(
            "what the workers asked of their cores is not in the journal (their CPU time, or how \
             long they waited for a core: the kernel's schedstat), so the generator's health is \
             unknown",
            "run the point again on a kernel that reports it",
        ),
        Missing::Arrivals => advised(
            "the interval logs do not say when replies arrived, so the generator's part of the \
             response times is unknown",
            "run the point again",
        ),
        Missing::Profile => advised(
            "the run's profile is not one of the suite's, so the window cannot be checked",
            "use full, standard or quick",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "missing_evidence", "missing": "worker_health"}"#,
            "what the workers asked of their cores is not in the journal (their CPU time, or how \
             long they waited for a core: the kernel's schedstat), so the generator's health is \
             unknown; run the point again on a kernel that reports it",
        ),
        (
            r#"{"kind": "missing_evidence", "missing": "arrivals"}"#,
            "the interval logs do not say when replies arrived, so the generator's part of the \
             response times is unknown; run the point again",
        ),
        (
            r#"{"kind": "missing_evidence", "missing": "profile"}"#,
            "the run's profile is not one of the suite's, so the window cannot be checked; use \
             full, standard or quick",
        ),
        (
            r#"{"kind": "generator_cpu", "wanted_ratio": 0.97, "limit_ratio": 0.8,
               "busy_ratio": 0.9, "waiting_ratio": 0.07, "core": "used_up"}"#,
            "generator limited: a worker asked for 97 % of its core (limit 80 %; work up to 90 %, \
             ready and kept waiting up to 7 %); add a worker or a core, raise its CPU quota, or \
             lower the load",
        ),
        (
            r#"{"kind": "generator_error", "part_of": "response_p50", "own_ns": 20000,
               "of_ns": 100000, "ratio": 0.2, "limit_ratio": 0.1, "core": "slept"}"#,
            "the generator's own delays may be 20 % of response p50 (20.0 µs of 100 µs, limit 10 \
             %): replies lay unread and ops left late; the worker had its core and was not busy: \
             it woke late; use --pacing spin, or a host that sleeps less deeply",
        ),
        (
            r#"{"kind": "generator_error", "part_of": "server_time", "own_ns": 20000,
               "of_ns": 100000, "ratio": 0.2, "limit_ratio": 0.1,
               "core": {"stolen": {"ratio": 0.11}}}"#,
            "the generator's own delays were 20 % of the time that the server took (20.0 µs an op \
             beside 100 µs, limit 10 %): clients of a closed load waited for replies that lay \
             unread, and asked the server for less; the hypervisor kept 11 % of the processors' \
             time: measure on a host that has its own",
        ),
        (
            r#"{"kind": "send_lag", "percentile": "p99", "own_ns": 4100000, "limit_ns": 1000000,
               "core": {"taken_by_unknown": {"ratio": 0.4}}}"#,
            "generator late: send lag p99 = 4.10 ms (limit 1.00 ms), waits for a connection left \
             out; the intervals of the figures are wider for it; other programs had a worker's \
             core for 40 % of the time: end them or keep them off it",
        ),
        (
            r#"{"kind": "connections", "percentile": "p99", "all_ns": 9000000, "own_ns": 200000,
               "limit_ns": 1000000}"#,
            "ops waited for a free connection: send lag p99 = 9.00 ms (limit 1.00 ms), of which \
             the generator's own is 200 µs; the wait counts as response time; if your users would \
             not wait, give it more connections (--set load.clients=N)",
        ),
        (
            r#"{"kind": "late_ops", "of_ops": 2000, "late": {"count": 4, "by_generator": 1, "first": [
               {"line": 9, "due_ns": 5, "lag_ns": 3000000, "cause": "generator"},
               {"line": 812, "due_ns": 9, "lag_ns": 14200000, "cause": "no_client"}]}}"#,
            "4 of 2,000 requests were sent more than 2.00 ms after they were due, 1 of them by the \
             generator's own doing: line 9: 3.00 ms late, the generator; line 812: 14.2 ms late, no \
             client was free; if no client was free, give the replay more connections \
             (--connections N)",
        ),
        (
            r#"{"kind": "late_ops", "of_ops": 2000, "late": {"count": 1, "by_generator": 1, "first": [
               {"line": 9, "due_ns": 5, "lag_ns": 3000000, "cause": "generator"}]}}"#,
            "1 of 2,000 requests were sent more than 2.00 ms after they were due, 1 of them by the \
             generator's own doing: line 9: 3.00 ms late, the generator; add a worker, or leave its \
             cores to the generator",
        ),
        (
            r#"{"kind": "monitors", "used_ratio": 0.07, "limit_ratio": 0.05}"#,
            "the monitors used 7 % of a core (limit 5 %), although they sample less often where \
             that is expensive; watch fewer hosts and processes, or measure for longer",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
