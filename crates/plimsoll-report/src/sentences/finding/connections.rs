//! What became of the connections?

use plimsoll_model::finding::{EarlyAnswers, LostWith, Rule, Silence};
use plimsoll_model::units::percent;

use super::server::{early_advice, early_answers, silence_clause};
use super::{Text, advised, count, part};

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::ConnectionsLost {
            before_reply_ops,
            within_reply_ops,
            reset_ops,
            due_ops,
            clients,
            silence,
            early,
        } => {
            let ops = [*before_reply_ops, *within_reply_ops, *reset_ops, *due_ops];
            lost(ops, *clients, *silence, early.as_ref())
        }
        Rule::Retransmissions { requests, due_ops, limit_ratio } => Text::from(format!(
            "{} requests were sent again for {} ops, {} (limit {})",
            count(*requests),
            count(*due_ops),
            part(*requests, *due_ops),
            percent(*limit_ratio),
        ))
        .advise(
            "datagrams or connections are lost, or replies very late: see the server's log; over \
             UDP enlarge the socket buffers on both sides, or compare with TCP",
        ),
        Rule::Ambiguous { ops } => Text::from(format!(
            "{} requests that change something were sent again because their connection ended \
             or their reply was lost; the server may have processed them twice",
            count(*ops)
        ))
        .advise(
            "find out why replies are lost; the server's log says how many requests it processed",
        ),
        Rule::SessionsRebuilt { sessions, reopened_files } => Text::from(format!(
            "the server forgot {} sessions and {} open files, which were made and opened again",
            count(*sessions),
            count(*reopened_files)
        ))
        .advise("see in its log whether it restarted, or let leases expire"),
        Rule::Unkept { connections, done_ops, reconnected_ops } => {
            unkept(*connections, *done_ops, *reconnected_ops)
        }
        _ => return None,
    })
}

/// The next move where nothing else explains lost connections.
const CONNECTION_ADVICE: &str =
    "look for a limit of connections or files in the server's log, or use fewer clients";

/// The same where the connections stayed, and streams of HTTP/2 were reset.
const RESET_ADVICE: &str =
    "see the codes in the error samples, and the server's log for why it gives up requests";

/// Ops that lost their connection before a reply and within one, those of them that lost a stream
/// only, of those due.
fn lost(
    [before, within, reset, due]: [u64; 4],
    clients: LostWith,
    silence: Option<Silence>,
    early: Option<&EarlyAnswers>,
) -> Text {
    let of_streams = reset >= before + within;
    let lost_by = match reset {
        0 => "refused or closed the connections",
        _ if of_streams => "reset the streams",
        _ => "refused or closed the connections, or reset the streams,",
    };
    let lost = lost_ops([before, within, due], lost_by, clients);
    let what = format!("{lost}{}", silence_clause(silence));
    match early {
        None if of_streams => advised(what, RESET_ADVICE),
        None => advised(what, CONNECTION_ADVICE),
        Some(early) if early.lost_ops < before + within => advised(
            format!("{what}; {} of them: {}", count(early.lost_ops), early_answers(early)),
            format!("for the others {CONNECTION_ADVICE}"),
        ),
        Some(early) => Text::from(format!(
            "{}: {} of {} ops got the status, {} lost their connection first",
            early_answers(early),
            count(early.answered_ops()),
            count(early.due_ops),
            count(early.lost_ops),
        ))
        .advise(early_advice(early)),
    }
}

fn lost_ops([before, within, due]: [u64; 3], lost_by: &str, clients: LostWith) -> String {
    let of = format!("of {} ops", count(due));
    let refused = || format!("the server {lost_by} of {} {of} before replying", count(before));
    match (before, within, clients) {
        // When a client leaves, all ops that it has in flight are lost.
        (_, _, LostWith::Left) => format!(
            "{} {of} lost their connection, those of the clients that left among them",
            count(before + within),
        ),
        (0, _, LostWith::Stayed) => format!("the server broke off {} replies {of}", count(within)),
        (_, 0, LostWith::Stayed) => refused(),
        (_, _, LostWith::Stayed) => {
            format!("{}, and broke off {} replies", refused(), count(within))
        }
    }
}

/// Connections that were closed although they were to be kept.
fn unkept(connections: u64, done_ops: u64, reconnected_ops: u64) -> Text {
    let again = match reconnected_ops {
        0 => String::new(),
        ops => format!(
            "; {} requests came to a connection that it had closed, and were sent again",
            count(ops)
        ),
    };
    Text::from(format!(
        "the server announced to keep its connections and closed {} of them, at {} \
         replies{again}",
        count(connections),
        count(done_ops),
    ))
    .advise(
        "each next request pays for a new connection: have the server keep connections, or say \
         Connection: close",
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "connections_lost", "before_reply_ops": 100, "within_reply_ops": 0,
               "reset_ops": 0, "due_ops": 10000, "clients": "stayed", "silence": null,
               "early": null}"#,
            "the server refused or closed the connections of 100 of 10,000 ops before replying; \
             look for a limit of connections or files in the server's log, or use fewer clients",
        ),
        (
            r#"{"kind": "connections_lost", "before_reply_ops": 0, "within_reply_ops": 20,
               "reset_ops": 0, "due_ops": 10000, "clients": "stayed", "silence": {"from_second": 3,
               "answers": "none"}, "early": null}"#,
            "the server broke off 20 replies of 10,000 ops; from second 3 on nothing answered; \
             look for a limit of connections or files in the server's log, or use fewer clients",
        ),
        (
            r#"{"kind": "connections_lost", "before_reply_ops": 100, "within_reply_ops": 20,
               "reset_ops": 120, "due_ops": 10000, "clients": "stayed", "silence": null,
               "early": null}"#,
            "the server reset the streams of 100 of 10,000 ops before replying, and broke off 20 \
             replies; see the codes in the error samples, and the server's log for why it gives up \
             requests",
        ),
        (
            r#"{"kind": "connections_lost", "before_reply_ops": 100, "within_reply_ops": 20,
               "reset_ops": 60, "due_ops": 10000, "clients": "left", "silence": null,
               "early": null}"#,
            "120 of 10,000 ops lost their connection, those of the clients that left among them; \
             look for a limit of connections or files in the server's log, or use fewer clients",
        ),
        (
            r#"{"kind": "connections_lost", "before_reply_ops": 100, "within_reply_ops": 20,
               "reset_ops": 60, "due_ops": 10000, "clients": "stayed", "silence": null,
               "early": {"answered": [[417, 5]], "lost_ops": 20, "due_ops": 10000}}"#,
            "the server refused or closed the connections, or reset the streams, of 100 of 10,000 \
             ops before replying, and broke off 20 replies; 20 of them: the server answers 417 and \
             closes while the body is still being sent; for the others look for a limit of \
             connections or files in the server's log, or use fewer clients",
        ),
        (
            r#"{"kind": "connections_lost", "before_reply_ops": 100, "within_reply_ops": 20,
               "reset_ops": 0, "due_ops": 10000, "clients": "stayed", "silence": null,
               "early": {"answered": [[500, 5]], "lost_ops": 120, "due_ops": 10000}}"#,
            "the server answers 500 and closes while the body is still being sent: 5 of 10,000 \
             ops got the status, 120 lost their connection first; see the server's log for the \
             reason",
        ),
        (
            r#"{"kind": "retransmissions", "requests": 400, "due_ops": 10000,
               "limit_ratio": 0.01}"#,
            "400 requests were sent again for 10,000 ops, 4 % (limit 1 %); datagrams or \
             connections are lost, or replies very late: see the server's log; over UDP enlarge \
             the socket buffers on both sides, or compare with TCP",
        ),
        (
            r#"{"kind": "ambiguous", "ops": 3}"#,
            "3 requests that change something were sent again because their connection ended or \
             their reply was lost; the server may have processed them twice; find out why replies \
             are lost; the server's log says how many requests it processed",
        ),
        (
            r#"{"kind": "sessions_rebuilt", "sessions": 16, "reopened_files": 3}"#,
            "the server forgot 16 sessions and 3 open files, which were made and opened again; see \
             in its log whether it restarted, or let leases expire",
        ),
        (
            r#"{"kind": "unkept", "connections": 40, "done_ops": 4000, "reconnected_ops": 0}"#,
            "the server announced to keep its connections and closed 40 of them, at 4,000 \
             replies; each next request pays for a new connection: have the server keep \
             connections, or say Connection: close",
        ),
        (
            r#"{"kind": "unkept", "connections": 40, "done_ops": 4000, "reconnected_ops": 5}"#,
            "the server announced to keep its connections and closed 40 of them, at 4,000 \
             replies; 5 requests came to a connection that it had closed, and were sent again; \
             each next request pays for a new connection: have the server keep connections, or say \
             Connection: close",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
