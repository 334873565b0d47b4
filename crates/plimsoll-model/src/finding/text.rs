//! The words of findings: cause, measured value, limit, remedy.

mod load;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{
    CountRecord, Finding, Interruption, Missing, PartOf, Progress, Rule, ShortPhase, WorkerCore,
};
use crate::core_user::{CoreUser, CoreUserKind};
use crate::units::{grouped, percent};

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
        let Text { cause, advice } = self.words();
        f.write_str(&cause)?;
        if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
    }
}

impl Rule {
    /// The text without what to do about it.
    pub fn cause(&self) -> String {
        self.words().cause
    }

    fn words(&self) -> Text {
        self.record_text()
            .or_else(|| self.generator_text())
            .or_else(|| self.load_text())
            .or_else(|| self.server_text())
            .or_else(|| self.host_text())
            .or_else(|| self.run_text())
            .unwrap_or_else(|| self.name().to_owned().into())
    }

    /// Is what was written down whole and right?
    #[allow(clippy::too_many_lines, reason = "a table: one text for each rule")]
    fn record_text(&self) -> Option<Text> {
        Some(match self {
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
                let (recorded, totals) = (count(*recorded_ops), count(*total_ops));
                advised(
                    match record {
                        CountRecord::IntervalLogs => format!(
                            "the interval logs hold {recorded} ops and the totals {totals}, {} of \
                             them without a reply",
                            count(*without_reply_ops),
                        ),
                        CountRecord::Seconds => format!(
                            "the seconds of the window hold {recorded} ops done and the totals \
                             {totals}"
                        ),
                    },
                    "the bundle is damaged or this is a bug: run the point again and report it",
                )
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
            _ => return None,
        })
    }

    /// Did the generator measure the server, or itself?
    #[allow(clippy::too_many_lines, reason = "a table: one text for each rule")]
    fn generator_text(&self) -> Option<Text> {
        Some(match self {
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
            _ => return None,
        })
    }

    /// What else went on at the generator's host.
    fn host_text(&self) -> Option<Text> {
        Some(match self {
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
            _ => return None,
        })
    }

    #[allow(clippy::too_many_lines, reason = "a table: one text for each rule")]
    fn run_text(&self) -> Option<Text> {
        const CONTINUE: &str = "`plimsoll resume DIR` continues the run";
        Some(match self {
            Self::Incomplete { finished_points, planned_points } => advised(
                format!("{finished_points} of {planned_points} load points were finished"),
                "`plimsoll resume DIR` continues after the last",
            ),
            Self::NotStarted => advised(
                "the journal does not say that a run began",
                "the bundle is empty or damaged",
            ),
            Self::Interrupted { how: Interruption::Stopped } => {
                advised("the run was interrupted", CONTINUE)
            }
            Self::Interrupted { how: Interruption::Killed } => {
                advised("the journal breaks off: the program was killed", CONTINUE)
            }
            Self::Aborted { cause } => advised(
                format!("the run could not continue: {cause}"),
                "mend that, then `plimsoll resume DIR`",
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
            Self::NothingCounts { because } => advised(
                format!(
                    "no load point counts ({})",
                    because.as_ref().map_or("see each point".to_owned(), ToString::to_string),
                ),
                "ask for less, or mend the server",
            ),
            Self::NearCap { cap_ms, points } => {
                let near = points.iter().map(|(mean, point)| format!("{mean} at point {point}"));
                advised(
                    format!(
                        "the cap of {cap_ms} ms lies within the uncertainty interval of the mean \
                         service time ({}): another run may count these otherwise and have \
                         another peak",
                        near.collect::<Vec<_>>().join(", "),
                    ),
                    "measure longer, or compare several runs (--repeat 3)",
                )
            }
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
            _ => return None,
        })
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

/// A finding as it stands in `result.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FindingJson<R> {
    rule: String,
    text: String,
    facts: R,
    point: Option<u32>,
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { rule, point } = self;
        let (name, text) = (rule.name().to_owned(), rule.to_string());
        FindingJson { rule: name, text, facts: rule, point: *point }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Finding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FindingJson { facts, point, .. } = FindingJson::<Rule>::deserialize(deserializer)?;
        Ok(Self { rule: facts, point })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn a_finding_in_json_has_the_name_the_text_and_the_facts_and_survives() {
        let rule = Rule::Connections {
            percentile: "p99".into(),
            all_ns: Nanos::from_millis(4),
            own_ns: Nanos::from_millis(1),
            limit_ns: Nanos::from_millis(2),
        };
        let finding = rule.at(3);
        let json = serde_json::to_value(&finding).unwrap();
        assert_eq!(json["rule"], "connections");
        assert_eq!(json["facts"]["all_ns"], 4_000_000);
        assert_eq!(json["point"], 3);
        assert!(json["text"].as_str().unwrap().starts_with("ops waited for a free connection"));
        assert_eq!(serde_json::from_value::<Finding>(json).unwrap(), finding);
    }

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
