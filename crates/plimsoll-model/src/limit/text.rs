//! The words of limits.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    DiskRate, EarlierService, Evidence, Limit, LimitFacts, LimitKind, LoadShape, NearlyFull,
    OtherPrograms, ServerCores,
};
use crate::units::{grouped, three_digits, whole_percent};

/// What is true of a limit that is named although its ceiling is not known.
const HAD_ROOM: &str = "while its processors and disks had room";

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())?;
        if let Some(behind) = &self.behind {
            write!(f, "; behind it {behind}")?;
        }
        f.write_str(if self.only_load { ", at this one load" } else { "" })
    }
}

impl Limit {
    /// What is said of it and of the limits beside it.
    pub fn sentence(&self) -> String {
        let all = std::iter::once(self).chain(&self.also).map(Self::to_string);
        let said: Vec<String> = all.filter(|text| !text.is_empty()).collect();
        said.join("; and ")
    }

    #[allow(clippy::too_many_lines, reason = "a table: one text for each kind of facts")]
    fn words(&self) -> String {
        match &self.facts {
            LimitFacts::Unsaid => String::new(),
            LimitFacts::Hypervisor { kept_ratio, cores } => format!(
                "the hypervisor: it kept {} of the time of the server's {}",
                whole_percent(*kept_ratio),
                cores_text(*cores),
            ),
            LimitFacts::Quota { used_cores, quota_cores, throttled_cores } => format!(
                "the CPU quota: the server used {} of the {} its control group is allowed, and \
                 was held back for {throttled_cores:.2} core-seconds a second",
                digits(*used_cores),
                cores_text(*quota_cores),
            ),
            LimitFacts::Cores { cores, busy_ratio, own_ratio, load } => {
                let own = own_ratio.map_or_else(String::new, |own| self.shares_text(own));
                let waited = match load {
                    LoadShape::Steady => "",
                    LoadShape::Bursts => ", and ops spent most of their time waiting",
                };
                let busy = whole_percent(*busy_ratio);
                match cores.count > 1.0 {
                    true => format!(
                        "the processors: the {} the server may use were {busy} busy{own}{waited}",
                        cores.place(),
                    ),
                    false => format!(
                        "one core of the server ({}, all it may use): {busy} busy{own}{waited}",
                        cores.place(),
                    ),
                }
            }
            LimitFacts::Thread { busy_ratio, cores, cores_busy_ratio } => format!(
                "one core: a thread of the server was busy for {} of the time, while the {} it \
                 may use were {} busy",
                whole_percent(*busy_ratio),
                cores_text(*cores),
                whole_percent(*cores_busy_ratio),
            ),
            LimitFacts::GroupRate { disk, rate, per_s, limit_per_s } => format!(
                "the disk {disk}: {per_s:.0} {} a second, of {limit_per_s:.0} that the server's \
                 control group is held to",
                match rate {
                    DiskRate::Reads => "reads",
                    DiskRate::Writes => "writes",
                    DiskRate::Read => "bytes read",
                    DiskRate::Written => "bytes written",
                },
            ),
            LimitFacts::BusyDisk { disk, busy_ratio, queued } => format!(
                "the disk {disk}: it was {} busy with {queued:.1} requests in its queue",
                whole_percent(*busy_ratio),
            ),
            LimitFacts::WaitedDisk { disk, stalled_ratio, busy_ratio } => format!(
                "the disk {disk}: threads waited for storage {} of the time, while the processors \
                 had room; its own queue was {} of the time busy",
                whole_percent(*stalled_ratio),
                whole_percent(*busy_ratio),
            ),
            LimitFacts::Memory { used_ratio, limit_bytes, pages_per_op, fills } => {
                let fills: String = fills.iter().map(|it| format!(", which fills {it}")).collect();
                format!(
                    "memory: the server's control group used {} of its {:.0} MiB, and \
                     {pages_per_op:.1} pages an op were read again that had no room{fills}",
                    whole_percent(*used_ratio),
                    limit_bytes / (1024.0 * 1024.0),
                )
            }
            LimitFacts::Link { interface, way, share_ratio } => format!(
                "the network: {interface} {} {} of what its link carries",
                way.as_str(),
                whole_percent(*share_ratio),
            ),
            LimitFacts::Unsent { waiting_bytes, interface, sent_bytes_per_s } => format!(
                "the network: {:.0} KiB that the server had written waited in its sockets, while \
                 it had processors left; {interface} sent {:.1} MB/s",
                waiting_bytes / 1024.0,
                sent_bytes_per_s / 1e6,
            ),
            LimitFacts::ServiceThreads { threads, busy, queued } => format!(
                "the service threads: {busy:.1} of {threads} were busy and {queued:.1} requests \
                 waited for one, while the server's processors and disks had room",
            ),
            LimitFacts::Batch { running, running_max, waiting } => format!(
                "the batch: {} of at most {} requests were running and {} waited for a place",
                three_digits(*running),
                three_digits(*running_max),
                three_digits(*waiting),
            ),
            LimitFacts::KvCache { used_ratio, waiting, preempted_per_s } => {
                let preempted = preempted_per_s
                    .filter(|rate| *rate > 0.0)
                    .map(|rate| format!(", and {} a second lost theirs", three_digits(rate)));
                format!(
                    "the KV cache: {} of it was in use and {} requests waited for room{}",
                    whole_percent(*used_ratio),
                    three_digits(*waiting),
                    preempted.unwrap_or_default(),
                )
            }
            LimitFacts::Gpu { gpu, busy_ratio, memory_busy_ratio } => {
                let memory = memory_busy_ratio
                    .map(|ratio| format!(", its memory for {} of the time", whole_percent(ratio)));
                format!(
                    "GPU {gpu}: it was busy for {} of the time{}",
                    whole_percent(*busy_ratio),
                    memory.unwrap_or_default(),
                )
            }
            LimitFacts::Lock { waiting, threads } => format!(
                "a lock in the server: about {waiting:.0} of its {threads:.0} threads waited for \
                 each other with an op to do, {HAD_ROOM}",
            ),
            LimitFacts::Unread { unread_bytes, not_accepted } => format!(
                "the server's threads or processes: requests lay unread in its sockets \
                 ({unread_bytes:.0} bytes, {not_accepted:.0} connections not accepted), {HAD_ROOM}",
            ),
            LimitFacts::CoresByTurns { cores, full_ratio } => format!(
                "by turns of less than a second {}, full in {} of the samples of 50 ms",
                cores.place(),
                whole_percent(*full_ratio),
            ),
            LimitFacts::StorageByTurns { disk, stalled_ratio } => format!(
                "{}, for which somebody waited in {}",
                disk.as_ref().map_or("storage".to_owned(), |disk| format!("the disk {disk}")),
                whole_percent(*stalled_ratio),
            ),
            LimitFacts::Clients { clients, service_ns, earlier_ns, earlier, most_ops_per_s } => {
                let when = match earlier {
                    EarlierService::LowLoad => "at low load",
                    EarlierService::FirstOps => "at the first ops",
                };
                format!(
                    "the clients: all {clients} were busy while the server answered as fast as \
                     {when} ({service_ns} an op, {earlier_ns} then); {clients} clients of \
                     {service_ns} an op carry no more than {} ops/s: add clients (--set \
                     load.clients=N) to see what the server can do",
                    grouped(most_ops_per_s.round()),
                )
            }
            LimitFacts::Generator => {
                "the generator: what the server can do beyond that is unknown".to_owned()
            }
            LimitFacts::Cap { cap_ms } => format!(
                "the suite's cap on response time: the mean service time is above {cap_ms} ms"
            ),
            LimitFacts::Followed => "not saturated: throughput follows the load".to_owned(),
            LimitFacts::NoneFull => {
                "not saturated: no resource was full, as far as one load tells".to_owned()
            }
            LimitFacts::NoneTooMuch => "no load that was tried was too much".to_owned(),
            LimitFacts::ServerFailed => {
                "the server failed ops; which resource is not known".to_owned()
            }
            _ => format!("saturated; {}", self.unknown_text()),
        }
    }

    /// Why no resource is named, of a load that is known to be saturated.
    pub fn unknown_text(&self) -> String {
        let because = match &self.facts {
            LimitFacts::NotWatched => "the server's host was not watched".to_owned(),
            LimitFacts::OtherPrograms => {
                let ratio = self.others.as_ref().map_or(0.0, |others| others.cores_ratio);
                let foremost = self.foremost_text();
                format!(
                    "other programs had {} of the server's cores{foremost}",
                    whole_percent(ratio)
                )
            }
            LimitFacts::NothingFull { nearest } => {
                let nearest =
                    nearest.map_or_else(String::new, |it| format!("; nearest to it {it}"));
                format!("none that was watched was full with a queue{nearest}")
            }
            LimitFacts::Swings { slow_ops_per_s, fast_ops_per_s } => format!(
                "within a second throughput swings between {} ops/s, in the slowest quarter of \
                 the time, and {}, in the fastest: two resources take turns or one pauses, which \
                 averages over the window do not show",
                grouped(slow_ops_per_s.round()),
                grouped(fast_ops_per_s.round()),
            ),
            _ => return self.to_string(),
        };
        format!("which resource is not known: {because}")
    }

    /// Whose work it was that a full core did.
    fn shares_text(&self, own_ratio: f64) -> String {
        let own_ratio = own_ratio.min(1.0);
        let own = format!(", {} of it with the server itself", whole_percent(own_ratio));
        let Some(others) = &self.others else { return own };
        let who = match others.foremost {
            Some(_) => "with other programs",
            None => "with other programs or the kernel",
        };
        format!("{own} and {} {who}{}", whole_percent(1.0 - own_ratio), self.foremost_text())
    }

    /// `, most of all NAME (process N)`; empty where no program is known.
    fn foremost_text(&self) -> String {
        match self.others.as_ref().and_then(|others| others.foremost.as_ref()) {
            Some(user) if user.own => ", most of all this program".to_owned(),
            Some(user) => format!(", most of all {} (process {})", user.name, user.pid),
            None => String::new(),
        }
    }
}

impl LimitFacts {
    /// Where the limit is; `None` where the kind says it all.
    pub fn place(&self) -> Option<String> {
        Some(match self {
            Self::Quota { quota_cores, .. } => cores_text(*quota_cores),
            Self::Cores { cores, .. } | Self::CoresByTurns { cores, .. } => cores.place(),
            Self::Thread { .. } => "one thread of the server".to_owned(),
            Self::GroupRate { disk, .. }
            | Self::BusyDisk { disk, .. }
            | Self::WaitedDisk { disk, .. } => disk.clone(),
            Self::StorageByTurns { disk, .. } => disk.clone()?,
            Self::Link { interface, .. } | Self::Unsent { interface, .. } => {
                interface.rsplit(':').next().unwrap_or(interface).to_owned()
            }
            Self::ServiceThreads { .. } => "service threads".to_owned(),
            Self::Gpu { gpu, .. } => format!("GPU {gpu}"),
            Self::Unread { .. } => "threads or processes of the server".to_owned(),
            _ => return None,
        })
    }
}

impl ServerCores {
    /// `4 cores`, `core 1`; `one core` where its number is not known.
    fn place(self) -> String {
        match self.number {
            _ if self.count > 1.0 => cores_text(self.count),
            Some(number) => format!("core {number}"),
            None => "one core".to_owned(),
        }
    }
}

impl fmt::Display for NearlyFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.cores.place();
        match self.cores.count > 1.0 {
            true => write!(f, "the {place} it may use")?,
            false => f.write_str(&place)?,
        }
        write!(
            f,
            ": {} busy, of {} that count as full, with {} threads waiting on average",
            whole_percent(self.busy_ratio),
            whole_percent(self.full_ratio),
            three_digits(self.waiting_threads),
        )
    }
}

fn cores_text(cores: f64) -> String {
    match cores {
        1.0 => "1 core".to_owned(),
        _ => format!("{} cores", digits(cores)),
    }
}

fn digits(value: f64) -> String {
    match value.fract() {
        0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// A limit as it is in `result.json`. Results of older programs have no facts.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitJson {
    kind: LimitKind,
    place: Option<String>,
    text: String,
    #[serde(default)]
    facts: LimitFacts,
    evidence: Vec<Evidence>,
    also: Vec<Limit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    behind: Option<Box<Limit>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    others: Option<OtherPrograms>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    only_load: bool,
}

impl From<Limit> for LimitJson {
    fn from(limit: Limit) -> Self {
        let text = limit.to_string();
        let Limit { kind, place, facts, evidence, also, behind, others, only_load } = limit;
        Self { kind, place, text, facts, evidence, also, behind, others, only_load }
    }
}

impl From<LimitJson> for Limit {
    fn from(json: LimitJson) -> Self {
        let LimitJson { kind, place, facts, evidence, also, behind, others, only_load, .. } = json;
        Self { kind, place, facts, evidence, also, behind, others, only_load }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_model_servers_are_said_with_their_figures() {
        let text = |facts| Limit::new(facts, Vec::new()).to_string();
        let batch = LimitFacts::Batch { running: 63.9, running_max: 64.0, waiting: 12.04 };
        let said =
            "the batch: 63.9 of at most 64.0 requests were running and 12.0 waited for a place";
        assert_eq!(text(batch), said);
        let cache = |preempted_per_s| LimitFacts::KvCache {
            used_ratio: 0.98,
            waiting: 3.0,
            preempted_per_s,
        };
        let said = "the KV cache: 98 % of it was in use and 3.00 requests waited for room";
        assert_eq!(text(cache(Some(0.0))), said);
        assert_eq!(text(cache(Some(2.5))), format!("{said}, and 2.50 a second lost theirs"));
        let gpu =
            LimitFacts::Gpu { gpu: "1".to_owned(), busy_ratio: 0.97, memory_busy_ratio: None };
        assert_eq!(text(gpu), "GPU 1: it was busy for 97 % of the time");
    }

    #[test]
    fn a_limit_in_json_has_its_text_and_facts_and_survives_and_an_older_one_is_read() {
        let cores = ServerCores { count: 1.0, number: Some(1) };
        let facts = LimitFacts::CoresByTurns { cores, full_ratio: 0.4 };
        let limit = Limit { only_load: true, ..Limit::new(facts, Vec::new()) };
        let mut json = serde_json::to_value(&limit).unwrap();
        assert_eq!((json["kind"].as_str(), json["place"].as_str()), (Some("core"), Some("core 1")));
        assert_eq!(json["facts"]["full_ratio"], 0.4);
        let text = "by turns of less than a second core 1, full in 40 % of the samples of 50 ms, \
                    at this one load";
        assert_eq!(json["text"], text);
        assert_eq!(serde_json::from_value::<Limit>(json.clone()).unwrap(), limit);
        json.as_object_mut().unwrap().remove("facts");
        let old = serde_json::from_value::<Limit>(json).unwrap();
        assert_eq!((old.kind, old.facts), (LimitKind::Core, LimitFacts::Unsaid));
    }
}
