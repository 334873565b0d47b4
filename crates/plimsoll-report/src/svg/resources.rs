//! Resources over load: low panels on the axis of load, one drawing for each subject.

use std::collections::BTreeSet;

use plimsoll_model::result::{PointResult, RunResult};

use super::Frame;
use super::load::{base, dot};
use super::stacked::{Guide, Panel, Series, Stack, draw};
use crate::text::ResourceUnit;
use crate::view::{THIS_HOST, find, key_of, key_words};

/// Low enough to stand beside others of their kind.
const PANEL_HEIGHT: f64 = 58.0;
/// What a resource is held to is drawn as a line up to this multiple of its use, and said in the
/// title beyond: it would press the use flat.
const GUIDE_SHOWN_MAX: f64 = 4.0;
/// One point has no course over load.
const POINTS_MIN: usize = 2;
/// Classes of the lines of a panel.
const CLASSES: [&str; 3] = ["s1", "s2", "s3"];

/// Name of a resource, with a star for the key of its subject, and the word beside its line.
type Line = (&'static str, &'static str);

/// A panel before anybody looked whether there is something to draw.
struct Plan {
    title: &'static str,
    lines: &'static [Line],
    /// What they are held to.
    limits: &'static [Line],
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
    Plan {
        title: "Used",
        lines: &[
            ("process.*.cpu", "used"),
            ("process.*.busiest_thread", "busiest thread"),
            ("process.*.cores_busy", "all programs"),
        ],
        limits: &[("cgroup.*.quota", "quota"), ("process.*.cores_allowed", "allowed")],
    },
    Plan {
        title: "Threads ready to run, waiting",
        lines: &[
            ("process.*.run_delay", "for core"),
            ("cgroup.*.throttled", "for quota"),
            ("process.*.cores_steal", "stolen"),
        ],
        limits: &[],
    },
];
const MEMORY: &[Plan] = &[
    Plan {
        title: "In use",
        lines: &[("process.*.rss", "resident"), ("cgroup.*.memory", "group")],
        limits: &[("cgroup.*.memory_max", "allowed")],
    },
    Plan {
        title: "Signs of shortage",
        lines: &[
            ("cgroup.*.refaults", "refaults"),
            ("cgroup.*.memory_full", "full"),
            ("cgroup.*.memory_stalls", "full"),
        ],
        limits: &[],
    },
];
const QUEUES: &[Plan] = &[
    Plan {
        title: "On its sockets",
        lines: &[("socket.*.send_queue", "to send"), ("socket.*.receive_queue", "to read")],
        limits: &[],
    },
    Plan {
        title: "Connections not yet accepted",
        lines: &[("socket.*.accept_queue", "waiting")],
        limits: &[],
    },
    Plan {
        title: "Threads that wait",
        lines: &[
            ("process.*.threads_waiting_for_disk", "for disk"),
            ("process.*.threads_waiting_for_lock", "for lock"),
        ],
        limits: &[],
    },
    Plan {
        title: "Threads that wait",
        lines: &[
            ("process.*.waiting_for_disk", "for disk"),
            ("process.*.waiting_for_lock", "for lock"),
        ],
        limits: &[],
    },
];
const THREADS: &[Plan] = &[Plan {
    title: "Threads and requests",
    lines: &[("server.threads_busy_mean", "busy"), ("server.queue_mean", "waiting")],
    limits: &[("server.threads", "threads")],
}];
const MODEL: &[Plan] = &[
    Plan {
        title: "Requests",
        lines: &[("model.running", "in the batch"), ("model.waiting", "waiting")],
        limits: &[],
    },
    Plan { title: "KV cache in use", lines: &[("model.kv_cache", "in use")], limits: &[] },
    Plan {
        title: "Tokens, by its own account",
        lines: &[("model.prompt_tokens", "prompts"), ("model.output_tokens", "output")],
        limits: &[],
    },
    Plan {
        title: "Requests that lost their KV cache",
        lines: &[("model.preemptions", "lost")],
        limits: &[],
    },
];
const GPU: &[Plan] = &[
    Plan {
        title: "Busy",
        lines: &[("gpu.*.busy", "busy"), ("gpu.*.memory_busy", "memory")],
        limits: &[],
    },
    Plan {
        title: "Memory",
        lines: &[("gpu.*.memory_used", "used")],
        limits: &[("gpu.*.memory_total", "in all")],
    },
];
const DISK: &[Plan] = &[
    Plan { title: "Time with a request", lines: &[("disk.*.busy", "busy")], limits: &[] },
    Plan { title: "Requests in its queue", lines: &[("disk.*.queue_mean", "queue")], limits: &[] },
    Plan {
        title: "Transfers",
        lines: &[("disk.*.reads", "reads"), ("disk.*.writes", "writes")],
        limits: &[
            ("storage.server:*.reads_max", "reads allowed"),
            ("storage.server:*.writes_max", "writes allowed"),
        ],
    },
    Plan {
        title: "Data",
        lines: &[("disk.*.read", "read"), ("disk.*.written", "written")],
        limits: &[
            ("storage.server:*.read_max", "read allowed"),
            ("storage.server:*.written_max", "written allowed"),
        ],
    },
    Plan {
        title: "Time of a transfer",
        lines: &[("disk.*.per_read", "read"), ("disk.*.per_write", "write")],
        limits: &[],
    },
];
const NETWORK: &[Plan] = &[
    Plan {
        title: "Share of the link",
        lines: &[("network.*.received_share", "in"), ("network.*.sent_share", "out")],
        limits: &[],
    },
    Plan {
        title: "Data",
        lines: &[("network.*.received", "in"), ("network.*.sent", "out")],
        limits: &[],
    },
];
const HOST: &[Plan] = &[
    Plan {
        title: "Processors",
        lines: &[
            ("host.cpu_busy", "busy"),
            ("host.cpu_busiest", "busiest"),
            ("host.cpu_steal", "stolen"),
        ],
        limits: &[],
    },
    Plan {
        title: "Time a thread waited",
        lines: &[
            ("host.pressure_cpu_some", "for core"),
            ("host.pressure_io_some", "for disk"),
            ("host.pressure_memory_some", "memory"),
        ],
        limits: &[],
    },
    Plan {
        title: "TCP segments sent again",
        lines: &[("host.tcp_retransmits", "again")],
        limits: &[],
    },
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
                let mut title = subject.title.replacen('*', &key_words(subject.table, key), 1);
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
pub(crate) fn resource_chart(frame: Frame<'_>, run: &RunResult, topic: Topic) -> String {
    let desc = "Means over the window of each load point; dashed lines are limits. The table of \
                resources holds the same figures.";
    let Topic { title, panels } = topic;
    draw(
        frame,
        &Stack { title: format!("{title} over load"), panels, ..base(run, desc.to_owned()) },
    )
}

/// In the order of their names; one empty key for what has none.
fn keys<'r>(run: &'r RunResult, table: &str, source: Option<&str>) -> BTreeSet<&'r str> {
    if table.is_empty() {
        return BTreeSet::from([""]);
    }
    let all = run.points.iter().flat_map(|p| &p.resources);
    let seen = all.filter(|r| r.source.as_deref() == source);
    seen.filter_map(|r| key_of(&r.name, table)).filter(|key| *key != NO_SERVER).collect()
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
    let seen = lines
        .iter()
        .flat_map(|(_, name)| run.points.iter().filter_map(|p| find(p, (name.as_str(), source))));
    let unit_name = seen.clone().next()?.unit.as_str();
    let largest = seen.map(|r| r.mean).filter(|mean| mean.is_finite()).fold(0.0, f64::max);
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
        top: unit.of(top),
        series: series.collect(),
        guides: near.iter().map(|(word, limit)| Guide::Level(unit.of(*limit), word)).collect(),
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
        let seen = find(p, key)?;
        let text = |_| {
            let [mean, max] = [seen.mean, seen.max].map(|value| unit.named_text(value));
            format!("{mean}, highest sample {max}")
        };
        dot(p, Some(p.requested), Some(unit.of(seen.mean)), text)
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
