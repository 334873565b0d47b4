//! Resources over load: low panels on the axis of load, one drawing for each subject.

use std::collections::BTreeSet;

use plimsoll_model::result::{PointResult, RunResult};

use super::Frame;
use super::load::{chart_by_load, dot};
use super::stacked::{Guide, Panel, Series};
use crate::text::ResourceUnit;
use crate::view::{THIS_HOST, find, key_of, key_text};

/// Low enough to fit with others of their kind.
const PANEL_HEIGHT: f64 = 58.0;
/// A resource's limit is drawn as a line up to this multiple of its use. A higher one is in the
/// title instead, since it would flatten the use.
const GUIDE_SHOWN_MAX: f64 = 4.0;
/// One point makes no curve over load.
const POINTS_MIN: usize = 2;
/// Classes of the lines of a panel.
const CLASSES: [&str; 3] = ["s1", "s2", "s3"];

/// Name of a resource, with a star for the key of its subject, and the label of its line.
type Line = (&'static str, &'static str);

/// A panel before anybody looked whether there is something to draw.
struct Plan {
    title: &'static str,
    lines: &'static [Line],
    /// Their limits.
    limits: &'static [Line],
}

impl Plan {
    const fn new(title: &'static str) -> Self {
        Self { title, lines: &[], limits: &[] }
    }

    const fn lines(self, lines: &'static [Line]) -> Self {
        Self { lines, ..self }
    }

    const fn limited_by(self, limits: &'static [Line]) -> Self {
        Self { limits, ..self }
    }
}

/// Plans of one subject, for each of its keys.
struct Subject {
    title: &'static str,
    /// Where the keys come from; empty for what there is once.
    table: &'static str,
    plans: &'static [Plan],
}

/// All that is drawn, in this order. A panel has three lines at most.
const SUBJECTS: [Subject; 9] = [
    Subject { title: "Processors of the *", table: "process", plans: PROCESSORS },
    Subject { title: "Memory of the *", table: "process", plans: MEMORY },
    Subject { title: "Queues of the *", table: "process", plans: QUEUES },
    Subject { title: "Service threads", table: "", plans: THREADS },
    Subject { title: "Model server", table: "", plans: MODEL },
    Subject { title: "GPU *", table: "gpu", plans: GPU },
    Subject { title: "Disk *", table: "disk", plans: DISK },
    Subject { title: "Network *", table: "network", plans: NETWORK },
    Subject { title: "The whole host", table: "", plans: HOST },
];
/// The generator has its own section.
const NO_SERVER: &str = "generator";

const PROCESSORS: &[Plan] = &[
    Plan::new("Used")
        .lines(&[
            ("process.*.cpu", "used"),
            ("process.*.busiest_thread", "busiest thread"),
            ("process.*.cores_busy", "all programs"),
        ])
        .limited_by(&[("cgroup.*.quota", "quota"), ("process.*.cores_allowed", "allowed")]),
    Plan::new("Threads ready to run, waiting").lines(&[
        ("process.*.run_delay", "for core"),
        ("cgroup.*.throttled", "for quota"),
        ("process.*.cores_steal", "stolen"),
    ]),
];
const MEMORY: &[Plan] = &[
    Plan::new("In use")
        .limited_by(&[("cgroup.*.memory_max", "allowed")])
        .lines(&[("process.*.rss", "resident"), ("cgroup.*.memory", "group")]),
    Plan::new("Signs of shortage").lines(&[
        ("cgroup.*.refaults", "refaults"),
        ("cgroup.*.memory_full", "full"),
        ("cgroup.*.memory_stalls", "full"),
    ]),
];
const QUEUES: &[Plan] = &[
    Plan::new("On its sockets")
        .lines(&[("socket.*.send_queue", "to send"), ("socket.*.receive_queue", "to read")]),
    Plan::new("Connections not yet accepted").lines(&[("socket.*.accept_queue", "waiting")]),
    Plan::new("Threads that wait").lines(&[
        ("process.*.threads_waiting_for_disk", "for disk"),
        ("process.*.threads_waiting_for_lock", "for lock"),
    ]),
    Plan::new("Threads that wait").lines(&[
        ("process.*.waiting_for_disk", "for disk"),
        ("process.*.waiting_for_lock", "for lock"),
    ]),
];
const THREADS: &[Plan] = &[Plan::new("Threads and requests")
    .lines(&[("server.threads_busy_mean", "busy"), ("server.queue_mean", "waiting")])
    .limited_by(&[("server.threads", "threads")])];
const MODEL: &[Plan] = &[
    Plan::new("Requests").lines(&[("model.running", "in the batch"), ("model.waiting", "waiting")]),
    Plan::new("KV cache in use").lines(&[("model.kv_cache", "in use")]),
    Plan::new("Tokens, by its own account")
        .lines(&[("model.prompt_tokens", "prompts"), ("model.output_tokens", "output")]),
    Plan::new("Requests that lost their KV cache").lines(&[("model.preemptions", "lost")]),
];
const GPU: &[Plan] = &[
    Plan::new("Busy").lines(&[("gpu.*.busy", "busy"), ("gpu.*.memory_busy", "memory")]),
    Plan::new("Memory")
        .limited_by(&[("gpu.*.memory_total", "in all")])
        .lines(&[("gpu.*.memory_used", "used")]),
];
const DISK: &[Plan] = &[
    Plan::new("Time with a request").lines(&[("disk.*.busy", "busy")]),
    Plan::new("Requests in its queue").lines(&[("disk.*.queue_mean", "queue")]),
    Plan::new("Transfers")
        .lines(&[("disk.*.reads", "reads"), ("disk.*.writes", "writes")])
        .limited_by(&[
            ("storage.server:*.reads_max", "reads allowed"),
            ("storage.server:*.writes_max", "writes allowed"),
        ]),
    Plan::new("Data").lines(&[("disk.*.read", "read"), ("disk.*.written", "written")]).limited_by(
        &[
            ("storage.server:*.read_max", "read allowed"),
            ("storage.server:*.written_max", "written allowed"),
        ],
    ),
    Plan::new("Time of a transfer")
        .lines(&[("disk.*.per_read", "read"), ("disk.*.per_write", "write")]),
];
const NETWORK: &[Plan] = &[
    Plan::new("Share of the link")
        .lines(&[("network.*.received_share", "in"), ("network.*.sent_share", "out")]),
    Plan::new("Data").lines(&[("network.*.received", "in"), ("network.*.sent", "out")]),
];
const HOST: &[Plan] = &[
    Plan::new("Processors").lines(&[
        ("host.cpu_busy", "busy"),
        ("host.cpu_busiest", "busiest"),
        ("host.cpu_steal", "stolen"),
    ]),
    Plan::new("Time a thread waited").lines(&[
        ("host.pressure_cpu_some", "for core"),
        ("host.pressure_io_some", "for disk"),
        ("host.pressure_memory_some", "memory"),
    ]),
    Plan::new("TCP segments sent again").lines(&[("host.tcp_retransmits", "again")]),
];

/// What is drawn of one subject.
pub(crate) struct Topic {
    pub(crate) title: String,
    panels: Vec<Panel>,
}

/// All subjects of which something was seen, this host's before those of others.
pub(crate) fn resource_topics(run: &RunResult) -> Vec<Topic> {
    if run.points.len() < POINTS_MIN {
        return Vec::new();
    }
    let all = || run.points.iter().flat_map(|p| &p.resources);
    let sources: BTreeSet<Option<&str>> = all().map(|r| r.source.as_deref()).collect();
    let mut topics = Vec::new();
    for source in &sources {
        for subject in &SUBJECTS {
            for key in keys(run, subject.table, *source) {
                let panels: Vec<Panel> =
                    subject.plans.iter().filter_map(|p| panel(run, p, (key, *source))).collect();
                let mut title = subject.title.replacen('*', &key_text(subject.table, key), 1);
                if sources.len() > 1 || source.is_some() {
                    title = format!("{title} · {}", source.unwrap_or(THIS_HOST));
                }
                topics.extend((!panels.is_empty()).then_some(Topic { title, panels }));
            }
        }
    }
    topics
}

/// Its panels on one axis of load.
pub(crate) fn resource_chart(frame: Frame<'_>, run: &RunResult, topic: Topic) -> Option<String> {
    let desc = "Means over the window of each load point; dashed lines are limits. The table of \
                resources holds the same figures.";
    chart_by_load(frame, run, &format!("{} over load", topic.title), desc, topic.panels)
}

/// In the order of their names; one empty key for what has none.
fn keys<'r>(run: &'r RunResult, table: &str, source: Option<&str>) -> BTreeSet<&'r str> {
    if table.is_empty() {
        return BTreeSet::from([""]);
    }
    let all = run.points.iter().flat_map(|p| &p.resources);
    let of_source = all.filter(|r| r.source.as_deref() == source);
    of_source.filter_map(|r| key_of(&r.name, table)).filter(|key| *key != NO_SERVER).collect()
}

/// Nothing where all was zero, or nobody looked.
fn panel(run: &RunResult, plan: &Plan, (key, source): (&str, Option<&str>)) -> Option<Panel> {
    let name = |line: &Line| line.0.replacen('*', key, 1);
    let lines: Vec<_> = plan
        .lines
        .iter()
        .map(|line| (line.1, name(line)))
        .filter(|(_, name)| run.points.iter().any(|p| mean(p, name, source) > Some(0.0)))
        .collect();
    let uses = lines
        .iter()
        .flat_map(|(_, name)| run.points.iter().filter_map(|p| find(p, (name.as_str(), source))));
    let unit_name = uses.clone().next()?.unit.as_str();
    let largest = uses.map(|r| r.mean).filter(|mean| mean.is_finite()).fold(0.0, f64::max);
    let (near, far): (Vec<_>, Vec<_>) = plan
        .limits
        .iter()
        .filter_map(|line| {
            let limits = run.points.iter().filter_map(|p| mean(p, &name(line), source));
            Some((line.1, limits.filter(|limit| *limit > 0.0).reduce(f64::min)?))
        })
        .partition(|(_, limit)| *limit <= largest * GUIDE_SHOWN_MAX);
    let top = near.iter().map(|(_, limit)| *limit).fold(largest, f64::max);
    let unit = ResourceUnit::for_largest(unit_name, top);
    let series = lines
        .iter()
        .zip(CLASSES)
        .map(|((label, name), class)| series(run, (name.as_str(), source), (*label, class), &unit));
    Some(Panel {
        title: title(plan, &unit, &far),
        height: PANEL_HEIGHT,
        top: unit.convert(top),
        series: series.collect(),
        guides: near.iter().map(|(word, limit)| Guide::Level(unit.convert(*limit), word)).collect(),
        ..Panel::default()
    })
}

fn mean(point: &PointResult, name: &str, source: Option<&str>) -> Option<f64> {
    find(point, (name, source)).map(|r| r.mean).filter(|mean| mean.is_finite())
}

fn title(plan: &Plan, unit: &ResourceUnit, far: &[(&str, f64)]) -> String {
    let unit_name = match unit.name.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    let far: Vec<_> =
        far.iter().map(|(word, limit)| format!("{word} {}", unit.text(*limit))).collect();
    match far.is_empty() {
        true => format!("{}{unit_name}", plan.title),
        false => format!("{}{unit_name} ({})", plan.title, far.join(", ")),
    }
}

fn series(
    run: &RunResult,
    key: (&str, Option<&str>),
    (label, class): (&str, &'static str),
    unit: &ResourceUnit,
) -> Series {
    let dots = run.points.iter().filter_map(|p| {
        let resource = find(p, key)?;
        let text = |_| {
            let [mean, max] = [resource.mean, resource.max].map(|value| unit.named_text(value));
            format!("{mean}, highest sample {max}")
        };
        dot(p, Some(p.requested), Some(unit.convert(resource.mean)), text)
    });
    Series { class, label: label.to_owned(), dots: dots.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_panel_has_more_lines_than_there_are_classes() {
        for plan in SUBJECTS.iter().flat_map(|subject| subject.plans) {
            assert!(plan.lines.len() <= CLASSES.len(), "{}", plan.title);
        }
    }
}
