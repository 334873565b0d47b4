//! Connections that the server refused or dropped, clients that left, and requests that were sent
//! again: they explain many other findings of a point.

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{Phase, SecondRecord};
use plimsoll_model::finding::{Answers, EarlyAnswers, LostClients, LostWith, Rule, Silence};
use plimsoll_model::outcome::ErrorClass;

use super::{Evidence, exceeds};

/// Ops of the window that had no connection, or lost it before the reply began; then those whose
/// reply broke off.
fn lost(e: &Evidence<'_>) -> (u64, u64) {
    let errors = &e.view.record.totals.errors;
    let of = |class: ErrorClass| errors.get(&class.to_string()).copied().unwrap_or(0);
    (of(ErrorClass::Transport), of(ErrorClass::Truncated))
}

/// Connections were refused or dropped, as far as ops show it.
pub(super) fn any_lost(e: &Evidence<'_>) -> bool {
    lost(e) != (0, 0)
}

/// May as many clients be missing from the account of a closed load because their connections were
/// dropped? Such an op occupies its client, and ends in no reply.
pub(super) fn explain(e: &Evidence<'_>, missing_clients: f64) -> bool {
    let (before, within) = lost(e);
    missing_clients > 0.0 && missing_clients <= (before + within) as f64
}

/// Connections refused or dropped, whether or not that is more than the suite allows.
pub(super) fn connections_lost(e: &Evidence<'_>) -> Option<Rule> {
    let (before_reply_ops, within_reply_ops) = lost(e);
    (before_reply_ops + within_reply_ops > 0).then(|| Rule::ConnectionsLost {
        before_reply_ops,
        within_reply_ops,
        reset_ops: e.view.record.totals.stream_resets,
        due_ops: e.view.record.totals.due,
        clients: if e.view.lost.is_empty() { LostWith::Stayed } else { LostWith::Left },
        silence: silence(e),
        early: early_answers(e).filter(|early| early.lost_ops > 0),
    })
}

/// Ops of the window whose requests the server answered before it had read them, and closed: the
/// status that some clients got explains the connections that the others lost.
pub(super) fn early_answers(e: &Evidence<'_>) -> Option<EarlyAnswers> {
    let totals = &e.view.record.totals;
    let early = EarlyAnswers {
        answered: totals.cut_off.answered.clone(),
        lost_ops: totals.cut_off.lost,
        due_ops: totals.due,
    };
    (early.answered_ops() > 0).then_some(early)
}

/// A server was lost, and was not back when the load had ended.
pub(super) fn server_lost(e: &Evidence<'_>) -> Option<Rule> {
    let server = e.view.record.server_lost.clone()?;
    let from_second = silence(e).and_then(|silence| silence.from_second);
    Some(Rule::ServerLost { server, from_second, made_again: false })
}

/// Classes of errors of ops that the server did not answer.
const UNANSWERED: [&str; 6] =
    ["timeout", "transport", "tls", "truncated", "ports_exhausted", "descriptors_exhausted"];

/// Since when nothing was answered any more, or nothing well: a server that answers with errors is
/// there.
pub(super) fn silence(e: &Evidence<'_>) -> Option<Silence> {
    let mut classes = e.view.record.totals.errors.keys();
    let answers = match classes.all(|class| UNANSWERED.contains(&class.as_str())) {
        true => Answers::None,
        false => Answers::Errors,
    };
    let record = e.view.record;
    let window = record.seconds.iter().filter(|s| s.phase == Phase::Measure);
    let seconds: Vec<&SecondRecord> = window.collect();
    // A part of a reply is an answer, too.
    let is_answered = |second: &&SecondRecord| second.done > second.errors || second.chunks > 0;
    let Some(last) = seconds.iter().rposition(is_answered) else {
        return Some(Silence { from_second: None, answers });
    };
    let from_second = seconds.get(last + 1)?.second;
    // All requests had ended: the clients had finished.
    let ended: u64 = seconds[..=last].iter().map(|second| second.done).sum();
    let clients = u64::from(record.load.clients());
    let were_last = record.ops.is_some_and(|ops| ops.saturating_sub(ended) < clients);
    (!were_last).then_some(Silence { from_second: Some(from_second), answers })
}

/// Share of its clients that a closed load may not shrink below: with fewer it is another load.
const CLIENTS_LEFT_MIN_RATIO: f64 = 0.2;

/// A client that leaves takes its share of a closed load with it: as in Mindcraft's report the
/// point counts, with those that stayed (the SuperLab aborted: `on_client_failure`). In an open
/// load the requests of lost clients are not sent.
pub(super) fn clients_lost(e: &Evidence<'_>) -> Option<Rule> {
    let requested = e.view.record.load.clients();
    let stayed = e.view.record.totals.clients_participating;
    if stayed == 0 || (stayed >= requested && e.view.lost.is_empty()) {
        return None;
    }
    let consequence = match e.view.record.load {
        _ if stayed >= requested => LostClients::AfterWindow,
        Load::Open { .. } => LostClients::OthersDidMore,
        Load::Closed { .. } => LostClients::LoadShrank,
    };
    Some(clients_gone(e, consequence))
}

/// No client sent requests at the end of the window, or too few in a closed load.
pub(super) fn too_few_clients_left(e: &Evidence<'_>) -> Option<Rule> {
    if !e.is_steady() {
        return None;
    }
    let requested = e.view.record.load.clients();
    let stayed = e.view.record.totals.clients_participating;
    let least = match e.view.record.load {
        Load::Open { .. } => 1.0,
        Load::Closed { .. } => (f64::from(requested) * CLIENTS_LEFT_MIN_RATIO).max(1.0),
    };
    (f64::from(stayed) < least).then(|| clients_gone(e, LostClients::TooFew))
}

fn clients_gone(e: &Evidence<'_>, consequence: LostClients) -> Rule {
    Rule::ClientsLost {
        clients: e.view.record.load.clients(),
        stayed: e.view.record.totals.clients_participating,
        left: e.view.lost.len() as u32,
        cause: e.view.lost.first().cloned(),
        consequence,
    }
}

/// Retransmissions per op before they are reported: each costs its op a second or more, so that one
/// in a hundred shows in the mean and makes up p99.
const RETRANSMISSIONS_MAX_RATIO: f64 = 0.01;

/// Datagrams were lost, or replies took longer than the wait for them.
pub(super) fn retransmissions(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let limit_ratio = RETRANSMISSIONS_MAX_RATIO;
    exceeds(totals.retransmissions, limit_ratio, totals.due).then_some(Rule::Retransmissions {
        requests: totals.retransmissions,
        due_ops: totals.due,
        limit_ratio,
    })
}

/// An op whose first try may have worked: the reply to the second try does not show it.
pub(super) fn ambiguous(e: &Evidence<'_>) -> Option<Rule> {
    let ops = e.view.record.totals.ambiguous;
    (ops > 0).then_some(Rule::Ambiguous { ops })
}

/// The server restarted, or let a lease expire.
pub(super) fn sessions_rebuilt(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    let (sessions, reopened_files) = (totals.sessions_rebuilt, totals.reopened);
    (sessions + reopened_files > 0).then_some(Rule::SessionsRebuilt { sessions, reopened_files })
}

/// Connections that the server closed although it announced to keep them, by replies, before they
/// are reported: a server may close an idle connection now and then.
const UNKEPT_MAX_RATIO: f64 = 0.01;

/// The server closes connections after replies that announce to keep them.
pub(super) fn unkept(e: &Evidence<'_>) -> Option<Rule> {
    let totals = &e.view.record.totals;
    exceeds(totals.unkept, UNKEPT_MAX_RATIO, totals.done_in_window).then_some(Rule::Unkept {
        connections: totals.unkept,
        done_ops: totals.done_in_window,
        reconnected_ops: totals.reconnected,
    })
}

#[cfg(test)]
mod tests;
