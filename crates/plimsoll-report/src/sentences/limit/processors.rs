//! Processors of the server, and its threads on them.

use plimsoll_model::limit::{Limit, LimitFacts, LoadShape, OtherPrograms, ServerCores};
use plimsoll_model::units::{cores as cores_text, short_decimal, whole_percent};

use super::HAD_ROOM;

pub(super) fn text(facts: &LimitFacts, limit: &Limit) -> Option<String> {
    let others = limit.others.as_ref();
    Some(match facts {
        LimitFacts::Hypervisor { kept_ratio, cores } => format!(
            "the hypervisor: it kept {} of the time of the server's {}",
            whole_percent(*kept_ratio),
            cores_text(*cores),
        ),
        LimitFacts::Quota { used_cores, quota_cores, throttled_cores } => format!(
            "the CPU quota: the server used {} of the {} its control group is allowed, and was \
             held back for {throttled_cores:.2} core-seconds a second",
            short_decimal(*used_cores),
            cores_text(*quota_cores),
        ),
        LimitFacts::Cores { cores, busy_ratio, own_ratio, load } => {
            let own = own_ratio.map_or_else(String::new, |own| shares(own, others));
            let waited = match load {
                LoadShape::Steady => "",
                LoadShape::Bursts => ", and ops spent most of their time waiting",
            };
            let is_named = limit.host.is_some();
            full_cores(
                *cores,
                is_named,
                &format!("{} busy{own}{waited}", whole_percent(*busy_ratio)),
            )
        }
        LimitFacts::Thread { busy_ratio, cores, cores_busy_ratio } => format!(
            "one core: a thread of the server was busy for {} of the time, while the {} it may use \
             were {} busy",
            whole_percent(*busy_ratio),
            cores_text(*cores),
            whole_percent(*cores_busy_ratio),
        ),
        LimitFacts::CoresByTurns { cores, full_ratio } => format!(
            "by turns of less than a second {}, full in {} of the samples of 50 ms",
            cores.label(),
            whole_percent(*full_ratio),
        ),
        LimitFacts::ServiceThreads { threads, busy, queued } => format!(
            "the service threads: {busy:.1} of {threads} were busy and {queued:.1} requests waited \
             for one, while the server's processors and disks had room",
        ),
        LimitFacts::Lock { waiting, threads } => format!(
            "a lock in the server: about {waiting:.0} of its {threads:.0} threads waited for each \
             other with an op to do, {HAD_ROOM}",
        ),
        LimitFacts::Unread { unread_bytes, not_accepted } => format!(
            "the server's threads or processes: requests lay unread in its sockets \
             ({unread_bytes:.0} bytes, {not_accepted:.0} connections not accepted), {HAD_ROOM}",
        ),
        _ => return None,
    })
}

/// With `is_named` the sentence begins with the host.
fn full_cores(cores: ServerCores, is_named: bool, busy: &str) -> String {
    let label = cores.label();
    match (cores.count > 1.0, cores.of_host) {
        (true, true) if is_named => format!("the processors: its {label} were {busy}"),
        (false, true) if is_named => format!("its only core: {busy}"),
        (true, false) => format!("the processors: the {label} the server may use were {busy}"),
        (true, true) => format!("the processors: the {label} of the server's host were {busy}"),
        (false, false) => format!("one core of the server ({label}, all it may use): {busy}"),
        (false, true) => format!("one core, all that the server's host has: {busy}"),
    }
}

/// Whose work it was that a full core did.
fn shares(own_ratio: f64, others: Option<&OtherPrograms>) -> String {
    let own_ratio = own_ratio.min(1.0);
    let own = format!(", {} of it with the server itself", whole_percent(own_ratio));
    let Some(others) = others else { return own };
    let who = match others.foremost {
        Some(_) => "with other programs",
        None => "with other programs or the kernel",
    };
    format!("{own} and {} {who}{}", whole_percent(1.0 - own_ratio), foremost(others))
}

/// `, most of all NAME (process N)`; empty where unknown.
pub(super) fn foremost(others: &OtherPrograms) -> String {
    match &others.foremost {
        Some(user) if user.own => ", most of all this program".to_owned(),
        Some(user) => format!(", most of all {} (process {})", user.name, user.pid),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    const SENTENCES: &[(&str, &str)] = &[
        (
            r#"{"kind": "hypervisor", "kept_ratio": 0.3, "cores": 4.0}"#,
            "the hypervisor: it kept 30 % of the time of the server's 4 cores",
        ),
        (
            r#"{"kind": "quota", "used_cores": 1.5, "quota_cores": 1.5, "throttled_cores": 0.25}"#,
            "the CPU quota: the server used 1.50 of the 1.50 cores its control group is allowed, \
             and was held back for 0.25 core-seconds a second",
        ),
        (
            r#"{"kind": "cores", "cores": {"count": 4.0, "number": null}, "busy_ratio": 0.99,
               "own_ratio": 0.8, "load": "steady"}"#,
            "the processors: the 4 cores the server may use were 99 % busy, 80 % of it with the \
             server itself",
        ),
        (
            r#"{"kind": "cores", "cores": {"count": 4.0, "number": null, "of_host": true},
               "busy_ratio": 0.99, "own_ratio": null, "load": "bursts"}"#,
            "the processors: the 4 cores of the server's host were 99 % busy, and ops spent most \
             of their time waiting",
        ),
        (
            r#"{"kind": "cores", "cores": {"count": 1.0, "number": 1}, "busy_ratio": 0.99,
               "own_ratio": 1.2, "load": "steady"}"#,
            "one core of the server (core 1, all it may use): 99 % busy, 100 % of it with the \
             server itself",
        ),
        (
            r#"{"kind": "cores", "cores": {"count": 1.0, "number": null, "of_host": true},
               "busy_ratio": 0.99, "own_ratio": null, "load": "steady"}"#,
            "one core, all that the server's host has: 99 % busy",
        ),
        (
            r#"{"kind": "thread", "busy_ratio": 0.98, "cores": 2.0, "cores_busy_ratio": 0.6}"#,
            "one core: a thread of the server was busy for 98 % of the time, while the 2 cores it \
             may use were 60 % busy",
        ),
        (
            r#"{"kind": "service_threads", "threads": 8.0, "busy": 7.9, "queued": 4.2}"#,
            "the service threads: 7.9 of 8 were busy and 4.2 requests waited for one, while the \
             server's processors and disks had room",
        ),
        (
            r#"{"kind": "lock", "waiting": 6.0, "threads": 16.0}"#,
            "a lock in the server: about 6 of its 16 threads waited for each other with an op to \
             do, while its processors and disks had room",
        ),
        (
            r#"{"kind": "unread", "unread_bytes": 5120.0, "not_accepted": 3.0}"#,
            "the server's threads or processes: requests lay unread in its sockets (5120 bytes, 3 \
             connections not accepted), while its processors and disks had room",
        ),
        (
            r#"{"kind": "cores_by_turns", "cores": {"count": 1.0, "number": 1},
               "full_ratio": 0.4}"#,
            "by turns of less than a second core 1, full in 40 % of the samples of 50 ms",
        ),
    ];

    #[test]
    fn each_limit_has_its_sentence() {
        check(SENTENCES);
    }
}
