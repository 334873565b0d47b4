//! Watches another host through a source, in a thread of its own, so that a slow or silent source
//! never delays a load point.

mod outages;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_model::consumers::HostWork;
use plimsoll_model::event::{CoreUserKind, ResourceUse};
use rustix::process::setpriority_process;

use super::outputs::{CsvWriters, Outputs};
use super::sums::{COVERED_MIN_RATIO, OwnCpu, Sums, WITHIN_ELSEWHERE_MIN_RATIO};
use super::thread::{NICE, monotonic_at, next_sample_ns};
use super::{INTERVAL_DEFAULT, MonitorError};
use crate::census::Census;
use crate::clock::{self, ClockReading};
use crate::process::WatchedProcess;
use crate::root::Root;
use crate::sampler::{Sample, Sampler};
use crate::source::{Fetched, Lost, Source};
use outages::{ClockSteps, Outages};

/// After a point, the longest wait for a sample under way: the load has ended by then.
const LAST_SAMPLE_WAIT: Duration = Duration::from_millis(500);
/// At the end, the longest wait for the thread; a blocked one ends with the program.
const END_WAIT: Duration = Duration::from_secs(1);
/// Time until a source that did not answer is polled again.
const RETRY_NS: u64 = 2_000_000_000;
/// All processes are requested this long before the window, so that the shell there has finished
/// when the window begins (measured: 0.1 s for 2,000 on a machine with other work).
const LOOK_AHEAD_NS: u64 = 300_000_000;
/// Time until a source that had nothing new is polled again.
const ASK_AGAIN_NS: u64 = 200_000_000;

/// Samples another host until stopped or dropped.
#[derive(Debug)]
pub struct RemoteMonitor {
    name: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// State that owner and thread share. Locked for moments only, never while the source is polled.
#[derive(Debug, Default)]
struct State {
    stopping: bool,
    ended: bool,
    rescan: bool,
    ports: Option<Vec<u16>>,
    point: Option<Point>,
    /// When the last sample was due, and when it was taken.
    last_due_ns: u64,
    last_taken_ns: u64,
    outages: Outages,
    clock: ClockSteps,
    failed: Option<MonitorError>,
}

/// The load point that runs.
#[derive(Debug, Default)]
struct Point {
    stem: String,
    window: Option<(u64, u64)>,
    sums: Sums,
    processes: Processes,
    /// CPU time the source used on its host in the window, and its largest rate.
    cost_ns: f64,
    cost_max: Option<f64>,
}

/// All processes of the host, shortly before the window and at its end.
#[derive(Debug, Default)]
struct Processes {
    /// Whether each of the two was requested.
    requested: [bool; 2],
    before: Option<Census>,
    work: Option<HostWork>,
}

/// Figures of another host for a load point.
#[derive(Debug, Default, PartialEq)]
pub struct RemotePoint {
    /// Mean and maximum of everything the source reported in the window.
    pub resources: Vec<ResourceUse>,
    /// Where the processor time of the host went, where the source reports it.
    pub work: Option<HostWork>,
}

impl RemoteMonitor {
    /// Samples a source from now on, once a second; rows go to a directory of its own below
    /// `directory`. Programs that it runs on this host are pinned to `cores`.
    pub fn start(
        mut source: Source,
        directory: &Path,
        cores: &[u32],
    ) -> Result<Self, MonitorError> {
        source.peer.keep_to(cores);
        let name = source.url().name();
        let outputs = Outputs::in_directory(&directory.join(source.url().directory()))?;
        let shared = Arc::new(Shared::default());
        let thread_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("plimsoll-source".into())
            .spawn(move || {
                let _ = setpriority_process(None, NICE);
                Watch::new(source, outputs, thread_shared).run();
            })
            .map_err(MonitorError::Start)?;
        Ok(Self { name, shared, thread: Some(thread) })
    }

    /// Where its figures come from, as results call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From now on, processes that listen on these ports are watched with all descendants, where
    /// the source reports them; without ports, none is.
    pub fn watch_ports(&self, ports: &[u16]) {
        self.shared.state().ports = Some(ports.to_vec());
    }

    /// A load point begins: rows carry its stem from now on.
    pub fn point_started(&self, stem: &str) {
        let mut state = self.shared.state();
        state.rescan = true;
        state.point = Some(Point { stem: stem.to_owned(), ..Point::default() });
    }

    /// The point's measurement window, in nanoseconds since the Unix epoch.
    pub fn point_window(&self, start_unix_ns: u64, end_unix_ns: u64) {
        let now = ClockReading::now();
        let window = (monotonic_at(now, start_unix_ns), monotonic_at(now, end_unix_ns));
        if let Some(point) = &mut self.shared.state().point {
            point.window = Some(window);
        }
        self.shared.changed.notify_all();
    }

    /// The point ended: mean and maximum of everything the source reported in its window, the part
    /// of the window that its samples cover (`monitor.covered`) and what it cost its host
    /// (`monitor.cpu`). Waits half a second at most for the last sample.
    pub fn point_finished(&self) -> RemotePoint {
        let mut state = self.shared.state();
        let is_missing = |state: &mut State| {
            let window = state.point.as_ref().and_then(|point| point.window);
            let last_ns = state.last_taken_ns;
            !state.outages.is_away() && window.is_some_and(|(_, end)| last_ns < end)
        };
        let end = state.point.as_ref().and_then(|point| point.window).map(|(_, end)| end);
        if end.is_some_and(|end| end <= clock::monotonic_ns()) {
            let waited =
                self.shared.changed.wait_timeout_while(state, LAST_SAMPLE_WAIT, is_missing);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let point = state.point.take();
        drop(state);
        let mut point = point.unwrap_or_default();
        let window_ns = point.window_ns();
        let looked_long =
            |it: &HostWork| it.elapsed_ns as f64 >= COVERED_MIN_RATIO * window_ns as f64;
        let work = point.processes.work.take().filter(looked_long);
        let mut resources = point.resources();
        for resource in &mut resources {
            resource.source = Some(self.name.clone());
        }
        RemotePoint {
            resources,
            work: work.map(|work| HostWork { source: Some(self.name.clone()), ..work }),
        }
    }

    /// Stops. The error reports that the source was away for a time, that its clock was set, or
    /// another problem.
    pub fn stop(mut self) -> Result<(), MonitorError> {
        self.end();
        let mut state = self.shared.state();
        if let Some(failed) = state.failed.take() {
            return Err(failed);
        }
        let (name, set) = (self.name.clone(), state.clock.text());
        match (state.outages.text(), set) {
            (None, None) => Ok(()),
            (None, Some(how)) => Err(MonitorError::ClockSet { name, how }),
            (Some(what), None) => Err(MonitorError::Away { name, what }),
            (Some(what), Some(how)) => {
                Err(MonitorError::Away { name, what: format!("{what}, had its clock set {how}") })
            }
        }
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let mut state = self.shared.state();
        state.stopping = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, END_WAIT, |s| !s.ended);
        let ended = waited.unwrap_or_else(PoisonError::into_inner).0.ended;
        if ended && thread.join().is_err() {
            self.shared.state().failed = Some(MonitorError::Panicked);
        }
    }
}

impl Drop for RemoteMonitor {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a sample is due; returns its time. `None`: the owner stops the thread.
    fn wait_until_due(&self) -> Option<u64> {
        let mut state = self.state();
        loop {
            if state.stopping {
                return None;
            }
            let point = state.point.as_ref();
            let window = point.and_then(|point| point.window);
            let due_ns = next_sample_ns(state.last_due_ns, INTERVAL_DEFAULT.0, window);
            let look_ns = point.and_then(Point::look_ns);
            let due_ns = look_ns.map_or(due_ns, |look_ns| due_ns.min(look_ns));
            let wait_ns = due_ns.saturating_sub(clock::monotonic_ns());
            if wait_ns == 0 {
                return Some(due_ns);
            }
            let waited = self.changed.wait_timeout(state, Duration::from_nanos(wait_ns));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The thread's side.
struct Watch {
    source: Source,
    shared: Arc<Shared>,
    writers: CsvWriters,
    /// None before the first answer, and after a gap: no rate spans it.
    sampler: Option<Sampler>,
    servers: Vec<u32>,
    ports: Vec<u16>,
    cost_ns: Option<u64>,
}

/// Says that the thread has ended, however it did.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.state().ended = true;
        self.0.changed.notify_all();
    }
}

impl Watch {
    fn new(source: Source, outputs: Outputs, shared: Arc<Shared>) -> Self {
        let writers = CsvWriters::new(outputs);
        Self {
            source,
            shared,
            writers,
            sampler: None,
            servers: Vec::new(),
            ports: Vec::new(),
            cost_ns: None,
        }
    }

    fn run(mut self) {
        let _ends = Ends(Arc::clone(&self.shared));
        while let Some(due_ns) = self.shared.wait_until_due() {
            self.obey();
            match self.source.peer.fetch(&self.source.frame) {
                Ok(Some(fetched)) => self.sample(&fetched, due_ns),
                Ok(None) => self.ask_again_in(ASK_AGAIN_NS),
                Err(lost) => self.note_outage(lost),
            }
            self.shared.changed.notify_all();
        }
        self.writers.flush();
        self.shared.state().failed = self.writers.into_error();
    }

    fn obey(&mut self) {
        let mut state = self.shared.state();
        let (ports, rescan) = (state.ports.take(), std::mem::take(&mut state.rescan));
        let point = state.point.as_mut();
        let wants_all = point.is_some_and(|point| point.wants_all(clock::monotonic_ns()));
        drop(state);
        if wants_all {
            self.source.peer.read_all();
        }
        if let Some(ports) = ports {
            self.source.peer.watch_ports(&ports);
            self.ports = ports;
        } else if rescan {
            self.source.peer.rescan();
        }
    }

    fn sample(&mut self, fetched: &Fetched, due_ns: u64) {
        if self.servers != fetched.servers {
            self.follow(&fetched.servers);
        }
        let root = Root::of_frame(self.source.frame.clone());
        let (servers, ports) = (&self.servers, &self.ports);
        let sampler = self.sampler.get_or_insert_with(|| {
            Sampler::new(&root, server(servers, ports).into_iter().collect())
        });
        let sample = sampler.sample_reported(fetched.at, fetched.figures.as_ref()).clone();
        let cost_ns = match (self.cost_ns, fetched.cost_ns) {
            (Some(before), Some(now)) if sample.elapsed_ns > 0 => now.checked_sub(before),
            _ => None,
        };
        self.cost_ns = fetched.cost_ns;
        let census = Census::of_frame(&root, fetched.at.monotonic_ns);
        let is_of_server = |pid| sampler.is_of_server(pid).then_some(CoreUserKind::Server);
        let mut state = self.shared.state();
        let stem = state.point.as_ref().map(|point| point.stem.clone()).unwrap_or_default();
        let now_ns = clock::monotonic_ns();
        let late = now_ns.saturating_sub(due_ns) > INTERVAL_DEFAULT.0 / 2;
        state.last_due_ns = if late { now_ns } else { due_ns };
        state.last_taken_ns = fetched.at.monotonic_ns;
        state.outages.end(fetched.at.monotonic_ns);
        state.clock.update(sampler.boot_unix_s());
        if let Some(point) = &mut state.point {
            point.add(&sample, cost_ns);
            if let Some(census) = census {
                point.add_census(census, is_of_server);
            }
        }
        drop(state);
        self.writers.write(&sample, &stem);
    }

    /// Servers that are found late are watched too; if they differ from the earlier ones,
    /// everything starts afresh.
    fn follow(&mut self, servers: &[u32]) {
        match &mut self.sampler {
            Some(sampler) if self.servers.is_empty() => {
                if let Some(server) = server(servers, &self.ports) {
                    sampler.watch(server);
                }
            }
            _ => self.sampler = None,
        }
        self.servers = servers.to_vec();
    }

    fn ask_again_in(&self, ns: u64) {
        let mut state = self.shared.state();
        state.last_due_ns = (clock::monotonic_ns() + ns).saturating_sub(INTERVAL_DEFAULT.0);
    }

    fn note_outage(&mut self, Lost(reason): Lost) {
        self.sampler = None;
        self.ask_again_in(RETRY_NS);
        let mut state = self.shared.state();
        state.outages.begin(clock::monotonic_ns(), reason);
        state.clock.forget();
    }
}

/// The processes that were found on the ports, as one server.
fn server(pids: &[u32], ports: &[u16]) -> Option<WatchedProcess> {
    let server = || WatchedProcess::from_pids("server", pids.to_vec(), ports.to_vec());
    (!pids.is_empty()).then(server)
}

impl Point {
    /// When to look at all processes first, until that is done.
    fn look_ns(&self) -> Option<u64> {
        let (begin, _) = self.window?;
        (!self.processes.requested[0]).then(|| begin.saturating_sub(LOOK_AHEAD_NS))
    }

    /// Whether the sample that is due is to have all processes.
    fn wants_all(&mut self, now_ns: u64) -> bool {
        let Some((begin, end)) = self.window else { return false };
        let due = [begin.saturating_sub(LOOK_AHEAD_NS), end];
        let mut wants = false;
        for (requested, due_ns) in self.processes.requested.iter_mut().zip(due) {
            wants |= !*requested && now_ns >= due_ns;
            *requested |= now_ns >= due_ns;
        }
        wants
    }

    fn add_census(&mut self, now: Census, kind: impl Fn(u32) -> Option<CoreUserKind>) {
        match (&self.processes.before, self.processes.requested) {
            (Some(before), [_, true]) => self.processes.work = now.since(before, kind),
            (Some(_), _) => {}
            (None, _) => self.processes.before = Some(now),
        }
    }

    fn add(&mut self, sample: &Sample, cost_ns: Option<u64>) {
        let Some(window) = self.window else { return };
        let before = self.sums.covered_ns();
        self.sums.add(sample, OwnCpu::default(), window);
        let covered = self.sums.covered_ns() - before;
        if let Some(cost_ns) = cost_ns.filter(|_| covered > 0) {
            let rate = cost_ns as f64 / sample.elapsed_ns as f64;
            self.cost_ns += rate * covered as f64;
            self.cost_max = Some(self.cost_max.map_or(rate, |max| max.max(rate)));
        }
    }

    /// Up to now; one that was cut short has ended.
    fn window_ns(&self) -> u64 {
        let now_ns = clock::monotonic_ns();
        self.window.map_or(0, |(start, end)| end.min(now_ns).saturating_sub(start))
    }

    fn resources(self) -> Vec<ResourceUse> {
        if self.window.is_none() {
            return Vec::new();
        }
        let window_ns = self.window_ns();
        let covered = self.sums.covered_ns() as f64;
        let share = covered / window_ns.max(1) as f64;
        let mut resources = vec![ResourceUse::of_window("monitor.covered", "ratio", share, share)];
        if let Some(max) = self.cost_max {
            resources.push(ResourceUse::of_window(
                "monitor.cpu",
                "cores",
                self.cost_ns / covered,
                max,
            ));
        }
        resources.extend(self.sums.resources(window_ns, WITHIN_ELSEWHERE_MIN_RATIO));
        resources
    }
}

#[cfg(test)]
mod tests;
