//! The load of an agent: one thread that makes plans, prepares load points and runs them, in the
//! order of the requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use plimsoll_engine::agent;
use plimsoll_engine::workload::Workload;
use plimsoll_fleet::agent::LoadEvent;
use plimsoll_fleet::launcher::allow::Allowance;
use plimsoll_fleet::message::{NetworkRoute, OrderedTarget, PlanOrder, PointReport};
use plimsoll_model::assignment::Assignment;
use plimsoll_model::units::Nanos;
use plimsoll_monitor::{
    Monitor, MonitorConfig, PointMonitors, Root, WatchedCores, WatchedProcess, interface_towards,
};
use plimsoll_protocol::{Plan, Work};
use plimsoll_servers::cores;

use super::workers::{Next, PointEvent, WorkerEvents, make_load};
use crate::clock::unix_ns;
use crate::dial::SystemDial;
use crate::failure::Failure;
use crate::fleet::{AgentDial, plan_of};
use crate::own_addresses;
use crate::signals::Signals;

/// Above this number of workers in all, workers that share their cores do not look for other users
/// of them: each agent reads all threads of its host. 256 agents on two cores had 2,800 threads and
/// took six seconds, in which no heartbeat came through.
const LOOKING_MAX: u32 = 32;

/// A job for the load thread.
pub(super) enum Job {
    /// Make workloads.
    Plan(Box<PlanOrder>),
    /// Prepare a load point.
    Prepare(Box<Assignment>),
    /// Run it, starting at that instant.
    Start(Nanos),
}

/// The load thread's interface.
pub(super) struct Loader {
    pub jobs: Sender<Job>,
    /// Ends the load of the current point.
    pub stop: Arc<AtomicBool>,
}

impl Loader {
    /// Starts the thread, which reports to `notify`.
    pub(super) fn start(
        signals: &Signals,
        (cores, allowed): (Vec<u32>, Arc<Allowance>),
        notify: impl Fn(LoadEvent) + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let (jobs, job_queue) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let monitor = MonitorConfig {
            processes: vec![WatchedProcess::own("generator")],
            ..MonitorConfig::default()
        };
        let monitor = Monitor::start(monitor).map_err(|e| Failure::unusable(e.to_string()))?;
        let work = Worksite {
            signals: signals.clone(),
            cores,
            allowed,
            monitor,
            plan: None,
            ready: None,
            stop: Arc::clone(&stop),
            notify,
        };
        thread::Builder::new()
            .name("plimsoll-load".into())
            .spawn(move || work.perform(&job_queue))
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        Ok(Self { jobs, stop })
    }
}

struct Worksite<S> {
    signals: Signals,
    /// Cores that this program may use.
    cores: Vec<u32>,
    /// What the owner of this host permits.
    allowed: Arc<Allowance>,
    monitor: Monitor,
    plan: Option<(Plan, AgentDial)>,
    ready: Option<(Assignment, Arc<dyn Workload>)>,
    stop: Arc<AtomicBool>,
    notify: S,
}

impl<S: Fn(LoadEvent) + Sync> Worksite<S> {
    fn perform(mut self, job_queue: &Receiver<Job>) {
        for job in job_queue {
            match job {
                Job::Plan(order) => {
                    let planned = self.plan(&order).map_err(|failure| failure.to_string());
                    (self.notify)(LoadEvent::Planned(planned));
                }
                Job::Prepare(assignment) => {
                    self.stop.store(false, Ordering::Relaxed);
                    let ready = self.prepare(*assignment);
                    (self.notify)(LoadEvent::Ready(ready.map_err(|failure| failure.to_string())));
                }
                Job::Start(at) => self.run(at),
            }
        }
    }

    fn plan(&mut self, order: &PlanOrder) -> Result<Vec<NetworkRoute>, Failure> {
        let dial = SystemDial::new(self.signals.clone());
        self.plan = Some(plan_of(order, dial, Arc::clone(&self.allowed))?);
        Ok(order.targets.iter().map(route_to).collect())
    }

    fn prepare(&mut self, assignment: Assignment) -> Result<(), Failure> {
        let (plan, dial) = self.plan.as_mut().ok_or_else(|| Failure::wrong("there is no plan"))?;
        let workload = match &mut plan.work {
            Work::Fixed(workload) => workload.clone(),
            Work::PerPoint(preparation) => {
                preparation.attach(&assignment.load, assignment.files, dial)?
            }
        };
        self.ready = Some((assignment, workload));
        Ok(())
    }

    /// Runs the prepared load point.
    fn run(&mut self, at: Nanos) {
        let Some((assignment, workload)) = self.ready.take() else { return };
        let driven = self.drive(&assignment, &*workload, at);
        let last = self.monitor.point_finished();
        (self.notify)(match driven {
            Ok((mut report, observed)) => {
                let mut windows = observed.into_iter().chain([last]);
                add_observation(&mut report, at, windows.next());
                let later = report.later.iter_mut();
                later.for_each(|report| add_observation(report, at, windows.next()));
                LoadEvent::Finished(Box::new(report))
            }
            Err(failure) => LoadEvent::Failed(failure.to_string()),
        });
    }

    fn drive(
        &self,
        assignment: &Assignment,
        workload: &dyn Workload,
        at: Nanos,
    ) -> Result<(PointReport, Vec<PointMonitors>), Failure> {
        let (monitor, notify, cores) = (&self.monitor, &self.notify, &self.cores[..]);
        make_load(assignment, workload, &self.stop, move |workers, begin| {
            let own_threads = step_aside(cores, assignment)?;
            // Before the load starts, which may leave this thread no CPU time.
            let start_unix_ns = agent::on_wall_clock(at);
            let watched = WatchedCores { cores: assignment.cores.clone(), own_threads };
            let mut windows =
                WindowMonitors { monitor, assignment, start_unix_ns, watched, ended: Vec::new() };
            windows.begin();
            begin(at);
            let report = listen(notify, workers, || windows.look_up())?;
            Ok((report, windows.ended))
        })
    }
}

/// How clients of this host reach the target.
fn route_to(target: &OrderedTarget) -> NetworkRoute {
    if target.unix.is_some() {
        return NetworkRoute::default();
    }
    NetworkRoute {
        interface: interface_towards(&Root::default(), target.address.ip()),
        source: own_addresses::towards(target.address),
    }
}

/// Adds what the monitors observed in a window.
fn add_observation(report: &mut PointReport, start: Nanos, observed: Option<PointMonitors>) {
    let observed = observed.unwrap_or_default();
    report.started_ns = start.0;
    report.process_cpu_ns = observed.process_cpu_ns;
    report.monitor_cpu_ns = observed.monitor_cpu_ns;
    report.clock_step_ns = observed.clock_step_ns;
    report.resources = observed.resources;
    report.core_users = observed.core_users;
}

/// Observes each window of a load point by itself.
struct WindowMonitors<'a> {
    monitor: &'a Monitor,
    assignment: &'a Assignment,
    start_unix_ns: u64,
    watched: WatchedCores,
    /// What was observed in the windows that have ended.
    ended: Vec<PointMonitors>,
}

impl WindowMonitors<'_> {
    /// Begins the observation of the next window, now or when it begins.
    fn begin(&self) {
        let number = self.ended.len();
        let windows = self.assignment.points().zip(self.assignment.windows());
        let Some((point, window)) = windows.into_iter().nth(number) else { return };
        self.monitor.point_started(&point.stem());
        if looks_for_others(self.assignment) {
            self.monitor.point_cores(self.watched.clone());
        }
        let [from, to] =
            [window.warm_up_ns, window.window_end()].map(|it| self.start_unix_ns + it.0);
        self.monitor.point_window(from.max(if number > 0 { unix_ns() } else { 0 }), to);
    }

    /// Goes on to the next window, if that has begun.
    fn look_up(&mut self) {
        let next = self.assignment.windows().get(self.ended.len() + 1).copied();
        if next.is_some_and(|next| unix_ns() >= self.start_unix_ns + next.warm_up_ns.0) {
            self.ended.push(self.monitor.point_finished());
            self.begin();
        }
    }
}

/// Takes every thread of this program off the workers' cores, if it may use any other core.
/// Returns these threads.
fn step_aside(cores: &[u32], assignment: &Assignment) -> Result<Vec<u32>, Failure> {
    let others = cores.iter().copied().filter(|core| !assignment.cores.contains(core));
    let others: Vec<u32> = others.collect();
    let rest = if others.is_empty() { cores } else { &others };
    cores::pin_all_threads(rest)
        .map_err(|e| Failure::unusable(format!("cannot keep to cores: {e}")))
}

/// Whether to look for other users of the workers' cores. Not where many agents share them.
fn looks_for_others(assignment: &Assignment) -> bool {
    assignment.own_cores || assignment.workers <= LOOKING_MAX
}

/// Reports what the workers do until they have ended.
fn listen(
    notify: &impl Fn(LoadEvent),
    mut workers: WorkerEvents<'_>,
    mut look_up: impl FnMut(),
) -> Result<PointReport, Failure> {
    let mut slices = Vec::new();
    loop {
        look_up();
        match workers.next()? {
            Next::Quiet | Next::Event(PointEvent::Started { .. }) => {}
            Next::Event(PointEvent::Sample(sample)) => notify(LoadEvent::Sample(sample)),
            Next::Event(PointEvent::ClientLost { client, reason, at }) => {
                notify(LoadEvent::ClientLost { client, reason, at });
            }
            Next::Event(PointEvent::Second(second)) => notify(LoadEvent::Second(Box::new(second))),
            Next::Event(PointEvent::Excess(packed)) => slices.push(packed),
            Next::End((report, left)) => {
                slices.extend(left);
                notify(LoadEvent::Slices(slices));
                return Ok(report);
            }
        }
    }
}
