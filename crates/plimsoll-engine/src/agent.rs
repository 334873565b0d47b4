//! An agent: works on one load point with the requested number of workers.
//!
//! A local run uses the same path as a remote agent would: it takes an assignment and returns
//! events.

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::{io, mem, thread};

use plimsoll_model::assignment::{Assignment, Load, Pacing, Priority};
use plimsoll_model::event::AgentEvent;
use plimsoll_model::units::Nanos;
use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit,
};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock;
use crate::driver::epoll::EpollDriver;
use crate::fresh::FreshTimes;
use crate::worker::{WorkerContext, WorkerDriver};
use crate::workload::Workload;

/// Workers start together, this long after the request: time to notify the listeners, and to create
/// and pin all threads …
const START_DELAY: Nanos = Nanos::from_millis(10);
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
        "{connections} connections need more open files than the limit of {limit}; raise it with `ulimit -n {required}` or ask for fewer clients"
    )]
    TooManyConnections {
        /// Those of the requested clients.
        connections: u32,
        /// Hard limit of open files.
        limit: u64,
        /// A limit that would do.
        required: u64,
    },
}

/// Histograms that wait for the listener hold at most this much memory.
const EVENTS_BYTES_MAX: usize = 512 * 1_024 * 1_024;
/// Least memory of an interval for each op kind: ten histograms, most of 135 kB.
const KIND_BYTES: usize = 1_300_000;
/// A worker has room for a few intervals however many op kinds there are.
const EVENTS_MIN: usize = 8;

/// The queue of events from the workers to their listener. If the listener does not run before it
/// is full, workers wait: their ops are late, which is counted, and memory is bounded.
pub fn event_queue(
    op_kinds: usize,
    workers: u32,
) -> (SyncSender<AgentEvent>, Receiver<AgentEvent>) {
    let room = EVENTS_BYTES_MAX / (op_kinds.max(1) * KIND_BYTES);
    sync_channel(room.max(EVENTS_MIN * workers.max(1) as usize))
}

/// When the workers of a load point can be ready, on this host's monotonic clock.
pub fn soonest(assignment: &Assignment) -> Nanos {
    let clients = u64::from(assignment.own_clients());
    clock::monotonic() + START_DELAY + Nanos(START_DELAY_PER_CLIENT.0 * clients)
}

/// An instant of the monotonic clock in nanoseconds since the Unix epoch.
pub fn on_wall_clock(instant: Nanos) -> u64 {
    // One right after the other: a recorded wall-clock instant must not be later than the true one.
    let (now, wall) = (clock::monotonic(), clock::wall());
    (wall + instant).saturating_sub(now).0
}

/// Works on one load point and reports through `events`; returns when every worker has drained. The
/// point's clock starts at `origin`: workers that are not ready by then send their first ops late,
/// which is counted. Setting `stop` ends the point early, within milliseconds.
pub fn run_point(
    assignment: &Assignment,
    workload: &dyn Workload,
    origin: Nanos,
    (events, stop): (&SyncSender<AgentEvent>, &AtomicBool),
) -> Result<(), AgentError> {
    let clients = assignment.own_clients();
    let spare = raise_descriptor_limit(connections_of(&assignment.load, clients, workload))?;
    let at_unix_ns = on_wall_clock(origin);
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
                    workload.run_worker(WorkerContext {
                        assignment,
                        worker,
                        op_names: workload.op_names(),
                        ops_per_arrival: workload.ops_per_arrival(),
                        clients_per_session: workload.clients_per_session(),
                        spare_links: spare / assignment.own_workers().len().max(1) as u32,
                        recorded: workload.recorded(),
                        events,
                        fresh,
                        stop,
                        driver: WorkerDriver::Epoll(driver),
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
        let index = worker - assignment.own_workers().start;
        let core = assignment.cores[index as usize % assignment.cores.len()];
        let mut set = CpuSet::new();
        set.set(core as usize);
        // A core that has gone away leaves the thread where it is; the disclosure names the
        // requested cores, and the generator's health shows the effect.
        let _ = sched_setaffinity(None, &set);
    }
    if assignment.pacing != Pacing::Coalesce {
        let _ = EpollDriver::fire_timers_exactly();
    }
    if assignment.priority == Priority::Auto {
        ask_for_the_core();
    }
}

/// Requests a higher priority and short time slices for the calling thread; which of the two were
/// granted.
fn ask_for_the_core() -> (bool, bool) {
    (raise_priority(), shorten_slices())
}

/// Puts the calling thread above other programs; true where that is permitted. Not a real-time
/// priority: a thread of that kind that polls is stopped for 50 ms in each second.
fn raise_priority() -> bool {
    const NICE: i32 = -15;
    const NICE_IN_A_GROUP: i32 = -5;
    let nice = if shares_by_group() { NICE_IN_A_GROUP } else { NICE };
    setpriority_process(None, nice).is_ok()
}

/// The outcome of requesting a higher priority for workers, as text; tried on its own thread.
pub fn raised_priority() -> String {
    let (is_raised, has_short_slices) = thread::spawn(ask_for_the_core).join().unwrap_or_default();
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

/// Number of connections that this many clients of a workload have. Where sessions arrive,
/// most clients wait for one: each session counts with one connection.
pub fn connections_of(load: &Load, clients: u32, workload: &dyn Workload) -> u32 {
    let sessions = clients.div_ceil(workload.clients_per_session().max(1));
    match load.is_sessions() {
        true => sessions,
        false => sessions.saturating_mul(workload.connections_per_session()),
    }
}

/// Raises the limit of open files to what the host permits. Returns the number of further
/// connections that it leaves room for.
///
/// # Errors
/// When the limit is too low for this many connections.
pub fn raise_descriptor_limit(connections: u32) -> Result<u32, AgentError> {
    let required = u64::from(connections) + SPARE_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if let Some(limit) = maximum.filter(|maximum| *maximum < required) {
        return Err(AgentError::TooManyConnections { connections, limit, required });
    }
    let raised = Rlimit { current: maximum.or(Some(required)), maximum };
    if current.is_some() && current != maximum {
        setrlimit(Resource::Nofile, raised).map_err(|error| AgentError::Host {
            doing: "raise the limit of open files",
            source: error.into(),
            remedy: "raise it with `ulimit -n` or ask for fewer clients",
        })?;
    }
    let limit = if current.is_none() { None } else { raised.current };
    Ok(limit.map_or(u32::MAX, |limit| u32::try_from(limit - required).unwrap_or(u32::MAX)))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a worker panicked without a message".to_owned())
}

/// The shortest that the kernel grants.
const SLICE_NS: u64 = 100_000;

/// Asks for short slices of time for the calling thread; true if granted, which needs no privilege.
/// Since Linux 6.12 a thread that wakes up has the core at once if its slices are shorter than
/// those of the thread that runs and it had less than its share of the core. The share stays the
/// same. Older kernels accept the call and ignore it.
#[allow(unsafe_code, reason = "no safe crate has sched_setattr")]
fn shorten_slices() -> bool {
    let Ok(nice) = getpriority_process(None) else { return false };
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: all fields of `sched_attr` are plain numbers, for which zero is valid. The kernel
    // reads, and in the second call writes, as many bytes as `size` says, and keeps no pointer to
    // them.
    let (accepted, has) = unsafe {
        let mut attributes = libc::sched_attr {
            size,
            sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
            sched_nice: nice,
            sched_runtime: SLICE_NS,
            ..mem::zeroed()
        };
        let set = libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        attributes.sched_runtime = 0;
        let got = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0);
        (set == 0 && got == 0, attributes.sched_runtime)
    };
    accepted && has == SLICE_NS
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::process::setpriority_process;

    use super::*;

    #[test]
    fn a_control_group_below_the_root_is_one_that_time_is_shared_out_to() {
        assert!(is_group("4:cpu,cpuacct:/user.slice"));
        assert!(!is_group("4:cpu,cpuacct:/") && !is_group("8:pids:/user.slice"));
        assert!(!is_group("0::/no/such/group") && !is_group("") && !is_group("0::"));
    }

    #[test]
    fn where_the_kernel_knows_them_anybody_has_short_slices_and_the_priority_stays() {
        let release = rustix::system::uname();
        let release = release.release().to_string_lossy();
        let version: Vec<u32> = release.split(['.', '-']).map_while(|n| n.parse().ok()).collect();
        let on_a_thread_of_its_own = thread::spawn(|| {
            setpriority_process(None, 3).unwrap();
            (shorten_slices(), getpriority_process(None).unwrap())
        });
        let supported = version.as_slice() >= [6, 12].as_slice();
        assert_eq!(on_a_thread_of_its_own.join().unwrap(), (supported, 3));
    }
}
