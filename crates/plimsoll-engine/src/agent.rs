//! An agent: works on one load point with as many workers as it is asked for.
//!
//! A local run uses the same path as a remote agent would: it takes an assignment and returns
//! events.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use plimsoll_model::assignment::{Assignment, Pacing, Priority};
use plimsoll_model::event::AgentEvent;
use plimsoll_model::units::Nanos;
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock;
use crate::driver::epoll::EpollDriver;
use crate::driver::slice;
use crate::fresh::FreshTimes;
use crate::worker::{Seat, SeatDriver};
use crate::workload::Workload;

/// Workers start together, this long after they are made: time for all threads to be pinned …
const START_DELAY: Nanos = Nanos::from_millis(5);
/// … and for their clients to be made (measured: below 1 µs each).
const START_DELAY_PER_CLIENT: Nanos = Nanos(2_000);
/// Descriptors a process needs besides its connections.
const SPARE_DESCRIPTORS: u64 = 64;

/// Why an agent cannot work on a point.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The host refused something the agent needs.
    #[error("cannot {doing}: {source}; {remedy}")]
    Host {
        /// What was tried.
        doing: &'static str,
        /// The host's answer.
        source: io::Error,
        /// The next move.
        remedy: &'static str,
    },
    /// More clients than this process may have connections.
    #[error(
        "{clients} clients need more open files than the limit of {limit}; raise it with `ulimit -n {wanted}` or ask for fewer clients"
    )]
    TooManyClients {
        /// Clients asked for.
        clients: u32,
        /// Hard limit of open files.
        limit: u64,
        /// A limit that would do.
        wanted: u64,
    },
}

/// Histograms that wait for the listener hold at most this much memory.
const EVENTS_BYTES_MAX: usize = 512 * 1_024 * 1_024;
/// What an interval has at least for each op kind: ten histograms, most of 135 kB.
const KIND_BYTES: usize = 1_300_000;
/// A worker has room for a few intervals however many op kinds there are.
const EVENTS_MIN: usize = 8;

/// The queue of events from the workers to their listener. Where the listener has no turn until it
/// is full, workers wait for it: their ops are late, which is counted, and memory is bounded.
pub fn event_queue(
    op_kinds: usize,
    workers: u32,
) -> (SyncSender<AgentEvent>, Receiver<AgentEvent>) {
    let room = EVENTS_BYTES_MAX / (op_kinds.max(1) * KIND_BYTES);
    sync_channel(room.max(EVENTS_MIN * workers.max(1) as usize))
}

/// When the clock of a load point starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// As soon as the workers can be ready.
    Soon,
    /// At an instant of this host's monotonic clock. Workers that are not ready by then send their
    /// first ops late, and are judged by that.
    At(Nanos),
}

impl Origin {
    /// The instant on the monotonic clock, and on the wall clock.
    fn instants(self, clients: u32) -> (Nanos, u64) {
        // One right after the other: what is written down of the origin on the wall clock must not
        // be later than the origin is.
        let (now, wall) = (clock::monotonic(), clock::wall());
        let origin = match self {
            Self::Soon => now + START_DELAY + Nanos(START_DELAY_PER_CLIENT.0 * u64::from(clients)),
            Self::At(origin) => origin,
        };
        (origin, (wall + origin).saturating_sub(now).0)
    }
}

/// Works on one load point and reports through `events`; returns when every worker has drained.
/// Setting `stop` ends the point early, within milliseconds.
pub fn run_point(
    assignment: &Assignment,
    workload: &dyn Workload,
    origin: Origin,
    (events, stop): (&SyncSender<AgentEvent>, &AtomicBool),
) -> Result<(), AgentError> {
    let clients = assignment.own_clients();
    raise_descriptor_limit(clients)?;
    let (origin, at_unix_ns) = origin.instants(clients);
    let workers = assignment.own_workers();
    let instances =
        workers.clone().map(|_| EpollDriver::instance()).collect::<io::Result<Vec<_>>>().map_err(
            |source| AgentError::Host {
                doing: "make an epoll instance",
                source,
                remedy: "raise the limit of open files (`ulimit -n`)",
            },
        )?;
    let _ = events.send(AgentEvent::Started { at_unix_ns });
    thread::scope(|scope| {
        let handles = instances
            .into_iter()
            .zip(workers)
            .map(|(instance, worker)| {
                let (supplier, fresh) = FreshTimes::supplied(workload.op_names().0.len());
                let thread = thread::Builder::new().name(format!("histograms {worker}"));
                thread.spawn_scoped(scope, || supplier.run())?;
                let thread = thread::Builder::new().name(format!("worker {worker}"));
                thread.spawn_scoped(scope, move || {
                    let driver = Box::new(EpollDriver::new(instance, origin));
                    let _guard = StopOnPanic(stop);
                    settle_in(assignment, worker);
                    workload.run_worker(Seat {
                        assignment,
                        worker,
                        op_names: workload.op_names(),
                        ops_per_arrival: workload.ops_per_arrival(),
                        clients_per_session: workload.clients_per_session(),
                        recorded: workload.recorded(),
                        events,
                        fresh,
                        stop,
                        driver: SeatDriver::Epoll(driver),
                    });
                })
            })
            .collect::<io::Result<Vec<_>>>()
            .inspect_err(|_| stop.store(true, Ordering::Relaxed))
            .map_err(|source| AgentError::Host {
                doing: "start the threads of a worker",
                source,
                remedy: "raise the limit of processes (`ulimit -u`) or ask for fewer workers",
            })?;
        for handle in handles {
            if let Err(panic) = handle.join() {
                let message = panic_message(panic.as_ref());
                let _ = events.send(AgentEvent::WorkerPanicked { message });
            }
        }
        Ok(())
    })
}

/// A point with a bug in it is not a measurement: the other workers stop too.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// Pins the thread and sets its timers.
fn settle_in(assignment: &Assignment, worker: u32) {
    if !assignment.cores.is_empty() {
        let place = worker - assignment.own_workers().start;
        let core = assignment.cores[place as usize % assignment.cores.len()];
        let mut set = CpuSet::new();
        set.set(core as usize);
        // A core that has gone away leaves the thread where it is; the disclosure names the cores
        // that were asked for, and the generator's health shows what came of it.
        let _ = sched_setaffinity(None, &set);
    }
    if assignment.pacing != Pacing::Coalesce {
        let _ = EpollDriver::fire_timers_exactly();
    }
    if assignment.priority == Priority::Auto {
        ask_for_the_core();
    }
}

/// Asks that the calling thread has its core when it wants it: a higher priority, and short slices;
/// which of the two were granted.
fn ask_for_the_core() -> (bool, bool) {
    (raise_priority(), slice::shorten())
}

/// Puts the calling thread above other programs; true where that is permitted. Not a real-time
/// priority: a thread of that kind that polls is stopped for 50 ms in each second.
fn raise_priority() -> bool {
    const NICE: i32 = -15;
    const NICE_IN_A_GROUP: i32 = -5;
    let nice = if shares_by_group() { NICE_IN_A_GROUP } else { NICE };
    setpriority_process(None, nice).is_ok()
}

/// What came of asking for a higher priority for workers, in words; tried on a thread of its own.
pub fn raised_priority() -> String {
    let tried = thread::spawn(ask_for_the_core).join();
    let (is_raised, has_short_slices) = tried.unwrap_or_default();
    let priority = match is_raised {
        true if shares_by_group() => {
            "raised a little: the kernel shares time out by sessions or control groups here, and \
             what a worker gains it takes from its own server"
        }
        true => "raised",
        false => "as any other program's: raising it is not permitted here",
    };
    let slices = if has_short_slices { "; slices of 0.1 ms" } else { "" };
    format!("{priority}{slices}")
}

/// Whether this program is in a group with others to which the scheduler gives time together. It
/// divides a group's time among cores by the priorities there: raised by 15, a worker is no better
/// off against other groups, and leaves its server on another core a thirtieth of the group's time;
/// raised by 5, a quarter.
fn shares_by_group() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let autogroup = read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1";
    autogroup || read("/proc/self/cgroup").lines().any(is_group)
}

/// A line of `/proc/self/cgroup`, see cgroups(7): a group below the root to which time is given.
fn is_group(line: &str) -> bool {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or("/"));
    match controllers {
        "" => {
            let folder = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
            folder.join("cpu.weight").exists()
        }
        _ => controllers.split(',').any(|name| name == "cpu") && path != "/",
    }
}

/// Raises the limit of open files to what the host permits.
///
/// # Errors
/// When that is too little for connections of so many clients.
pub fn raise_descriptor_limit(clients: u32) -> Result<(), AgentError> {
    let wanted = u64::from(clients) + SPARE_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none() || current == maximum && current >= Some(wanted) {
        return Ok(());
    }
    if let Some(limit) = maximum.filter(|maximum| *maximum < wanted) {
        return Err(AgentError::TooManyClients { clients, limit, wanted });
    }
    let raised = Rlimit { current: maximum.or(Some(wanted)), maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| AgentError::Host {
        doing: "raise the limit of open files",
        source: error.into(),
        remedy: "raise it with `ulimit -n` or ask for fewer clients",
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a worker panicked without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_below_the_root_is_one_that_time_is_shared_out_to() {
        assert!(is_group("4:cpu,cpuacct:/user.slice"));
        assert!(!is_group("4:cpu,cpuacct:/") && !is_group("8:pids:/user.slice"));
        assert!(!is_group("0::/no/such/group") && !is_group("") && !is_group("0::"));
    }
}
