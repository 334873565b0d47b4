//! Did each agent do its part?

use plimsoll_model::finding::Rule;
use plimsoll_model::units::Nanos;

use super::{Text, advised, explanation, uneven};

pub(super) fn text(rule: &Rule, bundle: &str) -> Option<Text> {
    Some(match rule {
        Rule::OfAgent { agent, host, others, rule } => {
            let Text { cause, advice } = explanation(rule, bundle);
            let more = match others {
                0 => String::new(),
                1 => " (and one more agent)".to_owned(),
                others => format!(" (and {others} more agents)"),
            };
            advised(format!("agent {agent} on {host}{more}: {cause}"), advice)
        }
        Rule::AgentClock { bound_ns, limit_ns, drift_ns } => {
            let drift = Nanos(drift_ns.unsigned_abs());
            Text::from(format!(
                "its clock is known within {bound_ns} only (limit {limit_ns}), {drift} of it \
                 drift: its load may have started so much earlier or later than the others'"
            ))
            .advise("use a launcher with a shorter round trip, or longer windows")
        }
        Rule::AgentShares { ops, part_ops, off_ratio, limit_ratio } => advised(
            uneven((*ops, "its part", *part_ops), (*off_ratio, *limit_ratio)),
            "make the clients a multiple of all workers, and see whether its host is slower",
        ),
        Rule::AgentLost { agent, host, cause, points } => {
            let again = match points {
                1 => "a load point was made again".to_owned(),
                points => format!("{points} load points were made again"),
            };
            advised(
                format!("agent {agent} on {host} was lost ({cause}); {again}"),
                "`plimsoll agents check` shows whether an agent can be reached",
            )
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "of_agent", "agent": "a", "host": "h", "others": 0,
               "rule": {"kind": "generator_cpu", "wanted_ratio": 0.97, "limit_ratio": 0.8,
               "busy_ratio": 0.9, "waiting_ratio": 0.07, "core": "used_up"}}"#,
            "agent a on h: generator limited: a worker asked for 97 % of its core (limit 80 %; \
             work up to 90 %, ready and kept waiting up to 7 %); add a worker or a core, raise its \
             CPU quota, or lower the load",
        ),
        (
            r#"{"kind": "of_agent", "agent": "a", "host": "h", "others": 1,
               "rule": {"kind": "panic", "message": "m"}}"#,
            "agent a on h (and one more agent): a worker of the generator panicked: m; this is a \
             bug, please report it",
        ),
        (
            r#"{"kind": "of_agent", "agent": "a", "host": "h", "others": 2,
               "rule": {"kind": "panic", "message": "m"}}"#,
            "agent a on h (and 2 more agents): a worker of the generator panicked: m; this is a \
             bug, please report it",
        ),
        (
            r#"{"kind": "agent_clock", "bound_ns": 9000000, "limit_ns": 5000000,
               "drift_ns": -2000000}"#,
            "its clock is known within 9.00 ms only (limit 5.00 ms), 2.00 ms of it drift: its \
             load may have started so much earlier or later than the others'; use a launcher with \
             a shorter round trip, or longer windows",
        ),
        (
            r#"{"kind": "agent_shares", "ops": 700, "part_ops": 1000, "off_ratio": 0.3,
               "limit_ratio": 0.1}"#,
            "did 700 ops where its part is 1,000: 30 % off (limit 10 %); make the clients a \
             multiple of all workers, and see whether its host is slower",
        ),
        (
            r#"{"kind": "agent_lost", "agent": "a", "host": "h", "cause": "no answer",
               "points": 1}"#,
            "agent a on h was lost (no answer); a load point was made again; `plimsoll agents \
             check` shows whether an agent can be reached",
        ),
        (
            r#"{"kind": "agent_lost", "agent": "a", "host": "h", "cause": "no answer",
               "points": 2}"#,
            "agent a on h was lost (no answer); 2 load points were made again; `plimsoll agents \
             check` shows whether an agent can be reached",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
