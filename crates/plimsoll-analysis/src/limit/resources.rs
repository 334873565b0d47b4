//! Which resources of the server were full, and had a queue, at one load point.
//!
//! A ceiling that is known exactly (cores of an affinity or a quota, threads of a pool, a rate that
//! a disk is held to, the speed of a link) must be reached, and its queue must be there. Where none
//! is known, the resource must have a queue that rose while the processors were not full.

use plimsoll_model::limit::{Evidence, Limit, LimitKind};

use super::seen::{Scene, Seen};

/// Share of a ceiling from which it is reached.
const FULL_MIN_RATIO: f64 = 0.93;
/// The same of service threads that a server counts itself.
const THREADS_FULL_MIN_RATIO: f64 = 0.95;
/// Below this share a processor or disk is idle enough not to be what the server waits for.
const IDLE_MAX_RATIO: f64 = 0.7;
/// Of the busy time of the server's cores, the part that must be the server's own.
const OWN_MIN_RATIO: f64 = 0.6;
/// Time that threads were ready to run and had no core, in cores, to call it a queue.
const RUN_DELAY_MIN_CORES: f64 = 0.05;
/// A service that takes so much longer than at the lowest load has a queue somewhere.
const SLOWER_MIN_RATIO: f64 = 1.3;
/// Time that a quota kept threads from running, in cores.
const THROTTLED_MIN_CORES: f64 = 0.02;
/// Time that the hypervisor kept a core, of one core.
const STEAL_MIN_RATIO: f64 = 0.1;
/// Requests that wait in the queue of a disk, and for a thread.
const DISK_QUEUE_MIN: f64 = 1.5;
const QUEUE_MIN: f64 = 1.0;
/// The end of a disk may differ by this share from what low load predicts.
const PREDICTION_MAX_RATIO: f64 = 0.15;
/// Share of the time in which some thread of the host waited for storage.
const STORAGE_STALL_MIN_RATIO: f64 = 0.4;
/// Share of its limit from which memory is full.
const MEMORY_FULL_MIN_RATIO: f64 = 0.9;
/// Pages that are read again, per op.
const REFAULTS_MIN_PER_OP: f64 = 0.1;
/// Bytes that wait in the server's sockets for the network.
const SEND_QUEUE_MIN_BYTES: f64 = 64.0 * 1024.0;
/// Share of a server's threads, or of the ops under way, that wait for another thread.
const LOCKED_MIN_RATIO: f64 = 0.5;
/// A server with more ops under way for each thread has no thread for each.
const OPS_PER_THREAD_MAX: f64 = 8.0;
/// Samples of 50 ms in which each of two that take turns was full, and how far they go together.
const TURNS_MIN_RATIO: f64 = 0.15;
const TURNS_CORRELATION_MAX: f64 = -0.5;
/// Bytes of requests that nobody reads.
const UNREAD_MIN_BYTES: f64 = 1.0;

/// What was full, the most certain first. Without a lower load only ceilings that are known exactly
/// name a resource.
pub(super) fn full(scene: &Scene<'_>) -> Vec<Limit> {
    let exact = [hypervisor, quota, processors, held_disk, busy_disk, link, threads];
    let found: Vec<Limit> = exact.iter().filter_map(|judge| judge(scene)).collect();
    if !found.is_empty() || scene.low.is_none() {
        return found;
    }
    let by_turns = turns(scene);
    if !by_turns.is_empty() {
        return by_turns;
    }
    let likely = [memory, waited_disk, unsent, lock, unread];
    likely.iter().find_map(|judge| judge(scene)).into_iter().collect()
}

fn limit(
    kind: LimitKind,
    place: Option<String>,
    text: String,
    evidence: impl IntoIterator<Item = Option<Evidence>>,
) -> Limit {
    let evidence = evidence.into_iter().flatten().collect();
    Limit { kind, place, text, evidence, also: Vec::new() }
}

/// Processors the hypervisor gave to others while the server wanted them.
fn hypervisor(scene: &Scene<'_>) -> Option<Limit> {
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
fn quota(scene: &Scene<'_>) -> Option<Limit> {
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
fn processors(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let (cores, busy) = (now.cores()?, now.cores_busy()?);
    let own = now.process("cpu").unwrap_or(busy);
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
    let full = busy >= FULL_MIN_RATIO * cores && own >= OWN_MIN_RATIO * busy;
    if full && cores > 1.0 {
        let text = format!(
            "the processors: the {} the server may use were {} busy, {} by the server itself",
            cores_text(cores),
            percent(busy / cores),
            digits(own),
        );
        let place = Some(cores_text(cores));
        return Some(limit(LimitKind::Processor, place, text, evidence(cores)));
    }
    if full {
        let place = now.only_core().map_or_else(|| "one core".to_owned(), |n| format!("core {n}"));
        let text = format!(
            "one core of the server ({place}, all it may use): {} busy, {} of it by the server \
             itself",
            percent(busy),
            digits(own),
        );
        return Some(limit(LimitKind::Core, Some(place), text, evidence(1.0)));
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

/// Threads waited for a core, requests for a thread, or a service takes longer than it did.
fn has_cpu_queue(scene: &Scene<'_>) -> bool {
    scene.rose(|seen| seen.process("run_delay"), RUN_DELAY_MIN_CORES)
        || scene.rose(|seen| seen.get("host.runnable"), 2.0)
        || scene.rose(|seen| seen.sockets("receive_queue"), UNREAD_MIN_BYTES)
        || scene.slower().is_some_and(|slower| slower >= SLOWER_MIN_RATIO)
}

/// A disk at a rate that a control group holds it to.
fn held_disk(scene: &Scene<'_>) -> Option<Limit> {
    const RATES: [(&str, &str, &str); 4] = [
        ("reads", "reads_max", "reads"),
        ("writes", "writes_max", "writes"),
        ("read", "read_max", "bytes read"),
        ("written", "written_max", "bytes written"),
    ];
    for (rate, max, words) in RATES {
        for key in scene.now.keys("storage", max) {
            let name = format!("storage.{key}.{rate}");
            let ceiling = scene.now.get(&format!("storage.{key}.{max}"))?;
            let Some(seen) = scene.now.get(&name) else { continue };
            if seen < FULL_MIN_RATIO * ceiling {
                continue;
            }
            let disk = key.rsplit(':').next().unwrap_or(key);
            let text = format!(
                "the disk {disk}: {seen:.0} {words} a second, of {ceiling:.0} that the server's \
                 control group is held to"
            );
            let evidence = [
                scene.evidence(&name, Some(ceiling)),
                scene.evidence("process.server.threads_waiting_for_disk", None),
                scene.evidence("host.pressure_io_some", None),
            ];
            return Some(limit(LimitKind::Disk, Some(disk.to_owned()), text, evidence));
        }
    }
    None
}

/// A disk without time left, with a queue that rose.
fn busy_disk(scene: &Scene<'_>) -> Option<Limit> {
    let (disk, busy) = busiest_disk(&scene.now)?;
    let queue = format!("disk.{disk}.queue_mean");
    let queued = scene.now.get(&queue).filter(|queue| *queue >= DISK_QUEUE_MIN)?;
    let rose = scene.rose(|seen| seen.get(&queue), DISK_QUEUE_MIN);
    let predicted = is_predicted(scene, &format!("disk.{disk}.busy"));
    (busy >= FULL_MIN_RATIO && rose && predicted && waits_for_disk(scene)).then(|| {
        let text = format!(
            "the disk {disk}: it was {} busy with {queued:.1} requests in its queue",
            percent(busy)
        );
        let evidence = [
            scene.evidence(&format!("disk.{disk}.busy"), Some(1.0)),
            scene.evidence(&queue, None),
            scene.evidence(&format!("disk.{disk}.per_read"), None),
        ];
        limit(LimitKind::Disk, Some(disk.to_owned()), text, evidence)
    })
}

/// Does the share of its time that an op took at the lowest load say where a resource must end? One
/// that serves many requests at once is busy long before it is full.
fn is_predicted(scene: &Scene<'_>, busy: &str) -> bool {
    let at_low_load = || {
        let low = scene.low?;
        let busy = low.get(busy).filter(|busy| (0.0..FULL_MIN_RATIO).contains(busy))?;
        Some((low.point.achieved_ops_per_s? / busy, scene.now.point.achieved_ops_per_s?))
    };
    at_low_load().is_none_or(|(most, rate)| (most - rate).abs() <= PREDICTION_MAX_RATIO * rate)
}

/// Does anybody wait for the disks? Writes in the background keep a disk busy and nobody waiting.
fn waits_for_disk(scene: &Scene<'_>) -> bool {
    let waiting = scene.now.process("threads_waiting_for_disk");
    let stalled = scene.now.get("host.pressure_io_some");
    match (waiting, stalled) {
        (None, None) => true,
        (waiting, stalled) => {
            waiting.is_some_and(|threads| threads >= QUEUE_MIN)
                || stalled.is_some_and(|share| share >= STORAGE_STALL_MIN_RATIO)
        }
    }
}

/// Threads that wait for a disk of which no ceiling is known, on processors that have room.
fn waited_disk(scene: &Scene<'_>) -> Option<Limit> {
    let (disk, busy) = busiest_disk(&scene.now)?;
    let waiting = scene.rose(|seen| seen.process("threads_waiting_for_disk"), QUEUE_MIN);
    let stalled = scene.now.get("host.pressure_io_some")?;
    (waiting && stalled >= STORAGE_STALL_MIN_RATIO && cpu_is_idle(&scene.now)).then(|| {
        let text = format!(
            "the disk {disk}: threads waited for storage {} of the time, while the processors had \
             room; its own queue was {} of the time busy",
            percent(stalled),
            percent(busy)
        );
        let evidence = [
            scene.evidence("host.pressure_io_some", None),
            scene.evidence("process.server.threads_waiting_for_disk", None),
            scene.evidence(&format!("disk.{disk}.busy"), None),
        ];
        limit(LimitKind::Disk, Some(disk.to_owned()), text, evidence)
    })
}

fn busiest_disk<'a>(seen: &Seen<'a>) -> Option<(&'a str, f64)> {
    let busy = |disk: &'a str| Some((disk, seen.get(&format!("disk.{disk}.busy"))?));
    let disks = seen.keys("disk", "busy").into_iter().filter_map(busy);
    disks.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn cpu_is_idle(seen: &Seen<'_>) -> bool {
    let share = |seen: &Seen<'_>| {
        let cores = seen.cores()?.min(seen.group("quota").unwrap_or(f64::INFINITY));
        let used = seen.process("cpu").or_else(|| seen.cores_busy())?;
        Some(used / cores)
    };
    share(seen).is_some_and(|share| share <= IDLE_MAX_RATIO)
}

/// Processors and storage that take turns within a second: each is half used on the mean.
fn turns(scene: &Scene<'_>) -> Vec<Limit> {
    let now = &scene.now;
    let told = |what: &str| now.get(&format!("host.turns_{what}")).unwrap_or_default();
    let (cpu, storage) = (told("cpu_full"), told("storage_stalled"));
    let apart = told("correlation") <= TURNS_CORRELATION_MAX;
    let (Some(cores), true) = (now.cores(), apart && cpu.min(storage) >= TURNS_MIN_RATIO) else {
        return Vec::new();
    };
    let (kind, place) = match now.only_core() {
        Some(core) => (LimitKind::Core, format!("core {core}")),
        None => (LimitKind::Processor, cores_text(cores)),
    };
    let evidence = |names: [&str; 2]| names.map(|name| scene.evidence(name, Some(1.0)));
    let text = format!(
        "by turns of less than a second {place}, full in {} of the samples of 50 ms",
        percent(cpu)
    );
    let names = ["host.turns_cpu_full", "host.turns_correlation"];
    let cpu = limit(kind, Some(place), text, evidence(names));
    let disk = busiest_disk(now).map(|(disk, _)| disk.to_owned());
    let text = format!(
        "{}, for which somebody waited in {}",
        disk.as_ref().map_or_else(|| "storage".to_owned(), |disk| format!("the disk {disk}")),
        percent(storage)
    );
    let names = ["host.turns_storage_stalled", "host.pressure_io_some"];
    vec![cpu, limit(LimitKind::Disk, disk, text, evidence(names))]
}

/// A link that carries all it can.
fn link(scene: &Scene<'_>) -> Option<Limit> {
    for way in ["sent", "received"] {
        for key in scene.now.keys("network", &format!("{way}_share")) {
            let name = format!("network.{key}.{way}_share");
            let share = scene.now.get(&name)?;
            if share >= FULL_MIN_RATIO {
                let text =
                    format!("the network: {key} {way} {} of what its link carries", percent(share));
                let evidence = [
                    scene.evidence(&name, Some(1.0)),
                    scene.evidence("socket.server.send_queue", None),
                    scene.evidence("host.tcp_retransmits", None),
                ];
                let place = key.rsplit(':').next().unwrap_or(key).to_owned();
                return Some(limit(LimitKind::Network, Some(place), text, evidence));
            }
        }
    }
    None
}

/// What the server has written waits in its sockets, while it has processors left.
fn unsent(scene: &Scene<'_>) -> Option<Limit> {
    let waiting = scene.now.sockets("send_queue")?;
    let rose = scene.rose(|seen| seen.sockets("send_queue"), SEND_QUEUE_MIN_BYTES);
    if !(rose && cpu_is_idle(&scene.now)) {
        return None;
    }
    let rate = |key: &&str| scene.now.get(&format!("network.{key}.sent")).unwrap_or_default();
    let keys = scene.now.keys("network", "sent");
    // The server's own namespace, where it has one, has its interfaces.
    let inside = keys.iter().copied().filter(|key| key.contains(':') && !key.ends_with(":lo"));
    let outside = keys.iter().copied().filter(|key| !key.contains(':'));
    let busiest = |all: Vec<&str>| {
        all.into_iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).map(str::to_owned)
    };
    let place = busiest(inside.collect()).or_else(|| busiest(outside.collect()))?;
    let text = format!(
        "the network: {:.0} KiB that the server had written waited in its sockets, while it had \
         processors left; {place} sent {:.1} MB/s",
        waiting / 1024.0,
        rate(&place.as_str()) / 1e6,
    );
    let evidence = [
        scene.evidence("socket.server.send_queue", None),
        scene.evidence(&format!("network.{place}.sent"), None),
        scene.evidence("host.tcp_retransmits", None),
    ];
    let place = place.rsplit(':').next().unwrap_or(&place).to_owned();
    Some(limit(LimitKind::Network, Some(place), text, evidence))
}

/// Memory that is full, and pages that are read again for it.
fn memory(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let rate = now.point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?;
    let (used, max) = (now.group("memory")?, now.group("memory_max")?);
    let refaults = now.group("refaults")?;
    let full = used >= MEMORY_FULL_MIN_RATIO * max && refaults >= REFAULTS_MIN_PER_OP * rate;
    (full && cpu_is_idle(now)).then(|| {
        let text = format!(
            "memory: the server's control group used {} of its {:.0} MiB, and {:.1} pages an op \
             were read again that had no room",
            percent(used / max),
            max / (1024.0 * 1024.0),
            refaults / rate
        );
        let evidence = [
            scene.evidence("cgroup.server.memory", Some(max)),
            scene.evidence("cgroup.server.refaults", None),
            scene.evidence("host.pressure_memory_some", None),
            scene.evidence("host.pressure_io_some", None),
        ];
        limit(LimitKind::Memory, None, text, evidence)
    })
}

/// Service threads that the server counts itself: all at work, with requests waiting for them,
/// while no hardware was busy.
fn threads(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let Threads { all, busy, queue } = Threads::of(now)?;
    let full = busy >= THREADS_FULL_MIN_RATIO * all && queue >= QUEUE_MIN;
    let rose = scene.low.as_ref().and_then(Threads::of).is_none_or(|low| queue > low.queue);
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
    let text = format!(
        "the service threads: {:.1} of {all} were busy and {queue:.1} requests waited for one, \
         while the server's processors and disks had room",
        busy.min(all)
    );
    let evidence = [
        scene.evidence("server.threads_busy_mean", Some(all)),
        scene.evidence("server.threads_busy", Some(all)),
        scene.evidence("server.queue_mean", None),
        scene.evidence("process.server.cpu", now.cores()),
    ];
    Some(limit(LimitKind::Pool, Some("service threads".to_owned()), text, evidence))
}

struct Threads {
    all: f64,
    busy: f64,
    queue: f64,
}

impl Threads {
    fn of(seen: &Seen<'_>) -> Option<Self> {
        let either =
            |counted: &str, seen_now: &str| seen.get(counted).or_else(|| seen.get(seen_now));
        Some(Self {
            all: seen.get("server.threads").filter(|all| *all >= 1.0)?,
            busy: either("server.threads_busy_mean", "server.threads_busy")?,
            queue: either("server.queue_mean", "server.queue")?,
        })
    }
}

/// Threads that wait for each other on idle hardware.
fn lock(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let threads = now.process("threads").filter(|threads| *threads >= 2.0)?;
    let in_flight = now.in_flight()?;
    let contend = contending(now)?;
    let half = LOCKED_MIN_RATIO * threads.min(in_flight);
    // Of servers that hold many more ops than threads nothing is known of a thread's wait.
    let a_thread_an_op = in_flight <= OPS_PER_THREAD_MAX * threads;
    let rose = scene.rose(contending, QUEUE_MIN);
    (contend >= half && rose && a_thread_an_op && cpu_is_idle(now)).then(|| {
        let text = format!(
            "a lock in the server: about {contend:.0} of its {threads:.0} threads waited for \
             each other with an op to do, while its processors and disks had room"
        );
        let evidence = [
            scene.evidence("process.server.threads_waiting_for_lock", Some(threads)),
            scene.evidence("process.server.cpu", now.cores()),
        ];
        limit(LimitKind::Lock, None, text, evidence)
    })
}

/// Threads that wait for another thread although there is an op for them: idle ones of a pool wait
/// so too, as many as there are more threads than ops under way.
fn contending(seen: &Seen<'_>) -> Option<f64> {
    let threads = seen.process("threads")?;
    let idle = (threads - seen.in_flight()?).max(0.0);
    Some((seen.process("threads_waiting_for_lock")? - idle).max(0.0))
}

/// Requests that nobody reads, while the hardware is idle: no thread or process is free for them.
fn unread(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let unread = scene.rose(|seen| seen.sockets("receive_queue"), UNREAD_MIN_BYTES)
        || scene.rose(|seen| seen.sockets("accept_queue"), QUEUE_MIN);
    (unread && cpu_is_idle(now)).then(|| {
        let text = format!(
            "the server's threads or processes: requests lay unread in its sockets ({:.0} bytes, \
             {:.0} connections not accepted), while its processors and disks had room",
            now.sockets("receive_queue").unwrap_or_default(),
            now.sockets("accept_queue").unwrap_or_default(),
        );
        let evidence = [
            scene.evidence("socket.server.receive_queue", None),
            scene.evidence("socket.server.accept_queue", None),
            scene.evidence("process.server.threads", None),
            scene.evidence("process.server.cpu", now.cores()),
        ];
        let place = Some("threads or processes of the server".to_owned());
        limit(LimitKind::Pool, place, text, evidence)
    })
}

pub(super) fn cores_text(cores: f64) -> String {
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

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

#[cfg(test)]
mod tests;
