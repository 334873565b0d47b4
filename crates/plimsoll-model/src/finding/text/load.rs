//! The words of findings about the load and about what the server did to it.

use std::fmt;

use super::super::{
    Answers, CycleCount, EarlyAnswers, ErrorCause, LostClients, LostWith, OpsLeft, Rule, Silence,
};
use super::{Text, advised, count};
use crate::units::{grouped, percent, three_digits};

/// The next move where nothing else explains lost connections.
const CONNECTION_ADVICE: &str =
    "look for a limit of connections or files in the server's log, or use fewer clients";

/// `, most of them timeout (12)`.
fn most_of_them(most: Option<&(String, u64)>) -> String {
    most.map_or_else(String::new, |(class, n)| format!(", most of them {class} ({})", count(*n)))
}

/// A part of some ops, in percent.
fn part(ops: u64, of_ops: u64) -> String {
    percent(ops as f64 / of_ops.max(1) as f64)
}

/// A clause after a semicolon, or nothing.
fn clause(text: Option<impl fmt::Display>) -> String {
    text.map_or_else(String::new, |text| format!("; {text}"))
}

impl Rule {
    /// Was the load that was asked for the load that was offered?
    #[allow(clippy::too_many_lines, reason = "a table: one text for each rule")]
    pub(super) fn load_text(&self) -> Option<Text> {
        Some(match self {
            Self::ClientsLost { clients, stayed, left, cause, consequence } => {
                lost_clients_text([*clients, *stayed, *left], cause.as_deref(), *consequence)
            }
            Self::ClosedLoop { counted, present, clients, off_ratio, limit_ratio } => {
                let account = match counted {
                    CycleCount::Iterations => "throughput, response and think time account for",
                    CycleCount::Ops => {
                        "no iteration was finished in the window, and its ops account for"
                    }
                };
                advised(
                    format!(
                        "{account} {present:.1} of {} clients, {} off (limit {})",
                        count(u64::from(*clients)),
                        percent(*off_ratio),
                        percent(*limit_ratio),
                    ),
                    "clients stood still outside the server: measure longer or add a worker",
                )
            }
            Self::ClosedLoopUnknown => advised(
                "neither an iteration nor an op was finished in the window, so the closed loop \
                 cannot be checked",
                "measure longer",
            ),
            Self::OpMix { op, percent, wanted_percent, limit_points } => advised(
                format!(
                    "op {op} is {percent:.2} % of the ops done, the method wants \
                     {wanted_percent:.2} %: {:.2} points off (limit {limit_points})",
                    (percent - wanted_percent).abs(),
                ),
                "the work is not the method's: look for an op that fails or stalls",
            ),
            Self::TargetShares { target, ops, equal_ops, off_ratio, limit_ratio } => advised(
                format!(
                    "target {target} did {} ops where an equal part is {}: {} off (limit {})",
                    count(*ops),
                    count(*equal_ops),
                    percent(*off_ratio),
                    percent(*limit_ratio),
                ),
                "make the number of clients a multiple of the targets, and see whether one of them \
                 is slower",
            ),
            Self::Rate { achieved_ops_per_s, scheduled_ops_per_s, off_ratio, limit_ratio, ops } => {
                advised(
                    format!(
                        "load not held: achieved {} of {} ops/s scheduled, {} off (limit {}){}",
                        grouped(*achieved_ops_per_s),
                        grouped(*scheduled_ops_per_s),
                        percent(*off_ratio),
                        percent(*limit_ratio),
                        unanswered(ops),
                    ),
                    "ask for less, give the server more resources, or add clients",
                )
            }
            Self::NotSent { not_sent_ops, due_ops } => advised(
                format!(
                    "{} of {} ops were never sent (limit 0): every connection was busy and the \
                     queue full or not empty at the end",
                    count(*not_sent_ops),
                    count(*due_ops),
                ),
                "lower the rate, or add clients",
            ),
            Self::Score { idle_clients, clients } => {
                let who = match (idle_clients, clients) {
                    (1, 1) => "the only client".to_owned(),
                    (idle, clients) => format!("{idle} of {clients} clients"),
                };
                advised(
                    format!(
                        "{who} finished no transaction that counts (of a weight above 0) in the \
                         window, so the score of the mix is 0"
                    ),
                    "look at the errors and the weights, or measure longer (--set \
                     profiles.NAME.measure=…)",
                )
            }
            _ => return None,
        })
    }

    /// What the server did to the ops.
    #[allow(clippy::too_many_lines, reason = "a table: one text for each rule")]
    pub(super) fn server_text(&self) -> Option<Text> {
        Some(match self {
            Self::Errors { failed_ops, due_ops, limit_ratio, most, cause } => advised(
                format!(
                    "{} of {} ops failed, {} (limit {}){}",
                    count(*failed_ops),
                    count(*due_ops),
                    part(*failed_ops, *due_ops),
                    percent(*limit_ratio),
                    most_of_them(most.as_ref()),
                ),
                cause,
            ),
            Self::Unfinished { unfinished_ops, due_ops, limit_ratio, silence } => advised(
                format!(
                    "{} of {} ops had neither a reply nor an error when the drain ended, {} (limit \
                     {}){}",
                    count(*unfinished_ops),
                    count(*due_ops),
                    part(*unfinished_ops, *due_ops),
                    percent(*limit_ratio),
                    clause(*silence),
                ),
                "see whether the server hangs, or give it a longer drain",
            ),
            Self::ResponseCap { mean_ms, cap_ms } => format!(
                "mean service time {} ms is above the suite's cap of {cap_ms} ms: the point is \
                 shown but not counted",
                three_digits(*mean_ms),
            )
            .into(),
            Self::ConnectionsLost { .. } => self.lost_connections_text()?,
            Self::WarmUpErrors { failed_ops } => advised(
                format!("{} ops failed in warm-up, before the window", count(*failed_ops)),
                "see the server's log",
            ),
            Self::Retransmissions { requests, due_ops, limit_ratio } => advised(
                format!(
                    "{} requests were sent again for {} ops, {} (limit {})",
                    count(*requests),
                    count(*due_ops),
                    part(*requests, *due_ops),
                    percent(*limit_ratio),
                ),
                "datagrams are lost or replies very late: enlarge the socket buffers on both \
                 sides, or compare with TCP",
            ),
            Self::Ambiguous { ops } => advised(
                format!(
                    "{} ops that change something were sent again although the first try may have \
                     worked",
                    count(*ops)
                ),
                "an answer that this explains (a name already gone) is not counted as an error",
            ),
            Self::NotSteady { first_ops_per_s, second_ops_per_s, change_ratio, limit_ratio } => {
                advised(
                    format!(
                        "throughput changed by {} from the first half of the window ({} ops/s) to \
                         the second ({} ops/s) (limit {})",
                        percent(*change_ratio),
                        grouped(*first_ops_per_s),
                        grouped(*second_ops_per_s),
                        percent(*limit_ratio),
                    ),
                    "warm up longer, or look for what came and went on the server",
                )
            }
            Self::ResponseDrift { first_ns, second_ns } => advised(
                format!(
                    "mean response time went from {first_ns} in the first half of the window to \
                     {second_ns} in the second"
                ),
                match second_ns > first_ns {
                    true => "a queue grew, or the server slowed down: measure longer and compare",
                    false => {
                        "the server was still warming up, or a queue went away: warm up longer and \
                         compare"
                    }
                },
            ),
            _ => return None,
        })
    }

    fn lost_connections_text(&self) -> Option<Text> {
        let Self::ConnectionsLost {
            before_reply_ops,
            within_reply_ops,
            due_ops,
            clients,
            silence,
            early,
        } = self
        else {
            return None;
        };
        let [before, within, due] = [*before_reply_ops, *within_reply_ops, *due_ops];
        let what =
            || format!("{}{}", lost_connections(before, within, due, *clients), clause(*silence));
        Some(match early {
            None => advised(what(), CONNECTION_ADVICE),
            Some(early) if early.lost_ops < before + within => advised(
                format!("{}; {} of them: {early}", what(), count(early.lost_ops)),
                format!("for the others {CONNECTION_ADVICE}"),
            ),
            Some(early) => advised(
                format!(
                    "{early}: {} of {} ops got the status, {} lost their connection first",
                    count(early.answered_ops()),
                    count(early.due_ops),
                    count(early.lost_ops),
                ),
                early.advice(),
            ),
        })
    }
}

fn lost_clients_text(
    [clients, stayed, left]: [u32; 3],
    cause: Option<&str>,
    consequence: LostClients,
) -> Text {
    let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    let who = if stayed == 0 { "none".to_owned() } else { stayed.to_string() };
    let took_part = format!("{who} of {clients} clients took part to the end of the window{cause}");
    match consequence {
        LostClients::AfterWindow => format!(
            "all {clients} clients took part to the end of the window, but {left} left after \
             it{cause}"
        )
        .into(),
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

fn lost_connections(before: u64, within: u64, due: u64, clients: LostWith) -> String {
    let of = format!("of {} ops", count(due));
    let refused = || {
        format!(
            "the server refused or closed the connections of {} {of} before replying",
            count(before)
        )
    };
    match (before, within, clients) {
        // Clients that leave take the ops beside the one they left for with them.
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

impl fmt::Display for ErrorCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SAMPLES: &str = "see the error samples and the server's log";
        match self {
            Self::Generator => f.write_str(
                "this host ran out of ports or descriptors: use fewer connections, or raise its \
                 limits",
            ),
            Self::Silence(silence) => write!(f, "{silence}; {SAMPLES}"),
            Self::EarlyAnswers(early) => write!(f, "{early}; {}", early.advice()),
            Self::Unknown => f.write_str(SAMPLES),
        }
    }
}

/// `from second 14 on nothing answered`.
impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.answers {
            Answers::None => "nothing answered",
            Answers::Errors => "no op succeeded",
        };
        match self.from_second {
            None => write!(f, "{what} in the window"),
            Some(second) => write!(f, "from second {second} on {what}"),
        }
    }
}

/// `the server answers 413 and closes while the body is still being sent`.
impl fmt::Display for EarlyAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut statuses: Vec<u32> = self.answered.iter().map(|(status, _)| *status).collect();
        statuses.sort_unstable();
        let statuses: Vec<String> = statuses.iter().map(u32::to_string).collect();
        // That it closes is known from the connections that broke.
        let closes = if self.lost_ops > 0 { " and closes" } else { "" };
        let statuses = statuses.join(" or ");
        write!(f, "the server answers {statuses}{closes} while the body is still being sent")
    }
}

impl EarlyAnswers {
    /// The next move, by the most frequent status.
    fn advice(&self) -> &'static str {
        match self.answered.iter().max_by_key(|(_, count)| *count) {
            Some((413, _)) => "raise its limit for the size of a body, or send a smaller one",
            Some((401 | 407, _)) => "send the credentials that it wants",
            Some((417, _)) => "send the request without Expect",
            _ => "see the server's log for the reason",
        }
    }
}
