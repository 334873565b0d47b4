//! What did the server do to the ops?

use plimsoll_model::finding::{
    Answers, EarlyAnswers, ErrorCause, LostSign, Rule, ServerLost, Silence,
};
use plimsoll_model::units::{percent, three_digits};

use super::{Text, advised, count, part};

pub(super) fn text(rule: &Rule, bundle: &str) -> Option<Text> {
    Some(match rule {
        Rule::Errors { failed_ops, due_ops, limit_ratio, most, cause } => {
            let most = most.as_ref().map_or_else(String::new, |(class, n)| {
                format!(", most of them {class} ({})", count(*n))
            });
            Text::from(format!(
                "{} of {} ops failed, {} (limit {}){most}",
                count(*failed_ops),
                count(*due_ops),
                part(*failed_ops, *due_ops),
                percent(*limit_ratio),
            ))
            .advise(error_cause(cause))
        }
        Rule::Unfinished { unfinished_ops, due_ops, limit_ratio, silence } => Text::from(format!(
            "{} of {} ops had neither a reply nor an error when the drain ended, {} (limit \
             {}){}",
            count(*unfinished_ops),
            count(*due_ops),
            part(*unfinished_ops, *due_ops),
            percent(*limit_ratio),
            silence_clause(*silence),
        ))
        .advise("see whether the server hangs, or give it a longer drain"),
        Rule::ServerLost { server, from_second, made_again } => advised(
            lost_server(server, *from_second),
            match made_again {
                true => "the load point was made again; see the server's log".to_owned(),
                false => format!(
                    "see its log, start it, and make the load point again: plimsoll resume {bundle}"
                ),
            },
        ),
        Rule::ResponseCap { mean_ms, cap_ms } => Text::from(format!(
            "mean service time {} ms is above the suite's cap of {cap_ms} ms: the point is shown \
             but not counted",
            three_digits(*mean_ms),
        )),
        Rule::WarmUpErrors { failed_ops } => advised(
            format!("{} ops failed in warm-up, before the window", count(*failed_ops)),
            "see the server's log",
        ),
        _ => return None,
    })
}

/// Which server went away, how that was detected, and since when nothing was done.
fn lost_server(server: &ServerLost, from_second: Option<u32>) -> String {
    let gone = match server.sign {
        LostSign::Ended => "its process has ended",
        LostSign::Unreachable => "it takes no connection any more",
    };
    let since = from_second.map(|it| format!(", and no op was done from second {it} on"));
    let (target, since) = (&server.target, since.unwrap_or_default());
    format!("the server {target} went away during the load: {gone}{since}")
}

/// Why ops failed, as far as known, and the next move.
fn error_cause(cause: &ErrorCause) -> String {
    const SAMPLES: &str = "see the error samples and the server's log";
    match cause {
        ErrorCause::Generator => {
            "this host ran out of ports or descriptors: use fewer connections, connect from more \
             addresses (--source ADDR,ADDR…), or raise its limits"
                .to_owned()
        }
        ErrorCause::Silence(silence) => format!("{}; {SAMPLES}", silence_text(*silence)),
        ErrorCause::EarlyAnswers(early) => {
            format!("{}; {}", early_answers(early), early_advice(early))
        }
        ErrorCause::Unknown => SAMPLES.to_owned(),
    }
}

/// `; from second 14 on nothing answered`, or nothing.
pub(super) fn silence_clause(silence: Option<Silence>) -> String {
    silence.map_or_else(String::new, |silence| format!("; {}", silence_text(silence)))
}

fn silence_text(silence: Silence) -> String {
    let what = match silence.answers {
        Answers::None => "nothing answered",
        Answers::Errors => "no op succeeded",
    };
    match silence.from_second {
        None => format!("{what} in the window"),
        Some(second) => format!("from second {second} on {what}"),
    }
}

/// `the server answers 413 and closes while the body is still being sent`.
pub(super) fn early_answers(early: &EarlyAnswers) -> String {
    let mut statuses: Vec<u32> = early.answered.iter().map(|(status, _)| *status).collect();
    statuses.sort_unstable();
    let statuses: Vec<String> = statuses.iter().map(u32::to_string).collect();
    // Broken connections show that it closes.
    let closes = if early.lost_ops > 0 { " and closes" } else { "" };
    let statuses = statuses.join(" or ");
    format!("the server answers {statuses}{closes} while the body is still being sent")
}

/// The next move, by the most frequent status.
pub(super) fn early_advice(early: &EarlyAnswers) -> &'static str {
    match early.answered.iter().max_by_key(|(_, count)| *count) {
        Some((413, _)) => "raise its limit for the size of a body, or send a smaller one",
        Some((401 | 407, _)) => "send the credentials that it requires",
        Some((417, _)) => "send the request without Expect",
        _ => "see the server's log for the reason",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "errors", "failed_ops": 120, "due_ops": 10000, "limit_ratio": 0.01,
               "most": ["timeout", 100], "cause": "unknown"}"#,
            "120 of 10,000 ops failed, 1.2 % (limit 1 %), most of them timeout (100); see the \
             error samples and the server's log",
        ),
        (
            r#"{"kind": "errors", "failed_ops": 120, "due_ops": 10000, "limit_ratio": 0.01,
               "most": null, "cause": "generator"}"#,
            "120 of 10,000 ops failed, 1.2 % (limit 1 %); this host ran out of ports or \
             descriptors: use fewer connections, connect from more addresses (--source \
             ADDR,ADDR…), or raise its limits",
        ),
        (
            r#"{"kind": "errors", "failed_ops": 120, "due_ops": 10000, "limit_ratio": 0.01,
               "most": null, "cause": {"silence": {"from_second": 14, "answers": "errors"}}}"#,
            "120 of 10,000 ops failed, 1.2 % (limit 1 %); from second 14 on no op succeeded; see \
             the error samples and the server's log",
        ),
        (
            r#"{"kind": "errors", "failed_ops": 120, "due_ops": 10000, "limit_ratio": 0.01,
               "most": null, "cause": {"early_answers": {"answered": [[413, 7], [401, 2]],
               "lost_ops": 3, "due_ops": 100}}}"#,
            "120 of 10,000 ops failed, 1.2 % (limit 1 %); the server answers 401 or 413 and \
             closes while the body is still being sent; raise its limit for the size of a body, or \
             send a smaller one",
        ),
        (
            r#"{"kind": "unfinished", "unfinished_ops": 120, "due_ops": 10000,
               "limit_ratio": 0.01, "silence": {"from_second": null, "answers": "none"}}"#,
            "120 of 10,000 ops had neither a reply nor an error when the drain ended, 1.2 % \
             (limit 1 %); nothing answered in the window; see whether the server hangs, or give it \
             a longer drain",
        ),
        (
            r#"{"kind": "unfinished", "unfinished_ops": 120, "due_ops": 10000,
               "limit_ratio": 0.01, "silence": null}"#,
            "120 of 10,000 ops had neither a reply nor an error when the drain ended, 1.2 % \
             (limit 1 %); see whether the server hangs, or give it a longer drain",
        ),
        (
            r#"{"kind": "server_lost", "server": {"target": "http://a/", "sign": "ended"},
               "from_second": 14, "made_again": false}"#,
            "the server http://a/ went away during the load: its process has ended, and no op was \
             done from second 14 on; see its log, start it, and make the load point again: \
             plimsoll resume DIR",
        ),
        (
            r#"{"kind": "server_lost", "server": {"target": "http://a/", "sign": "unreachable"},
               "from_second": null, "made_again": true}"#,
            "the server http://a/ went away during the load: it takes no connection any more; the \
             load point was made again; see the server's log",
        ),
        (
            r#"{"kind": "response_cap", "mean_ms": 61.27, "cap_ms": 50.0}"#,
            "mean service time 61.3 ms is above the suite's cap of 50 ms: the point is shown but \
             not counted",
        ),
        (
            r#"{"kind": "warm_up_errors", "failed_ops": 12}"#,
            "12 ops failed in warm-up, before the window; see the server's log",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
