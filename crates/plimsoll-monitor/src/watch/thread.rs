//! The loop of the monitor thread.
//!
//! The thread runs before the server and after the workers. At the lowest priority, a sample on a
//! core that the server fills would come seconds late. Its cost is below a hundredth of a core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use plimsoll_model::consumers::HostWork;
use plimsoll_model::event::{CoreUser, CoreUserKind};
use rustix::process::setpriority_process;

use super::alternation::{self, Alternation};
use super::outputs::CsvWriters;
use super::sums::{COVERED_MIN_RATIO, OwnCpu, Sums, WITHIN_MIN_RATIO};
use super::{INTERVAL_MIN, MonitorConfig, MonitorError, PointMonitors};
use crate::census::Census;
use crate::clock::{self, ClockReading, clock_step_ns};
use crate::core_users::{CoreScan, Grown, WatchedCores};
use crate::pace::Pace;
use crate::process::WatchedProcess;
use crate::root::Root;
use crate::sampler::Sampler;

/// Before a server that fills the core it shares with the monitor, where that is permitted, and
/// after the workers: a sample that comes seconds late is of another time than the window.
pub(super) const NICE: i32 = -4;

/// All processes are looked at this long before the window, so that the monitor has finished when
/// the window begins (measured: 17 µs a process or thread, unoptimised).
const LOOK_AHEAD_NS: u64 = 50_000_000;

/// Samples may take this part of one core (0.4 %), and the other looks as much again: both stay
/// within the limit of the rule `monitors`.
const PARTS: u64 = 250;

/// A command of the monitor's owner to its thread.
#[derive(Debug)]
pub(super) enum Command {
    Watch(WatchedProcess),
    PointStarted(String),
    PointCores(WatchedCores),
    PointWindow { start_unix_ns: u64, end_unix_ns: u64 },
    PointFinished(Sender<PointMonitors>),
}

/// The load point that runs.
struct Point {
    stem: String,
    started: ClockReading,
    /// On the monotonic clock, so that a step of the wall clock does not move it.
    window: Option<(u64, u64)>,
    sums: Sums,
    cores: Cores,
    /// Looked at in the window, more often than everything else.
    alternation: Option<Alternation>,
    alternation_pace: Pace,
    alternation_sampled_ns: u64,
}

impl Point {
    /// When to look at the alternation next.
    fn alternation_due_ns(&self, now_ns: u64) -> Option<u64> {
        let (begin, end) = self.window?;
        let next = (self.alternation_sampled_ns + alternation::INTERVAL_NS).max(begin);
        (self.alternation.is_some() && next < end && now_ns < end).then_some(next)
    }
}

/// Who uses the processors in the window of the point, and the workers' cores.
#[derive(Default)]
struct Cores {
    watched: WatchedCores,
    looked: bool,
    /// Shortly before the window begins.
    begin: Option<(Census, Option<CoreScan>)>,
    /// When it ends.
    work: Option<HostWork>,
    /// When it ends.
    users: Option<Vec<CoreUser>>,
    /// The same for the server's cores.
    server_users: Option<Vec<CoreUser>>,
}

impl Cores {
    /// When to look first, until that is done.
    fn due_ns(&self, window: (u64, u64)) -> Option<u64> {
        (!self.looked).then(|| window.0.saturating_sub(LOOK_AHEAD_NS))
    }

    fn begin(&mut self, root: &Root) {
        self.looked = true;
        let census = Census::take(root);
        let threads = CoreScan::take(root, &self.watched, &census);
        self.begin = Some((census, threads));
    }

    /// The window was of this length. Looks that covered less of it show nothing.
    fn end(&mut self, root: &Root, sampler: &Sampler, window_ns: u64) {
        let Some((before, threads)) = self.begin.take() else { return };
        let now = Census::take(root);
        let looked_ns = now.at_ns.saturating_sub(before.at_ns) as f64;
        if looked_ns < COVERED_MIN_RATIO * window_ns as f64 {
            return;
        }
        let kind = |pid| match pid == std::process::id() {
            true => Some(CoreUserKind::Own),
            false => sampler.is_of_server(pid).then_some(CoreUserKind::Server),
        };
        self.work = now.since(&before, kind);
        let Some(begin) = threads else { return };
        let grown = Grown::between(&before, &now);
        let mut users = begin.users(root, &self.watched, &grown);
        for user in &mut users {
            user.server = !user.own && sampler.is_of_server(user.pid);
        }
        self.users = Some(users);
        let own_threads = self.watched.own_threads.clone();
        let server = WatchedCores { cores: sampler.server_cores(), own_threads };
        if !server.cores.is_empty() {
            let grown = grown.without(|pid| sampler.is_of_server(pid));
            self.server_users = Some(begin.alongside_server(root, &server, &grown));
        }
    }
}

pub(super) struct Watch {
    root: Root,
    sampler: Sampler,
    writers: CsvWriters,
    pace: Pace,
    commands: Receiver<Command>,
    cpu_ns: Arc<AtomicU64>,
    point: Option<Point>,
    /// When the last sample was due, and when it was taken.
    last_due_ns: u64,
    last_taken_ns: u64,
    process_cpu_ns: u64,
}

impl Watch {
    pub(super) fn new(
        config: MonitorConfig,
        commands: Receiver<Command>,
        cpu_ns: Arc<AtomicU64>,
    ) -> Self {
        Self {
            sampler: Sampler::new(&config.root, config.processes).asking(config.probes),
            root: config.root,
            writers: CsvWriters::new(config.outputs),
            pace: Pace::new(config.interval.0.max(INTERVAL_MIN.0), PARTS),
            commands,
            cpu_ns,
            point: None,
            last_due_ns: 0,
            last_taken_ns: 0,
            process_cpu_ns: 0,
        }
    }

    /// Samples until the owner goes away.
    pub(super) fn run(mut self) -> Option<MonitorError> {
        // Zero is the calling thread.
        let _ = setpriority_process(None, NICE);
        self.sample(clock::monotonic_ns());
        loop {
            let window = self.point.as_ref().and_then(|point| point.window);
            let due_ns = next_sample_ns(self.last_due_ns, self.pace.interval_ns(), window);
            let look_ns = self.point.as_ref().and_then(|point| point.cores.due_ns(point.window?));
            let alternation_ns =
                self.point.as_ref().and_then(|p| p.alternation_due_ns(clock::monotonic_ns()));
            let soonest = [Some(due_ns), look_ns, alternation_ns].into_iter().flatten().min();
            let next_ns = soonest.unwrap_or(due_ns);
            let wait = next_ns.saturating_sub(clock::monotonic_ns());
            match self.commands.recv_timeout(Duration::from_nanos(wait)) {
                Ok(command) => self.obey(command),
                Err(RecvTimeoutError::Timeout) if next_ns == due_ns => self.sample(due_ns),
                Err(RecvTimeoutError::Timeout) if Some(next_ns) == look_ns => self.look(),
                Err(RecvTimeoutError::Timeout) => self.sample_alternation(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.writers.flush();
        self.writers.into_error()
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Watch(process) => self.sampler.watch(process),
            Command::PointStarted(stem) => {
                self.point = Some(Point {
                    stem,
                    started: ClockReading::now(),
                    window: None,
                    sums: Sums::default(),
                    cores: Cores::default(),
                    alternation: None,
                    alternation_pace: Pace::new(alternation::INTERVAL_NS, PARTS),
                    alternation_sampled_ns: 0,
                });
            }
            Command::PointCores(watched) => {
                if let Some(point) = &mut self.point {
                    point.cores.watched = watched;
                }
            }
            Command::PointWindow { start_unix_ns, end_unix_ns } => {
                if let Some(point) = &mut self.point {
                    let now = ClockReading::now();
                    let monotonic = |unix_ns| monotonic_at(now, unix_ns);
                    point.window = Some((monotonic(start_unix_ns), monotonic(end_unix_ns)));
                }
            }
            Command::PointFinished(reply) => {
                // The receiver may be gone; then nobody needs the answer.
                let _ = reply.send(self.finish_point());
            }
        }
    }

    fn sample(&mut self, due_ns: u64) {
        let at = ClockReading::now();
        // After a pause (a suspended machine) the missed samples are not made up for.
        let late = at.monotonic_ns.saturating_sub(due_ns) > self.pace.interval_ns() / 2;
        self.last_due_ns = if late { at.monotonic_ns } else { due_ns };
        self.last_taken_ns = at.monotonic_ns;
        let cpu_before_ns = clock::thread_cpu_ns();
        let sample = self.sampler.sample(at);
        self.writers.write(sample, self.point.as_ref().map_or("", |point| &point.stem));
        let process_cpu_ns = clock::process_cpu_ns();
        let cpu_ns = clock::thread_cpu_ns();
        self.pace.took(cpu_ns.saturating_sub(cpu_before_ns));
        let own = OwnCpu {
            process_ns: process_cpu_ns.saturating_sub(self.process_cpu_ns),
            monitor_ns: cpu_ns.saturating_sub(self.cpu_ns.swap(cpu_ns, Ordering::Relaxed)),
        };
        self.process_cpu_ns = process_cpu_ns;
        if let Some(point) = &mut self.point
            && let Some(window) = point.window
        {
            point.sums.add(sample, own, window);
            if at.monotonic_ns >= window.1 {
                point.cores.end(&self.root, &self.sampler, window.1.saturating_sub(window.0));
            }
        }
    }

    /// Does the work that walks directories, before the window.
    fn look(&mut self) {
        self.sampler.rescan();
        self.sample(clock::monotonic_ns());
        if let Some(point) = &mut self.point {
            point.alternation = Alternation::open(&self.root, self.sampler.server_cores());
            point.cores.begin(&self.root);
        }
    }

    fn sample_alternation(&mut self) {
        let now_ns = clock::monotonic_ns();
        if let Some(point) = &mut self.point {
            point.alternation_sampled_ns = now_ns;
            if let Some(alternation) = &mut point.alternation {
                let cpu_before_ns = clock::thread_cpu_ns();
                alternation.sample(now_ns);
                let cpu_ns = clock::thread_cpu_ns().saturating_sub(cpu_before_ns);
                point.alternation_pace.took(cpu_ns);
                if !point.alternation_pace.is_kept() {
                    // Seen less often they would be averaged out.
                    point.alternation = None;
                }
            }
        }
    }

    fn finish_point(&mut self) -> PointMonitors {
        let now_ns = clock::monotonic_ns();
        let window = self.point.as_ref().and_then(|point| point.window);
        if window.is_some_and(|(start, end)| start < now_ns && self.last_taken_ns < end) {
            self.sample(now_ns);
        }
        self.writers.flush();
        let Some(mut point) = self.point.take() else { return PointMonitors::default() };
        // One that was cut short has ended now.
        let window_ns = window.map_or(0, |(start, end)| end.min(now_ns).saturating_sub(start));
        point.cores.end(&self.root, &self.sampler, window_ns);
        let own = point.sums.own_cpu();
        let mut resources = point.sums.resources(window_ns, WITHIN_MIN_RATIO);
        resources.extend(point.alternation.iter().flat_map(Alternation::resources));
        PointMonitors {
            stem: point.stem,
            window_ns: point.sums.covered_ns(),
            resources,
            process_cpu_ns: own.process_ns,
            monitor_cpu_ns: own.monitor_ns,
            clock_step_ns: clock_step_ns(point.started, ClockReading::now()),
            core_users: point.cores.users,
            server_core_users: point.cores.server_users,
            work: point.cores.work,
        }
    }
}

/// The monotonic clock's reading at an instant of the wall clock, by both clocks' current readings.
pub(super) fn monotonic_at(now: ClockReading, unix_ns: u64) -> u64 {
    let from_now = i128::from(unix_ns) - i128::from(now.unix_ns);
    let at = i128::from(now.monotonic_ns) + from_now;
    u64::try_from(at.max(0)).unwrap_or(u64::MAX)
}

/// The next sample after `last`, which is when the last one was due, on the monotonic clock.
///
/// Samples fall on the borders of a window, so that the window is covered exactly. A tick that
/// would fall shortly before a border is left out, since rates over short times are mostly noise:
/// samples within a window are between a half and one and a half intervals apart.
pub(super) fn next_sample_ns(last: u64, interval: u64, borders: Option<(u64, u64)>) -> u64 {
    let tick = last.saturating_add(interval);
    let reach = tick.saturating_add(interval / 2);
    let borders = borders.map(|(start, end)| [start, end]).into_iter().flatten();
    borders.into_iter().find(|&border| border > last && border <= reach).unwrap_or(tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(start: u64, interval: u64, window: (u64, u64), until: u64) -> Vec<u64> {
        let mut times = vec![start];
        while times[times.len() - 1] < until {
            times.push(next_sample_ns(times[times.len() - 1], interval, Some(window)));
        }
        times
    }

    #[test]
    fn without_a_window_samples_follow_at_the_interval() {
        assert_eq!(next_sample_ns(100, 10, None), 110);
    }

    #[test]
    fn samples_fall_on_the_borders_of_the_window() {
        assert_eq!(schedule(0, 10, (13, 47), 50), [0, 13, 23, 33, 47, 57]);
        assert_eq!(schedule(0, 10, (4, 30), 30), [0, 4, 14, 24, 30]);
    }

    #[test]
    fn a_window_shorter_than_the_interval_has_one_sample() {
        assert_eq!(schedule(0, 10, (3, 6), 16), [0, 3, 6, 16]);
    }

    #[test]
    fn no_sample_of_a_window_is_shorter_than_half_an_interval() {
        for length in 20..200 {
            for offset in 0..40 {
                let times = schedule(0, 20, (offset, offset + length), offset + length);
                let inside = times.windows(2).filter(|w| w[0] >= offset && w[1] <= offset + length);
                for pair in inside {
                    let interval = pair[1] - pair[0];
                    assert!((10..=30).contains(&interval), "{offset} {length}: {times:?}");
                }
                assert!(times.contains(&(offset + length)));
            }
        }
    }
}
