//! Processors: what the hypervisor keeps, a quota, the cores a server may use.

use plimsoll_model::limit::{Limit, LimitFacts, LoadShape, NearlyFull, OtherPrograms};

use super::{FULL_MIN_RATIO, IDLE_MAX_RATIO, QUEUE_MIN, UNREAD_MIN_BYTES, limit, waits_for_disk};
use crate::limit::seen::{Scene, Seen};

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
pub(super) const SLOWER_MIN_RATIO: f64 = 1.3;
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
        let evidence = ["process.server.cores_steal", "host.cpu_steal"];
        let facts = LimitFacts::Hypervisor { kept_ratio: steal / cores, cores };
        limit(facts, evidence.map(|name| scene.evidence(name, None)))
    })
}

/// The CPU time its control group is allowed.
pub(super) fn quota(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let (quota, used) = (now.group("quota")?, now.process("cpu")?);
    let throttled = now.group("throttled")?;
    (used >= FULL_MIN_RATIO * quota && throttled >= THROTTLED_MIN_CORES).then(|| {
        let evidence = [
            scene.evidence("process.server.cpu", Some(quota)),
            scene.evidence("cgroup.server.throttled", None),
        ];
        let facts =
            LimitFacts::Quota { used_cores: used, quota_cores: quota, throttled_cores: throttled };
        limit(facts, evidence)
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
    if full {
        let facts = LimitFacts::Cores {
            cores: now.named_cores(cores),
            busy_ratio: busy / cores,
            own_ratio: own.map(|own| own / busy),
            load: if in_bursts { LoadShape::Bursts } else { LoadShape::Steady },
        };
        return Some(Limit { others, ..limit(facts, evidence(cores)) });
    }
    let busy_ratio = now.process("busiest_thread").filter(|busy| *busy >= FULL_MIN_RATIO)?;
    let facts = LimitFacts::Thread { busy_ratio, cores, cores_busy_ratio: busy / cores };
    Some(limit(facts, evidence(cores)))
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
pub(in crate::limit) fn nearly_full(seen: &Seen<'_>) -> Option<NearlyFull> {
    let cores = seen.cores()?;
    let near = NearlyFull {
        cores: seen.named_cores(cores),
        busy_ratio: seen.cores_busy()? / cores,
        full_ratio: FULL_MIN_RATIO,
        waiting_threads: seen.process("run_delay")?,
    };
    (IDLE_MAX_RATIO..FULL_MIN_RATIO).contains(&near.busy_ratio).then_some(near)
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
