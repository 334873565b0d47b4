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
    Monitor, MonitorConfig, Root, WatchedCores, WatchedProcess, interface_towards,
};
use plimsoll_protocol::{Plan, Work};
use plimsoll_servers::cores;

use super::workers::{Next, PointEvent, WorkerEvents, make_load};
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
        let point_use = self.monitor.point_finished();
        (self.notify)(match driven {
            Ok(report) => LoadEvent::Finished(Box::new(PointReport {
                started_ns: at.0,
                process_cpu_ns: point_use.process_cpu_ns,
                monitor_cpu_ns: point_use.monitor_cpu_ns,
                clock_step_ns: point_use.clock_step_ns,
                resources: point_use.resources,
                core_users: point_use.core_users,
                ..report
            })),
            Err(failure) => LoadEvent::Failed(failure.to_string()),
        });
    }

    fn drive(
        &self,
        assignment: &Assignment,
        workload: &dyn Workload,
        at: Nanos,
    ) -> Result<PointReport, Failure> {
        let (monitor, notify, cores) = (&self.monitor, &self.notify, &self.cores[..]);
        make_load(assignment, workload, &self.stop, move |workers, begin| {
            step_aside(monitor, cores, assignment)?;
            // Before the load starts, which may leave this thread no CPU time.
            let (phases, start) = (assignment.phases, agent::on_wall_clock(at));
            let [from, to] = [phases.warm_up_ns, phases.window_end()].map(|it| it.0);
            monitor.point_window(start + from, start + to);
            begin(at);
            listen(notify, workers)
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

/// Takes every thread of this program off the workers' cores, if it may use any other core.
fn step_aside(monitor: &Monitor, cores: &[u32], assignment: &Assignment) -> Result<(), Failure> {
    let others = cores.iter().copied().filter(|core| !assignment.cores.contains(core));
    let others: Vec<u32> = others.collect();
    let rest = if others.is_empty() { cores } else { &others };
    let own_threads = cores::pin_all_threads(rest)
        .map_err(|e| Failure::unusable(format!("cannot keep to cores: {e}")))?;
    monitor.point_started(&assignment.point.stem());
    if looks_for_others(assignment) {
        monitor.point_cores(WatchedCores { cores: assignment.cores.clone(), own_threads });
    }
    Ok(())
}

/// Whether to look for other users of the workers' cores. Not where many agents share them.
fn looks_for_others(assignment: &Assignment) -> bool {
    assignment.own_cores || assignment.workers <= LOOKING_MAX
}

/// Reports what the workers do until they have ended.
fn listen(
    notify: &impl Fn(LoadEvent),
    mut workers: WorkerEvents<'_>,
) -> Result<PointReport, Failure> {
    let mut slices = Vec::new();
    loop {
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
