//! The load of an agent: one thread that makes plans, gets ready for load points and runs them, in
//! the order in which it is asked.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use plimsoll_engine::agent::{self, Origin};
use plimsoll_engine::workload::Workload;
use plimsoll_fleet::agent::LoadEvent;
use plimsoll_fleet::launcher::allow::Allowance;
use plimsoll_fleet::message::{OrderedTarget, PlanOrder, PointReport, Way};
use plimsoll_model::assignment::Assignment;
use plimsoll_model::event::AgentEvent;
use plimsoll_model::units::Nanos;
use plimsoll_monitor::{
    Monitor, MonitorConfig, Root, WatchedCores, WatchedProcess, interface_towards,
};
use plimsoll_protocol::{Plan, Work};
use plimsoll_servers::cores;

use super::tally::{Heard, Tally};
use crate::dial::SystemDial;
use crate::exit::Failure;
use crate::fleet::{AgentDial, plan_of};
use crate::own_addresses;
use crate::signals::Signals;

/// Workers in all above which those that share their cores do not look for who else uses them: each
/// agent reads all threads of its host, and 256 agents on two cores had 2,800 of them. They took six
/// seconds for it, in which no heartbeat came through.
const LOOKING_MAX: u32 = 32;

/// Something to do for the load thread.
pub(super) enum Job {
    /// Make workloads.
    Plan(Box<PlanOrder>),
    /// Get ready for a load point.
    Prepare(Box<Assignment>),
    /// Run it from that instant on.
    Start(Nanos),
}

/// The load thread's end of things.
pub(super) struct Loader {
    pub jobs: Sender<Job>,
    /// Ends the load of the point under way.
    pub stop: Arc<AtomicBool>,
}

impl Loader {
    /// Starts the thread; what it has to say goes to `say`.
    pub(super) fn start(
        signals: &Signals,
        (cores, allowed): (Vec<u32>, Arc<Allowance>),
        say: impl Fn(LoadEvent) + Send + Sync + 'static,
    ) -> Result<Self, Failure> {
        let (jobs, asked) = channel();
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
            say,
        };
        thread::Builder::new()
            .name("plimsoll-load".into())
            .spawn(move || work.perform(&asked))
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
    say: S,
}

impl<S: Fn(LoadEvent) + Sync> Worksite<S> {
    fn perform(mut self, asked: &Receiver<Job>) {
        for job in asked {
            match job {
                Job::Plan(order) => {
                    let planned = self.plan(&order).map_err(|failure| failure.to_string());
                    (self.say)(LoadEvent::Planned(planned));
                }
                Job::Prepare(assignment) => {
                    self.stop.store(false, Ordering::Relaxed);
                    let ready = self.prepare(*assignment);
                    (self.say)(LoadEvent::Ready(ready.map_err(|failure| failure.to_string())));
                }
                Job::Start(at) => self.run(at),
            }
        }
    }

    fn plan(&mut self, order: &PlanOrder) -> Result<Vec<Way>, Failure> {
        let dial = SystemDial::new(self.signals.clone());
        self.plan = Some(plan_of(order, dial, Arc::clone(&self.allowed))?);
        Ok(order.targets.iter().map(way_to).collect())
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

    /// Runs the load point that is ready.
    fn run(&mut self, at: Nanos) {
        let Some((assignment, workload)) = self.ready.take() else { return };
        let driven = self.drive(&assignment, &*workload, at);
        let seen = self.monitor.point_finished();
        (self.say)(match driven {
            Ok(report) => LoadEvent::Finished(Box::new(PointReport {
                started_ns: at.0,
                process_cpu_ns: seen.process_cpu_ns,
                monitor_cpu_ns: seen.monitor_cpu_ns,
                clock_step_ns: seen.clock_step_ns,
                resources: seen.resources,
                core_users: seen.core_users,
                ..report
            })),
            Err(failure) => LoadEvent::Failed(failure.to_string()),
        });
    }

    /// As in a local run: the workers' parent is this thread, the listener has a low priority.
    fn drive(
        &self,
        assignment: &Assignment,
        workload: &dyn Workload,
        at: Nanos,
    ) -> Result<PointReport, Failure> {
        let (events, heard) = agent::event_queue(workload.op_names().0.len(), assignment.workers);
        let (out_of_the_way, ready) = channel();
        let (monitor, say, cores) = (&self.monitor, &self.say, &self.cores[..]);
        thread::scope(|scope| {
            let listener = thread::Builder::new()
                .name("plimsoll-listen".into())
                .spawn_scoped(scope, move || {
                    step_aside(monitor, cores, assignment)?;
                    let _ = out_of_the_way.send(());
                    listen(monitor, say, assignment, &heard)
                })
                .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
            if ready.recv().is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let channels = (&events, &*self.stop);
            let end = agent::run_point(assignment, workload, Origin::At(at), channels);
            drop(events);
            let report = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            end.map_err(|e| Failure::unusable(e.to_string()))?;
            report
        })
    }
}

/// How clients of this host get there.
fn way_to(target: &OrderedTarget) -> Way {
    if target.unix.is_some() {
        return Way::default();
    }
    Way {
        interface: interface_towards(&Root::default(), target.address.ip()),
        source: own_addresses::towards(target.address),
    }
}

/// Takes every thread of this program off the workers' cores, wherever it may use another core.
fn step_aside(monitor: &Monitor, cores: &[u32], assignment: &Assignment) -> Result<(), Failure> {
    let _ = cores::lower_priority();
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

/// Who else uses the workers' cores is looked for, unless a crowd of agents would be found there.
fn looks_for_others(assignment: &Assignment) -> bool {
    assignment.own_cores || assignment.workers <= LOOKING_MAX
}

/// Counts what the workers say until they have ended.
fn listen(
    monitor: &Monitor,
    say: &impl Fn(LoadEvent),
    assignment: &Assignment,
    heard: &Receiver<AgentEvent>,
) -> Result<PointReport, Failure> {
    let kept = |e: io::Error| Failure::unusable(format!("cannot keep times in memory: {e}"));
    let mut tally = Tally::new(assignment);
    for event in heard {
        match tally.hear(event).map_err(kept)? {
            Heard::Counted => {}
            Heard::Started { at_unix_ns } => {
                let from = at_unix_ns + assignment.phases.warm_up_ns.0;
                let to = at_unix_ns + assignment.phases.window_end().0;
                monitor.point_window(from, to);
            }
            Heard::Sample(sample) => say(LoadEvent::Sample(sample)),
            Heard::ClientLost { client, reason, at } => {
                say(LoadEvent::ClientLost { client, reason, at });
            }
        }
        while let Some(second) = tally.next_second() {
            say(LoadEvent::Second(Box::new(second)));
        }
    }
    tally.end().map_err(kept)?;
    let (report, slices) = tally.into_report();
    say(LoadEvent::Slices(slices.into_packed()));
    Ok(report)
}
