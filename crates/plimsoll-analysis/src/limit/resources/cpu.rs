//! Processors: what the hypervisor keeps, a quota, the cores a server may use.

use plimsoll_model::limit::{Limit, LimitKind, OtherPrograms};
use plimsoll_model::units::three_digits;

use super::{
    FULL_MIN_RATIO, IDLE_MAX_RATIO, QUEUE_MIN, UNREAD_MIN_BYTES, cores_text, digits, limit,
    percent, waits_for_disk,
};
use crate::limit::seen::{Scene, Seen, foremost_text};

/// A core that ops wait for is full whenever they come, though a load that comes in bursts leaves it
/// idle between them: from this share on.
const BURSTS_FULL_MIN_RATIO: f64 = 0.8;
/// Of the ops under way at the server, those that must be waiting for its cores for that.
const WAITING_MIN_RATIO: f64 = 0.5;
/// Of the busy time of the server's cores, the part that must be the server's own, unless it wanted
/// them all the time.
const OWN_MIN_RATIO: f64 = 0.6;
/// A program that is known is worth a word from this share of the server's cores on.
const OTHERS_SAID_MIN_RATIO: f64 = 0.1;
/// Time that threads were ready to run and had no core, in cores, to call it a queue.
const RUN_DELAY_MIN_CORES: f64 = 0.05;
/// A service that takes so much longer than at the lowest load has a queue somewhere.
const SLOWER_MIN_RATIO: f64 = 1.3;
/// Time that a quota kept threads from running, in cores.
const THROTTLED_MIN_CORES: f64 = 0.02;
/// Time that the hypervisor kept a core, of one core.
const STEAL_MIN_RATIO: f64 = 0.1;

/// Processors the hypervisor gave to others while the server wanted them.
pub(super) fn hypervisor(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let (cores, busy) = (now.cores()?, now.cores_busy()?);
    let steal = now.process("cores_steal").or_else(|| Some(now.get("host.cpu_steal")? * cores))?;
    (steal >= STEAL_MIN_RATIO * cores && busy + steal >= FULL_MIN_RATIO * cores).then(|| {
        let text = format!(
            "the hypervisor: it kept {} of the time of the server's {}",
            percent(steal / cores),
            cores_text(cores)
        );
        let evidence = ["process.server.cores_steal", "host.cpu_steal"];
        limit(LimitKind::Hypervisor, None, text, evidence.map(|name| scene.evidence(name, None)))
    })
}

/// The CPU time its control group is allowed.
pub(super) fn quota(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let (quota, used) = (now.group("quota")?, now.process("cpu")?);
    let throttled = now.group("throttled")?;
    (used >= FULL_MIN_RATIO * quota && throttled >= THROTTLED_MIN_CORES).then(|| {
        let text = format!(
            "the CPU quota: the server used {} of the {} its control group is allowed, and was \
             held back for {throttled:.2} core-seconds a second",
            digits(used),
            cores_text(quota)
        );
        let evidence = [
            scene.evidence("process.server.cpu", Some(quota)),
            scene.evidence("cgroup.server.throttled", None),
        ];
        limit(LimitKind::Quota, Some(cores_text(quota)), text, evidence)
    })
}

/// The cores it may use, or the one of its busiest thread.
pub(super) fn processors(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let (cores, busy) = (now.cores()?, now.cores_busy()?);
    let own = now.process("cpu");
    let by_quota = now.group("quota").is_some_and(|quota| quota < cores);
    if by_quota || !has_cpu_queue(scene) {
        return None;
    }
    let evidence = |ceiling| {
        [
            scene.evidence("process.server.cores_busy", Some(ceiling)),
            scene.evidence("process.server.cpu", Some(ceiling)),
            scene.evidence("process.server.busiest_thread", Some(1.0)),
            scene.evidence("process.server.run_delay", None),
            scene.evidence("socket.server.receive_queue", None),
        ]
    };
    let in_bursts = busy < FULL_MIN_RATIO * cores;
    let is_own = own.is_none_or(|own| own >= OWN_MIN_RATIO * busy);
    let full = (!in_bursts || is_waited_for(now, busy / cores))
        && (is_own || is_wanted_all_the_time(scene));
    let named = |others: &OtherPrograms| {
        others.cores_ratio >= OTHERS_SAID_MIN_RATIO && others.foremost.is_some()
    };
    let others = now.others().filter(named).or_else(|| now.taken_by_others());
    let own = own.map_or(String::new(), |own| shares_text(own / busy, others.as_ref()));
    let waited = match in_bursts {
        true => ", and ops spent most of their time waiting",
        false => "",
    };
    if full && cores > 1.0 {
        let text = format!(
            "the processors: the {} the server may use were {} busy{own}{waited}",
            cores_text(cores),
            percent(busy / cores),
        );
        let place = Some(cores_text(cores));
        let limit = limit(LimitKind::Processor, place, text, evidence(cores));
        return Some(Limit { others, ..limit });
    }
    if full {
        let place = core_name(now);
        let text = format!(
            "one core of the server ({place}, all it may use): {} busy{own}{waited}",
            percent(busy),
        );
        return Some(Limit { others, ..limit(LimitKind::Core, Some(place), text, evidence(1.0)) });
    }
    let thread = now.process("busiest_thread").filter(|busy| *busy >= FULL_MIN_RATIO)?;
    let text = format!(
        "one core: a thread of the server was busy for {} of the time, while the {} it may use \
         were {} busy",
        percent(thread),
        cores_text(cores),
        percent(busy / cores)
    );
    let place = Some("one thread of the server".to_owned());
    Some(limit(LimitKind::Core, place, text, evidence(cores)))
}

/// Beside other programs: threads of the server ran on its cores or were ready to at all times, and
/// none waited for a disk. Then it wanted more of these cores than there was, whoever had the rest.
/// Of one load alone nobody knows that more would not have come.
fn is_wanted_all_the_time(scene: &Scene<'_>) -> bool {
    let wanted = || {
        let now = &scene.now;
        Some((now.process("cpu")? + now.process("run_delay")?) / now.cores()?)
    };
    scene.low.is_some()
        && wanted().is_some_and(|ratio| ratio >= FULL_MIN_RATIO)
        && !waits_for_disk(scene)
}

/// Whose work it was that a full core did.
fn shares_text(own_ratio: f64, others: Option<&OtherPrograms>) -> String {
    let own_ratio = own_ratio.min(1.0);
    let own = format!(", {} of it with the server itself", percent(own_ratio));
    let Some(others) = others else { return own };
    let who = match others.foremost {
        Some(_) => "with other programs",
        None => "with other programs or the kernel",
    };
    format!("{own} and {} {who}{}", percent(1.0 - own_ratio), foremost_text(others))
}

/// The only core that the server may use.
fn core_name(seen: &Seen<'_>) -> String {
    seen.only_core().map_or_else(|| "one core".to_owned(), |number| format!("core {number}"))
}

/// Do ops spend most of their time at the server ready to run, waiting for a core?
fn is_waited_for(seen: &Seen<'_>, busy_ratio: f64) -> bool {
    let waiting = seen.process("run_delay").unwrap_or_default();
    let under_way = seen.in_flight().unwrap_or(f64::INFINITY);
    busy_ratio >= BURSTS_FULL_MIN_RATIO
        && waiting >= QUEUE_MIN
        && waiting >= WAITING_MIN_RATIO * under_way
}

/// Threads waited for a core, requests for a thread, or a service takes longer than it did.
fn has_cpu_queue(scene: &Scene<'_>) -> bool {
    scene.rose(|seen| seen.process("run_delay"), RUN_DELAY_MIN_CORES)
        || scene.rose(|seen| seen.get("host.runnable"), 2.0)
        || scene.rose(|seen| seen.sockets("receive_queue"), UNREAD_MIN_BYTES)
        || scene.slower().is_some_and(|slower| slower >= SLOWER_MIN_RATIO)
}

/// How far the server's cores were from full, where they did not idle.
pub(in crate::limit) fn nearly_full(seen: &Seen<'_>) -> Option<String> {
    let (cores, busy) = (seen.cores()?, seen.cores_busy()?);
    let waiting = seen.process("run_delay")?;
    let is_near = (IDLE_MAX_RATIO..FULL_MIN_RATIO).contains(&(busy / cores));
    is_near.then(|| {
        let name = match cores {
            1.0 => core_name(seen),
            _ => format!("the {} it may use", cores_text(cores)),
        };
        format!(
            "{name}: {} busy, of {} that count as full, with {} threads waiting on average",
            percent(busy / cores),
            percent(FULL_MIN_RATIO),
            three_digits(waiting)
        )
    })
}

/// The server's processors had room, whoever else used them.
pub(super) fn cpu_is_idle(seen: &Seen<'_>) -> bool {
    let share = || {
        let cores = seen.cores()?;
        let of_cores = seen.cores_busy().map(|busy| busy / cores);
        let quota = cores.min(seen.group("quota").unwrap_or(f64::INFINITY));
        let own = seen.process("cpu").map(|used| used / quota);
        [of_cores, own].into_iter().flatten().reduce(f64::max)
    };
    share().is_some_and(|share| share <= IDLE_MAX_RATIO)
}
