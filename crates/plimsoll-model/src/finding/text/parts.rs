//! Parts of the words of findings.

use std::fmt;

use super::super::{
    Answers, CountRecord, EarlyAnswers, ErrorCause, LostClients, LostWith, OpsLeft, Silence,
    TokenFault, WorkerCore,
};
use super::{Text, advised, count};
use crate::core_user::{CoreUser, CoreUserKind};
use crate::units::{Nanos, grouped, percent};

/// The next move where nothing else explains lost connections.
const CONNECTION_ADVICE: &str =
    "look for a limit of connections or files in the server's log, or use fewer clients";

/// `, most of them timeout (12)`.
pub(super) fn most_of_them(most: Option<&(String, u64)>) -> String {
    most.map_or_else(String::new, |(class, n)| format!(", most of them {class} ({})", count(*n)))
}

/// Two counts of the same ops: those recorded, those of the totals, and of these without a reply.
pub(super) fn counts_text(record: CountRecord, counts: [u64; 3]) -> Text {
    let [recorded, totals, without_reply] = counts.map(count);
    advised(
        match record {
            CountRecord::IntervalLogs => format!(
                "the interval logs hold {recorded} ops and the totals {totals}, {without_reply} of \
                 them without a reply"
            ),
            CountRecord::Seconds => format!(
                "the seconds of the window hold {recorded} ops done and the totals {totals}"
            ),
        },
        "the bundle is damaged or this is a bug: run the point again and report it",
    )
}

/// Mean service times near the suite's cap, with their points.
pub(super) fn near_cap_text(cap_ms: f64, points: &[(String, u32)]) -> Text {
    let near = points.iter().map(|(mean, point)| format!("{mean} at point {point}"));
    advised(
        format!(
            "the cap of {cap_ms} ms lies within the uncertainty interval of the mean service time \
             ({}): another run may count these otherwise and have another peak",
            near.collect::<Vec<_>>().join(", "),
        ),
        "measure longer, or compare several runs (--repeat 3)",
    )
}

/// Connections that were closed although they were to be kept.
pub(super) fn unkept_text(connections: u64, done_ops: u64, reconnected_ops: u64) -> Text {
    let again = match reconnected_ops {
        0 => String::new(),
        ops => format!(
            "; {} requests came to a connection that it had closed, and were sent again",
            count(ops)
        ),
    };
    advised(
        format!(
            "the server announced to keep its connections and closed {} of them, at {} \
             replies{again}",
            count(connections),
            count(done_ops),
        ),
        "each next request pays for a new connection: have the server keep connections, or say \
         Connection: close",
    )
}

/// Answers whose tokens are not what they should be.
pub(super) fn tokens_text(fault: TokenFault, requests: u64, of_requests: u64) -> Text {
    let of = format!("{} of {} answers", count(requests), count(of_requests));
    match fault {
        TokenFault::Uncounted if requests == of_requests => advised(
            "no answer says how many tokens it has, so there are chunks and characters a second, \
             and no tokens",
            "ask the server for usage in streams (stream_options.include_usage), if it has that",
        ),
        TokenFault::Uncounted => advised(
            format!("{of} do not say how many tokens they have; the rate of tokens is the others'"),
            "look for answers that were cut off, or for a proxy that drops the last chunk",
        ),
        TokenFault::Mismatched => advised(
            format!("{of} say that they have fewer tokens than chunks with text, which cannot be"),
            "do not rely on figures of tokens; those of chunks and characters hold",
        ),
        TokenFault::CutShort => advised(
            format!("{of} have fewer tokens than were asked for: the model ended them"),
            "the lengths in the result are those that were measured; a server that takes ignore_eos \
             or min_tokens gives all",
        ),
    }
}

/// A server that counts other tokens than its answers have.
pub(super) fn tokens_apart_text(server_per_s: f64, answers_per_s: f64, limit_ratio: f64) -> Text {
    advised(
        format!(
            "the server's /metrics counted {} output tokens/s and the answers have {} (limit {} \
             apart)",
            grouped(server_per_s),
            grouped(answers_per_s),
            percent(limit_ratio),
        ),
        match server_per_s > answers_per_s {
            true => {
                "others use this server, or answers were lost on their way: have it for yourself, \
                 and look at the errors"
            }
            false => {
                "the page is of one server and others answer too, or it counts otherwise: measure \
                 the servers one by one"
            }
        },
    )
}

/// A clock whose offset is not known well enough.
pub(super) fn agent_clock_text(bound: Nanos, limit: Nanos, drift_ns: i64) -> Text {
    let drift = Nanos(drift_ns.unsigned_abs());
    advised(
        format!(
            "its clock is known within {bound} only (limit {limit}), {drift} of it drift: its load \
             may have started so much earlier or later than the others'"
        ),
        "use a launcher with a shorter round trip, or longer windows",
    )
}

/// Agents besides the one that is named.
pub(super) fn more_agents(others: u32) -> String {
    match others {
        0 => String::new(),
        1 => " (and one more agent)".to_owned(),
        others => format!(" (and {others} more agents)"),
    }
}

/// Load points that lost an agent.
pub(super) fn made_again(points: u32) -> String {
    match points {
        1 => "a load point was made again".to_owned(),
        points => format!("{points} load points were made again"),
    }
}

/// Ops beside the part of all that they should be, so named.
pub(super) fn uneven(
    (ops, named, part_ops): (u64, &str, u64),
    (off_ratio, limit_ratio): (f64, f64),
) -> String {
    let (off, limit) = (percent(off_ratio), percent(limit_ratio));
    format!(
        "did {} ops where {named} is {}: {off} off (limit {limit})",
        count(ops),
        count(part_ops)
    )
}

/// A part of some ops, in percent.
pub(super) fn part(ops: u64, of_ops: u64) -> String {
    percent(ops as f64 / of_ops.max(1) as f64)
}

/// A clause after a semicolon, or nothing.
pub(super) fn clause(text: Option<impl fmt::Display>) -> String {
    text.map_or_else(String::new, |text| format!("; {text}"))
}

/// The command that continues a run.
pub(super) fn resume(bundle: &str) -> String {
    format!("`plimsoll resume {bundle}` continues the run")
}

/// Ops that lost their connection before a reply and within one, of those due.
pub(super) fn lost_connections_text(
    [before, within, due]: [u64; 3],
    clients: LostWith,
    silence: Option<Silence>,
    early: Option<&EarlyAnswers>,
) -> Text {
    let what = || format!("{}{}", lost_connections(before, within, due, clients), clause(silence));
    match early {
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
    }
}

/// Clients of the load, those that stayed and those that left.
pub(super) fn lost_clients_text(
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
pub(super) fn unanswered(ops: &OpsLeft) -> String {
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
                "this host ran out of ports or descriptors: use fewer connections, connect from more \
                 addresses (--source ADDR,ADDR…), or raise its limits",
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

/// Who had the core, and what can be done about it.
impl fmt::Display for WorkerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { user, ratio } => {
                let CoreUser { name, pid, .. } = user;
                let had = format!("had a worker's core for {} of the time", percent(*ratio));
                match user.kind() {
                    CoreUserKind::Own => {
                        write!(f, "other threads of this program {had}: give it another core")
                    }
                    CoreUserKind::Server => write!(
                        f,
                        "the server itself ({name}, process {pid}) {had}: give them different \
                         cores (taskset) or hosts, or lower the load"
                    ),
                    CoreUserKind::Kernel => write!(
                        f,
                        "{name}, a thread of the kernel, {had}. It cannot be ended. Move \
                         interrupts to another core (/proc/irq/*/smp_affinity, irqbalance), or \
                         start Plimsoll on other cores (taskset)"
                    ),
                    CoreUserKind::Other => {
                        write!(f, "{name} (process {pid}) {had}: end it or keep it off that core")
                    }
                }
            }
            Self::TakenByUnknown { ratio } => write!(
                f,
                "other programs had a worker's core for {} of the time: end them or keep them off \
                 it",
                percent(*ratio)
            ),
            Self::Stolen { ratio } => write!(
                f,
                "the hypervisor kept {} of the processors' time: measure on a host that has its \
                 own",
                percent(*ratio)
            ),
            Self::Paused { ratio, longest_ns } => write!(
                f,
                "the worker's core was paused below the system for {} of the time, {longest_ns} at \
                 the longest, as a hypervisor does: measure on a host of your own",
                percent(*ratio)
            ),
            Self::Slept => f.write_str(
                "the worker had its core and was not busy: it woke late; use --pacing spin, or a \
                 host that sleeps less deeply",
            ),
            Self::UsedUp => f.write_str("add a worker or a core, or lower the load"),
        }
    }
}
