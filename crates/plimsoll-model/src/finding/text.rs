//! The words of findings: cause, measured value, limit, remedy.

mod parts;

use std::fmt;

use super::{CycleCount, Interruption, Missing, PartOf, Progress, Rule, ShortPhase};
use crate::units::{grouped, percent, three_digits};
use parts::{
    agent_clock_text, clause, counts_text, lost_clients_text, lost_connections_text, made_again,
    more_agents, most_of_them, near_cap_text, part, resume, tokens_apart_text, tokens_text,
    unanswered, uneven, unkept_text,
};

fn count(n: u64) -> String {
    grouped(n as f64)
}

/// What happened and by how much, and what to do about it.
struct Text {
    cause: String,
    advice: String,
}

fn advised(cause: impl Into<String>, advice: impl fmt::Display) -> Text {
    Text { cause: cause.into(), advice: advice.to_string() }
}

impl From<String> for Text {
    fn from(cause: String) -> Self {
        Self { cause, advice: String::new() }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text("DIR"))
    }
}

impl Rule {
    /// What happened and what to do about it; `bundle` is the directory that `plimsoll resume`
    /// continues.
    pub fn text(&self, bundle: &str) -> String {
        let Text { cause, advice } = self.words(bundle);
        if advice.is_empty() { cause } else { format!("{cause}; {advice}") }
    }

    /// The text without what to do about it.
    pub fn cause(&self) -> String {
        self.words("").cause
    }

    #[allow(clippy::too_many_lines, reason = "a table: one text for each rule")]
    fn words(&self, bundle: &str) -> Text {
        match self {
            // Is what was written down whole and right?
            Self::Panic { message } => advised(
                format!("a worker of the generator panicked: {message}"),
                "this is a bug, please report it",
            ),
            Self::EndedEarly { cause } => advised(
                format!("the point was ended before its time: {cause}"),
                "mend that and run the point again",
            ),
            Self::Intervals { files } => advised(
                format!("the interval logs of {files} are missing, so its times cannot be judged"),
                "restore them, or run the point again",
            ),
            Self::NothingDone { progress: Progress::NoneDue } => {
                advised("no op was due in the window", "measure longer, or ask for more load")
            }
            Self::NothingDone { progress: Progress::NoReply } => {
                advised("no op had a reply in the window", "see whether the server answers at all")
            }
            Self::NothingDone { progress: Progress::AllFailed } => {
                advised("no op finished without error in the window", "see the error samples")
            }
            Self::Corrupt { replies } => advised(
                format!(
                    "{} replies held other data than the server was given or asked for (limit 0)",
                    count(*replies)
                ),
                "where a file set is read, remove it with plimsoll clean and prepare it again with \
                 the run's seed, else look for the fault in the server",
            ),
            Self::Counts { record, recorded_ops, total_ops, without_reply_ops } => {
                counts_text(*record, [*recorded_ops, *total_ops, *without_reply_ops])
            }
            Self::Duration { phase, length_ns, wanted_ns, profile } => {
                let what = match phase {
                    ShortPhase::Window => "measured",
                    ShortPhase::WarmUp => "warmed up",
                };
                advised(
                    format!("{what} for {length_ns}, the {profile} profile wants {wanted_ns}"),
                    "run the point again to its end",
                )
            }
            Self::TooFewOps { due_ops, wanted_ops, limit_ns } => advised(
                format!(
                    "{} of {} ops came due within {limit_ns}, the most the window may take",
                    count(*due_ops),
                    count(*wanted_ops),
                ),
                "allow it more (--for), or ask for fewer",
            ),
            Self::ClockStepped { step_ns, limit_ns } => advised(
                format!(
                    "the wall clock was moved by {step_ns} during the point (limit {limit_ns})"
                ),
                "let the clock settle (chrony, ntpd) and run the point again",
            ),
            // Did the generator measure the server, or itself?
            Self::GeneratorCpu { wanted_ratio, limit_ratio, busy_ratio, waiting_ratio, core } => {
                let [wanted, limit, busy, waiting] =
                    [wanted_ratio, limit_ratio, busy_ratio, waiting_ratio].map(|it| percent(*it));
                advised(
                    format!(
                        "generator limited: a worker asked for {wanted} of its core (limit \
                         {limit}; work up to {busy}, ready and kept waiting up to {waiting})"
                    ),
                    core,
                )
            }
            Self::GeneratorError { part_of, own_ns, of_ns, ratio, limit_ratio, core } => {
                let (part, limit) = (percent(*ratio), percent(*limit_ratio));
                advised(
                    match part_of {
                        PartOf::ResponseP50 => format!(
                            "the generator's own delays may be {part} of response p50 ({own_ns} \
                             of {of_ns}, limit {limit}): replies lay unread and ops left late"
                        ),
                        PartOf::ServerTime => format!(
                            "the generator's own delays were {part} of the time that the server \
                             took ({own_ns} an op beside {of_ns}, limit {limit}): clients of a \
                             closed load waited for replies that lay unread, and asked the server \
                             for less"
                        ),
                    },
                    core,
                )
            }
            Self::MissingEvidence { missing: Missing::WorkerHealth } => advised(
                "what the workers asked of their cores is not in the journal (their CPU time, or \
                 how long they waited for a core: the kernel's schedstat), so the generator's \
                 health is unknown",
                "run the point again on a kernel that reports it",
            ),
            Self::MissingEvidence { missing: Missing::Arrivals } => advised(
                "the interval logs do not say when replies arrived, so the generator's part of the \
                 response times is unknown",
                "run the point again",
            ),
            Self::MissingEvidence { missing: Missing::Profile } => advised(
                "the run's profile is not one of the suite's, so the window cannot be judged",
                "use full, standard or quick",
            ),
            Self::ShortWindow { window_ns, limit_ns, breaks } => format!(
                "the window was {window_ns}, too short to hold this against the run (limit \
                 {limit_ns}): {breaks}"
            )
            .into(),
            Self::OfAgent { agent, host, others, rule } => {
                let Text { cause, advice } = rule.words(bundle);
                let more = more_agents(*others);
                Text { cause: format!("agent {agent} on {host}{more}: {cause}"), advice }
            }
            Self::AgentClock { bound_ns, limit_ns, drift_ns } => {
                agent_clock_text(*bound_ns, *limit_ns, *drift_ns)
            }
            Self::SendLag { percentile, own_ns, limit_ns, core } => advised(
                format!(
                    "generator late: send lag {percentile} = {own_ns} (limit {limit_ns}), waits \
                     for a connection left out; the intervals of the figures are wider for it"
                ),
                core,
            ),
            Self::Connections { percentile, all_ns, own_ns, limit_ns } => advised(
                format!(
                    "ops waited for a free connection: send lag {percentile} = {all_ns} (limit \
                     {limit_ns}), of which the generator's own is {own_ns}; the wait counts as \
                     response time"
                ),
                "if your users would not wait, give it more connections (--set load.clients=N)",
            ),
            Self::Monitors { used_ratio, limit_ratio } => advised(
                format!(
                    "the monitors used {} of a core (limit {}), although they sample less often \
                     where that is expensive",
                    percent(*used_ratio),
                    percent(*limit_ratio),
                ),
                "watch fewer hosts and processes, or measure for longer",
            ),
            // Was the load that was asked for the load that was offered?
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
                    "target {target} {}",
                    uneven((*ops, "an equal part", *equal_ops), (*off_ratio, *limit_ratio))
                ),
                "make the number of clients a multiple of the targets, and see whether one of them \
                 is slower",
            ),
            Self::AgentShares { ops, part_ops, off_ratio, limit_ratio } => advised(
                uneven((*ops, "its part", *part_ops), (*off_ratio, *limit_ratio)),
                "make the clients a multiple of all workers, and see whether its host is slower",
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
            // What did the server do to the ops?
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
            Self::ConnectionsLost {
                before_reply_ops,
                within_reply_ops,
                due_ops,
                clients,
                silence,
                early,
            } => {
                let ops = [*before_reply_ops, *within_reply_ops, *due_ops];
                lost_connections_text(ops, *clients, *silence, early.as_ref())
            }
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
                    "{} requests that change something were sent again because their connection \
                     ended or their reply was lost; the server may have processed them twice",
                    count(*ops)
                ),
                "find out why replies are lost; the server's log says how many requests it processed",
            ),
            Self::Unkept { connections, done_ops, reconnected_ops } => {
                unkept_text(*connections, *done_ops, *reconnected_ops)
            }
            Self::Tokens { fault, requests, of_requests } => {
                tokens_text(*fault, *requests, *of_requests)
            }
            Self::TokensApart { server_per_s, answers_per_s, limit_ratio } => {
                tokens_apart_text(*server_per_s, *answers_per_s, *limit_ratio)
            }
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
            // What else went on at the generator's host?
            Self::LinkCapacity { used_mbit_per_s, limit_mbit_per_s } => advised(
                format!(
                    "{used_mbit_per_s:.0} Mbit/s is more than the links of this host carry \
                     ({limit_mbit_per_s:.0} Mbit/s)"
                ),
                "check the clock and which interface carried the load",
            ),
            Self::CoreTaken { core } => {
                advised(core.to_string(), "what it delayed is in the intervals of the figures")
            }
            Self::OtherWork { used_cores, cores } => advised(
                format!(
                    "other programs (and the kernel on its own account) used {used_cores:.1} of \
                     this host's {cores} cores"
                ),
                "their interference is included in the results: stop them and run again",
            ),
            Self::Stolen { ratio } => advised(
                format!(
                    "the hypervisor kept {} of the processors' time for other machines",
                    percent(*ratio),
                ),
                "what that delays is in the figures: run on a host of its own, or repeat the run \
                 and compare",
            ),
            // The whole run.
            Self::Incomplete { finished_points, planned_points } => advised(
                format!("{finished_points} of {planned_points} load points were finished"),
                format!("`plimsoll resume {bundle}` continues after the last"),
            ),
            Self::NotStarted => advised(
                "the journal does not say that a run began",
                "the bundle is empty or damaged",
            ),
            Self::Interrupted { how: Interruption::Stopped } => {
                advised("the run was interrupted", resume(bundle))
            }
            Self::Interrupted { how: Interruption::Killed } => {
                advised("the journal breaks off: the program was killed", resume(bundle))
            }
            Self::Aborted { cause } => advised(
                format!("the run could not continue: {cause}"),
                format!("mend that, then `plimsoll resume {bundle}`"),
            ),
            Self::DebugBuild => advised(
                "the program was built with debug assertions, its figures are not a measurement",
                "build with --release",
            ),
            Self::Resumed { times } => {
                let times = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
                advised(
                    format!("the run was resumed {times}"),
                    "its points were not measured in one go",
                )
            }
            Self::AgentLost { agent, host, cause, points } => {
                let again = made_again(*points);
                advised(
                    format!("agent {agent} on {host} was lost ({cause}); {again}"),
                    "`plimsoll agents check` tells how an agent is reached",
                )
            }
            Self::NothingCounts { because } => advised(
                format!(
                    "no load point counts ({})",
                    because.as_ref().map_or("see each point".to_owned(), ToString::to_string),
                ),
                "ask for less, or mend the server",
            ),
            Self::NearCap { cap_ms, points } => near_cap_text(*cap_ms, points),
            Self::NotRepeated { verified_ops_per_s, missed_ops_per_s } => advised(
                format!(
                    "the search held {} ops/s when it was verified, the ladder missed {}: the \
                     server does not do alike every time",
                    grouped(*verified_ops_per_s),
                    grouped(*missed_ops_per_s),
                ),
                "compare several runs (--repeat 3)",
            ),
            Self::NoCapacity { cause: Some(cause) } => cause.clone().into(),
            Self::NoCapacity { cause: None } => advised("the search has not ended", "run it again"),
            Self::Nonconformities { replies } => replies.sentence().unwrap_or_default().into(),
            Self::ForeignCurve => advised(
                "the curve was measured elsewhere: only what the file holds was checked, so judge \
                 it by its source",
                "",
            ),
            Self::CurvePoint { column } => advised(
                format!("{column} is 0, which nobody can have measured"),
                "mend the line or leave it out",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_is_explained_to_users() {
        let document = include_str!("../../../../docs/validity.md");
        let source = include_str!("../finding.rs");
        let names =
            source.lines().filter_map(|line| line.split_once(" => \"")?.1.strip_suffix("\","));
        let unexplained: Vec<_> =
            names.filter(|name| !document.contains(&format!("`{name}`"))).collect();
        assert!(unexplained.is_empty(), "{unexplained:?}");
    }
}
