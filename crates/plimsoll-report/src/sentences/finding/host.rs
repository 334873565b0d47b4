//! What else went on at the generator's host?

use plimsoll_model::consumers::{CoreUser, CoreUserKind};
use plimsoll_model::finding::{Rule, WorkerCore};
use plimsoll_model::units::percent;

use super::{Text, advised};

pub(super) fn text(rule: &Rule) -> Option<Text> {
    Some(match rule {
        Rule::LinkCapacity { used_mbit_per_s, limit_mbit_per_s } => Text::from(format!(
            "{used_mbit_per_s:.0} Mbit/s is more than the links of this host carry \
             ({limit_mbit_per_s:.0} Mbit/s)"
        ))
        .advise("check the clock and which interface carried the load"),
        Rule::CoreTaken { core } => {
            advised(worker_core(core), "what it delayed is in the intervals of the figures")
        }
        Rule::OtherWork { used_cores, cores } => Text::from(format!(
            "other programs (and the kernel on its own account) used {used_cores:.1} of this \
             host's {cores} cores"
        ))
        .advise("their interference is included in the results: stop them and run again"),
        Rule::Stolen { ratio } => Text::from(format!(
            "the hypervisor kept {} of the processors' time for other machines",
            percent(*ratio),
        ))
        .advise(
            "what that delays is in the figures: run on a host of its own, or repeat the run and \
             compare",
        ),
        _ => return None,
    })
}

/// Who had the core, and what can be done about it.
pub(in crate::sentences) fn worker_core(core: &WorkerCore) -> String {
    match core {
        WorkerCore::Taken { user, ratio } => taken_core(user, *ratio),
        WorkerCore::TakenByUnknown { ratio } => format!(
            "other programs had a worker's core for {} of the time: end them or keep them off it",
            percent(*ratio)
        ),
        WorkerCore::Stolen { ratio } => format!(
            "the hypervisor kept {} of the processors' time: measure on a host that has its own",
            percent(*ratio)
        ),
        WorkerCore::Paused { ratio, longest_ns } => format!(
            "the worker's core was paused below the system for {} of the time, {longest_ns} at the \
             longest, as a hypervisor does: measure on a host of your own",
            percent(*ratio)
        ),
        WorkerCore::Slept => {
            "the worker had its core and was not busy: it woke late; use --pacing \
             spin, or a host that sleeps less deeply"
                .to_owned()
        }
        WorkerCore::UsedUp => {
            "add a worker or a core, raise its CPU quota, or lower the load".to_owned()
        }
    }
}

fn taken_core(user: &CoreUser, ratio: f64) -> String {
    let CoreUser { name, pid, .. } = user;
    let had = format!("had a worker's core for {} of the time", percent(ratio));
    match user.kind() {
        CoreUserKind::Own => format!("other threads of this program {had}: give it another core"),
        CoreUserKind::Server => format!(
            "the server itself ({name}, process {pid}) {had}: give them different cores (taskset) \
             or hosts, or lower the load"
        ),
        CoreUserKind::Kernel => format!(
            "{name}, a thread of the kernel, {had}. It cannot be ended. Move interrupts to another \
             core (/proc/irq/*/smp_affinity, irqbalance), or start Plimsoll on other cores \
             (taskset)"
        ),
        CoreUserKind::Other => {
            format!("{name} (process {pid}) {had}: end it or keep it off that core")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "core_taken", "core": {"taken": {"user": {"name": "plimsoll", "pid": 1,
               "cpu_ns": 5, "own": true}, "ratio": 0.3}}}"#,
            "other threads of this program had a worker's core for 30 % of the time: give it \
             another core; what it delayed is in the intervals of the figures",
        ),
        (
            r#"{"kind": "core_taken", "core": {"taken": {"user": {"name": "nginx", "pid": 7,
               "cpu_ns": 5, "own": false, "server": true}, "ratio": 0.3}}}"#,
            "the server itself (nginx, process 7) had a worker's core for 30 % of the time: give \
             them different cores (taskset) or hosts, or lower the load; what it delayed is in the \
             intervals of the figures",
        ),
        (
            r#"{"kind": "core_taken", "core": {"taken": {"user": {"name": "ksoftirqd/1", "pid": 9,
               "cpu_ns": 5, "own": false, "kernel": true}, "ratio": 0.3}}}"#,
            "ksoftirqd/1, a thread of the kernel, had a worker's core for 30 % of the time. It \
             cannot be ended. Move interrupts to another core (/proc/irq/*/smp_affinity, \
             irqbalance), or start Plimsoll on other cores (taskset); what it delayed is in the \
             intervals of the figures",
        ),
        (
            r#"{"kind": "core_taken", "core": {"taken": {"user": {"name": "cc1", "pid": 8,
               "cpu_ns": 5, "own": false}, "ratio": 0.3}}}"#,
            "cc1 (process 8) had a worker's core for 30 % of the time: end it or keep it off that \
             core; what it delayed is in the intervals of the figures",
        ),
        (
            r#"{"kind": "core_taken", "core": {"paused": {"ratio": 0.3, "longest_ns": 31000000}}}"#,
            "the worker's core was paused below the system for 30 % of the time, 31.0 ms at the \
             longest, as a hypervisor does: measure on a host of your own; what it delayed is in \
             the intervals of the figures",
        ),
        (
            r#"{"kind": "link_capacity", "used_mbit_per_s": 12000.0, "limit_mbit_per_s": 10000.0}"#,
            "12000 Mbit/s is more than the links of this host carry (10000 Mbit/s); check the \
             clock and which interface carried the load",
        ),
        (
            r#"{"kind": "other_work", "used_cores": 1.7, "cores": 4}"#,
            "other programs (and the kernel on its own account) used 1.7 of this host's 4 cores; \
             their interference is included in the results: stop them and run again",
        ),
        (
            r#"{"kind": "stolen", "ratio": 0.04}"#,
            "the hypervisor kept 4 % of the processors' time for other machines; what that delays \
             is in the figures: run on a host of its own, or repeat the run and compare",
        ),
    ];

    #[test]
    fn each_rule_has_its_sentence() {
        check(SENTENCES);
    }
}
