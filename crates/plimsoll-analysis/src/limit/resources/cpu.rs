//! Processors: time taken by the hypervisor, a quota, the cores a server may use. Threads of the
//! server: a pool that is full, a lock.

use plimsoll_model::limit::{Limit, LimitFacts, LoadShape, NearlyFull, OtherPrograms};

use super::{
    FULL_MIN_RATIO, IDLE_MAX_RATIO, QUEUE_MIN, STORAGE_STALL_MIN_RATIO, UNREAD_MIN_BYTES,
    busiest_disk, limit, waits_for_disk,
};
use crate::limit::monitored::{MonitoredPoint, Scene};

/// A core that ops wait for is full whenever they arrive, though a bursty load leaves it idle
/// between them: from this share on.
const BURSTS_FULL_MIN_RATIO: f64 = 0.8;
/// Share of the ops under way at the server that must be waiting for its cores for that.
const WAITING_MIN_RATIO: f64 = 0.5;
/// Share of the busy time of the server's cores that must be the server's own, unless it demanded
/// them all the time.
const OWN_MIN_RATIO: f64 = 0.6;
/// A known program is reported from this share of the server's cores on.
const OTHERS_REPORTED_MIN_RATIO: f64 = 0.1;
/// Time that threads were ready to run and had no core, in cores, to count as a queue.
const RUN_DELAY_MIN_CORES: f64 = 0.05;
/// A service that takes longer than at the lowest load by this factor has a queue somewhere.
pub(super) const SLOWER_MIN_RATIO: f64 = 1.3;
/// Time that a quota kept threads from running, in cores.
const THROTTLED_MIN_CORES: f64 = 0.02;
/// Time that the hypervisor kept a core, of one core.
const STEAL_MIN_RATIO: f64 = 0.1;

/// Processors that the hypervisor gave to others while the server demanded them.
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
            // Where the server's processes were not seen.
            own.is_none().then(|| scene.evidence("host.cpu_busy", Some(1.0))).flatten(),
        ]
    };
    let in_bursts = busy < FULL_MIN_RATIO * cores;
    let is_own = own.is_none_or(|own| own >= OWN_MIN_RATIO * busy);
    let full =
        (!in_bursts || is_waited_for(now, busy / cores)) && (is_own || is_always_demanded(scene));
    let named = |others: &OtherPrograms| {
        others.cores_ratio >= OTHERS_REPORTED_MIN_RATIO && others.foremost.is_some()
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

/// Next to other programs: threads of the server ran on its cores or were ready to at all times,
/// and none waited for a disk. Then it demanded more of these cores than there was, whoever had the
/// rest. With one load alone it is unknown whether more would have come.
fn is_always_demanded(scene: &Scene<'_>) -> bool {
    let demand = || {
        let now = &scene.now;
        Some((now.process("cpu")? + now.process("run_delay")?) / now.cores()?)
    };
    scene.low.is_some()
        && demand().is_some_and(|ratio| ratio >= FULL_MIN_RATIO)
        && !waits_for_disk(scene)
}

/// Do ops spend most of their time at the server ready to run, waiting for a core?
fn is_waited_for(observed: &MonitoredPoint<'_>, busy_ratio: f64) -> bool {
    let waiting = observed.process("run_delay").unwrap_or_default();
    let in_flight = observed.in_flight().unwrap_or(f64::INFINITY);
    busy_ratio >= BURSTS_FULL_MIN_RATIO
        && waiting >= QUEUE_MIN
        && waiting >= WAITING_MIN_RATIO * in_flight
}

/// Threads waited for a core, requests for a thread, or a service takes longer than at low load.
fn has_cpu_queue(scene: &Scene<'_>) -> bool {
    scene.rose(|observed| observed.process("run_delay"), RUN_DELAY_MIN_CORES)
        || scene.rose(|observed| observed.get("host.runnable"), 2.0)
        || scene.rose(|observed| observed.sockets("receive_queue"), UNREAD_MIN_BYTES)
        || scene.slower().is_some_and(|slower| slower >= SLOWER_MIN_RATIO)
}

/// How far the server's cores were from full, where they did not idle.
pub(in crate::limit) fn nearly_full(observed: &MonitoredPoint<'_>) -> Option<NearlyFull> {
    let cores = observed.cores()?;
    let near = NearlyFull {
        cores: observed.named_cores(cores),
        busy_ratio: observed.cores_busy()? / cores,
        full_ratio: FULL_MIN_RATIO,
        waiting_threads: observed.process("run_delay")?,
    };
    (IDLE_MAX_RATIO..FULL_MIN_RATIO).contains(&near.busy_ratio).then_some(near)
}

/// The server's processors had spare capacity, whoever else used them.
pub(super) fn cpu_is_idle(observed: &MonitoredPoint<'_>) -> bool {
    let share = || {
        let cores = observed.cores()?;
        let of_cores = observed.cores_busy().map(|busy| busy / cores);
        let quota = cores.min(observed.group("quota").unwrap_or(f64::INFINITY));
        let own = observed.process("cpu").map(|used| used / quota);
        [of_cores, own].into_iter().flatten().reduce(f64::max)
    };
    share().is_some_and(|share| share <= IDLE_MAX_RATIO)
}

/// The same for service threads that a server counts itself.
const THREADS_FULL_MIN_RATIO: f64 = 0.95;
/// Share of a server's threads, or of the ops under way, that wait for another thread.
const LOCKED_MIN_RATIO: f64 = 0.5;
/// With more ops under way per thread, the server does not use one thread for each op.
const OPS_PER_THREAD_MAX: f64 = 8.0;

/// Service threads that the server counts itself: all at work, with requests waiting for them,
/// while no hardware was busy.
pub(super) fn threads(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let Threads { all, busy, queue } = Threads::from_point(now)?;
    let full = busy >= THREADS_FULL_MIN_RATIO * all && queue >= QUEUE_MIN;
    let rose = scene.low.as_ref().and_then(Threads::from_point).is_none_or(|low| queue > low.queue);
    let syncing = now.get("server.threads_in_fdatasync").unwrap_or_default();
    let stalled = now.get("host.pressure_io_some").unwrap_or_default();
    let at_work = syncing <= 0.5 * busy && stalled <= STORAGE_STALL_MIN_RATIO;
    let idle = busiest_disk(now).is_none_or(|(_, busy)| busy <= IDLE_MAX_RATIO) && cpu_is_idle(now);
    if !(full && rose && at_work && idle) {
        return None;
    }
    if contending(now).unwrap_or_default() >= LOCKED_MIN_RATIO * all {
        return None;
    }
    let evidence = [
        scene.evidence("server.threads_busy_mean", Some(all)),
        scene.evidence("server.threads_busy", Some(all)),
        scene.evidence("server.queue_mean", None),
        scene.evidence("process.server.cpu", now.cores()),
    ];
    let busy = busy.min(all);
    Some(limit(LimitFacts::ServiceThreads { threads: all, busy, queued: queue }, evidence))
}

struct Threads {
    all: f64,
    busy: f64,
    queue: f64,
}

impl Threads {
    fn from_point(observed: &MonitoredPoint<'_>) -> Option<Self> {
        let either = |counted: &str, instantaneous: &str| {
            observed.get(counted).or_else(|| observed.get(instantaneous))
        };
        Some(Self {
            all: observed.get("server.threads").filter(|all| *all >= 1.0)?,
            busy: either("server.threads_busy_mean", "server.threads_busy")?,
            queue: either("server.queue_mean", "server.queue")?,
        })
    }
}

/// Threads that wait for each other on idle hardware.
pub(super) fn lock(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let threads = now.process("threads").filter(|threads| *threads >= 2.0)?;
    let in_flight = now.in_flight()?;
    let contend = contending(now)?;
    let half = LOCKED_MIN_RATIO * threads.min(in_flight);
    // For servers that handle many more ops than threads, a thread's wait is unknown.
    let a_thread_an_op = in_flight <= OPS_PER_THREAD_MAX * threads;
    let rose = scene.rose(contending, QUEUE_MIN);
    (contend >= half && rose && a_thread_an_op && cpu_is_idle(now)).then(|| {
        let evidence = [
            scene.evidence("process.server.threads_waiting_for_lock", Some(threads)),
            scene.evidence("process.server.cpu", now.cores()),
        ];
        limit(LimitFacts::Lock { waiting: contend, threads }, evidence)
    })
}

/// Threads that wait for another thread although there is an op for them. Idle threads of a pool
/// wait as well: as many as there are more threads than ops under way.
fn contending(observed: &MonitoredPoint<'_>) -> Option<f64> {
    let threads = observed.process("threads")?;
    let idle = (threads - observed.in_flight()?).max(0.0);
    Some((observed.process("threads_waiting_for_lock")? - idle).max(0.0))
}

/// Requests that are not read, while the hardware is idle: no thread or process is free for them.
pub(super) fn unread(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let unread = scene.rose(|observed| observed.sockets("receive_queue"), UNREAD_MIN_BYTES)
        || scene.rose(|observed| observed.sockets("accept_queue"), QUEUE_MIN);
    (unread && cpu_is_idle(now)).then(|| {
        let facts = LimitFacts::Unread {
            unread_bytes: now.sockets("receive_queue").unwrap_or_default(),
            not_accepted: now.sockets("accept_queue").unwrap_or_default(),
        };
        let evidence = [
            scene.evidence("socket.server.receive_queue", None),
            scene.evidence("socket.server.accept_queue", None),
            scene.evidence("process.server.threads", None),
            scene.evidence("process.server.cpu", now.cores()),
        ];
        limit(facts, evidence)
    })
}
