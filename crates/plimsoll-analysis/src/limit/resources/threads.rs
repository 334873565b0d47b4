//! Threads of the server: a pool that is full, a lock.

use plimsoll_model::limit::{Limit, LimitFacts};

use super::cpu::cpu_is_idle;
use super::storage::busiest_disk;
use super::{IDLE_MAX_RATIO, QUEUE_MIN, STORAGE_STALL_MIN_RATIO, UNREAD_MIN_BYTES, limit};
use crate::limit::seen::{Scene, Seen};

/// The same of service threads that a server counts itself.
const THREADS_FULL_MIN_RATIO: f64 = 0.95;
/// Share of a server's threads, or of the ops under way, that wait for another thread.
const LOCKED_MIN_RATIO: f64 = 0.5;
/// A server with more ops under way for each thread has no thread for each.
const OPS_PER_THREAD_MAX: f64 = 8.0;

/// Service threads that the server counts itself: all at work, with requests waiting for them,
/// while no hardware was busy.
pub(super) fn threads(scene: &Scene<'_>) -> Option<Limit> {
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
pub(super) fn lock(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let threads = now.process("threads").filter(|threads| *threads >= 2.0)?;
    let in_flight = now.in_flight()?;
    let contend = contending(now)?;
    let half = LOCKED_MIN_RATIO * threads.min(in_flight);
    // Of servers that hold many more ops than threads nothing is known of a thread's wait.
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

/// Threads that wait for another thread although there is an op for them: idle ones of a pool wait
/// so too, as many as there are more threads than ops under way.
fn contending(seen: &Seen<'_>) -> Option<f64> {
    let threads = seen.process("threads")?;
    let idle = (threads - seen.in_flight()?).max(0.0);
    Some((seen.process("threads_waiting_for_lock")? - idle).max(0.0))
}

/// Requests that nobody reads, while the hardware is idle: no thread or process is free for them.
pub(super) fn unread(scene: &Scene<'_>) -> Option<Limit> {
    let now = &scene.now;
    let unread = scene.rose(|seen| seen.sockets("receive_queue"), UNREAD_MIN_BYTES)
        || scene.rose(|seen| seen.sockets("accept_queue"), QUEUE_MIN);
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
