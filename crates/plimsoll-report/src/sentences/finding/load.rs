//! Was the requested load offered?

use plimsoll_model::finding::{CycleCount, LostClients, OpsLeft, Rule};
use plimsoll_model::units::{grouped, percent};

use super::{Text, advised, count, uneven};

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::ClientsLost { clients, stayed, left, cause, consequence } => {
            lost_clients([*clients, *stayed, *left], cause.as_deref(), *consequence)
        }
        Rule::ClosedLoop { counted, present, clients, off_ratio, limit_ratio } => {
            let account = match counted {
                CycleCount::Iterations => "throughput, response and think time account for",
                CycleCount::Ops => {
                    "no iteration was finished in the window, and its ops account for"
                }
            };
            Text::from(format!(
                "{account} {present:.1} of {} clients, {} off (limit {})",
                count(u64::from(*clients)),
                percent(*off_ratio),
                percent(*limit_ratio),
            ))
            .advise("clients stood still outside the server: measure longer or add a worker")
        }
        Rule::ClosedLoopUnknown => advised(
            "neither an iteration nor an op was finished in the window, so the closed loop cannot \
             be checked",
            "measure longer",
        ),
        Rule::OpMix { op, percent, wanted_percent: expected_percent, limit_points } => {
            Text::from(format!(
                "op {op} is {percent:.2} % of the ops done, the method wants \
                 {expected_percent:.2} %: {:.2} points off (limit {limit_points})",
                (percent - expected_percent).abs(),
            ))
            .advise("the work is not the method's: look for an op that fails or stalls")
        }
        Rule::TargetShares { target, ops, equal_ops, off_ratio, limit_ratio } => Text::from(
            format!(
                "target {target} {}",
                uneven((*ops, "an equal part", *equal_ops), (*off_ratio, *limit_ratio))
            ),
        )
        .advise(
            "make the number of clients a multiple of the targets, and see whether one of them is \
             slower",
        ),
        Rule::Rate { achieved_ops_per_s, scheduled_ops_per_s, off_ratio, limit_ratio, ops } => {
            Text::from(format!(
                "load not held: achieved {} of {} ops/s scheduled, {} off (limit {}){}",
                grouped(*achieved_ops_per_s),
                grouped(*scheduled_ops_per_s),
                percent(*off_ratio),
                percent(*limit_ratio),
                unanswered(ops),
            ))
            .advise("ask for less, give the server more resources, or add clients")
        }
        Rule::NotSent { not_sent_ops, due_ops } => Text::from(format!(
            "{} of {} ops were never sent (limit 0): every connection was busy and the queue \
             full or not empty at the end",
            count(*not_sent_ops),
            count(*due_ops),
        ))
        .advise("lower the rate, or add clients"),
        Rule::Score { idle_clients, clients } => score(*idle_clients, *clients),
        _ => return None,
    })
}

/// Clients of the load, those that stayed and those that left.
fn lost_clients(
    [clients, stayed, left]: [u32; 3],
    cause: Option<&str>,
    consequence: LostClients,
) -> Text {
    let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    let who = if stayed == 0 { "none".to_owned() } else { stayed.to_string() };
    let took_part = format!("{who} of {clients} clients took part to the end of the window{cause}");
    match consequence {
        LostClients::AfterWindow => Text::from(format!(
            "all {clients} clients took part to the end of the window, but {left} left after \
             it{cause}"
        )),
        LostClients::OthersDidMore => {
            advised(format!("{took_part}: the others had to do their share"), "see why they left")
        }
        LostClients::LoadShrank => advised(
            format!("{took_part}: the figures are those of a load that shrank"),
            "see why they left",
        ),
        LostClients::TooFew => advised(took_part, "see why they left, then run the point again"),
    }
}

/// What became of the ops of an open load that were not done, as a clause.
fn unanswered(ops: &OpsLeft) -> String {
    let parts = [
        (ops.not_sent, "were never sent"),
        (ops.unfinished, "had no reply when the drain ended"),
        (ops.failed, "failed"),
    ];
    let parts = parts.into_iter().filter(|(ops, _)| *ops > 0);
    let parts: Vec<_> = parts.map(|(ops, what)| format!("{} {what}", count(ops))).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("; of {} ops {}", count(ops.due), parts.join(", ")),
    }
}

fn score(idle_clients: u32, clients: u32) -> Text {
    let who = match (idle_clients, clients) {
        (1, 1) => "the only client".to_owned(),
        (idle, clients) => format!("{idle} of {clients} clients"),
    };
    Text::from(format!(
        "{who} finished no transaction that counts (of a weight above 0) in the window, so the \
         score of the mix is 0"
    ))
    .advise("look at the errors and the weights, or measure longer (--set profiles.NAME.measure=…)")
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "clients_lost", "clients": 1200, "stayed": 0, "left": 1200,
               "cause": "refused", "consequence": "too_few"}"#,
            "none of 1200 clients took part to the end of the window (refused); see why they \
             left, then run the point again",
        ),
        (
            r#"{"kind": "clients_lost", "clients": 10, "stayed": 8, "left": 2, "cause": null,
               "consequence": "load_shrank"}"#,
            "8 of 10 clients took part to the end of the window: the figures are those of a load \
             that shrank; see why they left",
        ),
        (
            r#"{"kind": "clients_lost", "clients": 10, "stayed": 8, "left": 2, "cause": null,
               "consequence": "others_did_more"}"#,
            "8 of 10 clients took part to the end of the window: the others had to do their \
             share; see why they left",
        ),
        (
            r#"{"kind": "clients_lost", "clients": 10, "stayed": 10, "left": 2,
               "cause": "timeout", "consequence": "after_window"}"#,
            "all 10 clients took part to the end of the window, but 2 left after it (timeout)",
        ),
        (
            r#"{"kind": "closed_loop", "counted": "iterations", "present": 930.26,
               "clients": 1000, "off_ratio": 0.07, "limit_ratio": 0.05}"#,
            "throughput, response and think time account for 930.3 of 1,000 clients, 7 % off \
             (limit 5 %); clients stood still outside the server: measure longer or add a worker",
        ),
        (
            r#"{"kind": "closed_loop", "counted": "ops", "present": 930.26, "clients": 1000,
               "off_ratio": 0.07, "limit_ratio": 0.05}"#,
            "no iteration was finished in the window, and its ops account for 930.3 of 1,000 \
             clients, 7 % off (limit 5 %); clients stood still outside the server: measure longer \
             or add a worker",
        ),
        (
            r#"{"kind": "closed_loop_unknown"}"#,
            "neither an iteration nor an op was finished in the window, so the closed loop cannot \
             be checked; measure longer",
        ),
        (
            r#"{"kind": "op_mix", "op": "read", "percent": 17.5, "wanted_percent": 20.0,
               "limit_points": 1.0}"#,
            "op read is 17.50 % of the ops done, the method wants 20.00 %: 2.50 points off (limit \
             1); the work is not the method's: look for an op that fails or stalls",
        ),
        (
            r#"{"kind": "target_shares", "target": "http://a/", "ops": 700, "equal_ops": 1000,
               "off_ratio": 0.3, "limit_ratio": 0.1}"#,
            "target http://a/ did 700 ops where an equal part is 1,000: 30 % off (limit 10 %); \
             make the number of clients a multiple of the targets, and see whether one of them is \
             slower",
        ),
        (
            r#"{"kind": "rate", "achieved_ops_per_s": 9000.0, "scheduled_ops_per_s": 10000.0,
               "off_ratio": 0.1, "limit_ratio": 0.02, "ops": {"due": 10000, "not_sent": 700,
               "unfinished": 200, "failed": 100}}"#,
            "load not held: achieved 9,000 of 10,000 ops/s scheduled, 10 % off (limit 2 %); of \
             10,000 ops 700 were never sent, 200 had no reply when the drain ended, 100 failed; \
             ask for less, give the server more resources, or add clients",
        ),
        (
            r#"{"kind": "rate", "achieved_ops_per_s": 9000.0, "scheduled_ops_per_s": 10000.0,
               "off_ratio": 0.1, "limit_ratio": 0.02, "ops": {"due": 10000, "not_sent": 0,
               "unfinished": 0, "failed": 0}}"#,
            "load not held: achieved 9,000 of 10,000 ops/s scheduled, 10 % off (limit 2 %); ask \
             for less, give the server more resources, or add clients",
        ),
        (
            r#"{"kind": "not_sent", "not_sent_ops": 1200, "due_ops": 10000}"#,
            "1,200 of 10,000 ops were never sent (limit 0): every connection was busy and the \
             queue full or not empty at the end; lower the rate, or add clients",
        ),
        (
            r#"{"kind": "score", "idle_clients": 1, "clients": 1}"#,
            "the only client finished no transaction that counts (of a weight above 0) in the \
             window, so the score of the mix is 0; look at the errors and the weights, or measure \
             longer (--set profiles.NAME.measure=…)",
        ),
        (
            r#"{"kind": "score", "idle_clients": 2, "clients": 8}"#,
            "2 of 8 clients finished no transaction that counts (of a weight above 0) in the \
             window, so the score of the mix is 0; look at the errors and the weights, or measure \
             longer (--set profiles.NAME.measure=…)",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
