//! The cost of a load point for this host, according to the monitors.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::consumers::HostWork;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_monitor::{
    Folded, Monitor, MonitorConfig, MonitorError, Outputs, ProfileError, Profiler, RemoteMonitor,
    WatchedCores, WatchedProcess,
};

use plimsoll_protocol::host::Target;
use plimsoll_servers::cores;

use super::server_status::{self, Served};
use super::sources::{OpenedSource, SourceHost};
use crate::clock::unix_ns;
use crate::failure::Failure;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PointUse {
    /// CPU time of the generator process in the window.
    pub process_cpu_ns: u64,
    /// CPU time of the monitors in the window.
    pub monitor_cpu_ns: u64,
    /// How far the wall clock moved against the monotonic clock during the point.
    pub clock_step_ns: i64,
    pub resources: Vec<ResourceUse>,
    /// Other users of the workers' cores.
    pub core_users: Option<Vec<CoreUser>>,
    /// Possible other users of the server's cores.
    pub server_core_users: Option<Vec<CoreUser>>,
    /// The use of each host's processor time.
    pub work: Vec<HostWork>,
}

/// The process of a target's server, if it runs on this host and is visible.
fn watched_server(target: &Target) -> Option<WatchedProcess> {
    let pids = target.pids();
    let port = target.resolved.address.port();
    // A Unix socket has none.
    let ports = (port > 0).then_some(port).into_iter().collect();
    (!pids.is_empty()).then(|| WatchedProcess::from_pids("server", pids, ports))
}

/// Monitors this host, and those of sources, while points run.
#[derive(Debug)]
pub(super) struct Watcher {
    monitor: Monitor,
    remotes: Vec<(SourceHost, RemoteMonitor)>,
    facts: Vec<Setting>,
    /// Of the running load point.
    cores: WatchedCores,
    /// The profiler to start with the window of the next load point, and for how many seconds.
    profiler: Option<(Profiler, u32)>,
    profile: Option<JoinHandle<Result<Folded, ProfileError>>>,
}

impl Watcher {
    /// Starts the monitors; their samples go to `dir`. Programs that sources run on this host are
    /// pinned to `cores`.
    pub(super) fn start(
        dir: &Path,
        served: Served<'_>,
        sources: Vec<OpenedSource>,
        cores: &[u32],
    ) -> Result<Self, Failure> {
        let mut watcher = Self {
            monitor: Self::local(dir, served)?,
            remotes: Vec::new(),
            facts: Vec::new(),
            cores: WatchedCores::default(),
            profiler: None,
            profile: None,
        };
        for OpenedSource { host, source } in sources {
            watcher.facts.extend_from_slice(source.facts());
            let remote = RemoteMonitor::start(source, dir, cores);
            let remote = remote.map_err(|e| Failure::unusable(e.to_string()))?;
            remote.watch_ports(&host.ports(served.targets));
            watcher.remotes.push((host, remote));
        }
        Ok(watcher)
    }

    /// What sources report about their hosts, for the disclosure.
    pub(super) fn facts(&self) -> &[Setting] {
        &self.facts
    }

    /// The hosts of the sources.
    pub(super) fn source_hosts(&self) -> impl Iterator<Item = &SourceHost> {
        self.remotes.iter().map(|(host, _)| host)
    }

    /// Monitors the processes of the targets, and requests figures from servers that report them.
    fn local(dir: &Path, served: Served<'_>) -> Result<Monitor, Failure> {
        let mut processes = vec![WatchedProcess::own("generator")];
        processes.extend(served.targets.iter().filter_map(watched_server));
        let unusable = |e: MonitorError| Failure::unusable(e.to_string());
        let outputs = Outputs::in_directory(dir).map_err(unusable)?;
        let probes = server_status::probes(served);
        let config = MonitorConfig { processes, probes, outputs, ..MonitorConfig::default() };
        Monitor::start(config).map_err(unusable)
    }

    /// Monitors other servers from now on; what was written so far stays.
    pub(super) fn restart(&mut self, dir: &Path, served: Served<'_>) -> Result<(), Failure> {
        for (host, remote) in &self.remotes {
            remote.watch_ports(&host.ports(served.targets));
        }
        let before = std::mem::replace(&mut self.monitor, Self::local(dir, served)?);
        before.stop().map_err(|e| Failure::unusable(e.to_string()))
    }

    /// Called before the agent starts: `threads` are this program's threads at that time, none of
    /// which is a worker.
    pub(super) fn begin_point(&mut self, assignment: &Assignment, threads: Vec<u32>) {
        let cores = assignment.cores.iter().copied().take(assignment.workers.max(1) as usize);
        self.cores = WatchedCores { cores: cores.collect(), own_threads: threads };
        self.begin(&assignment.point.stem());
    }

    fn begin(&self, stem: &str) {
        self.monitor.point_started(stem);
        self.remotes.iter().for_each(|(_, remote)| remote.point_started(stem));
        self.monitor.point_cores(self.cores.clone());
    }

    /// The next phase of a shape has begun: ends the observation of the one before, and begins that
    /// of the new one, from now until `end_unix_ns`.
    pub(super) fn begin_phase(&mut self, stem: &str, end_unix_ns: u64) -> PointUse {
        let ended = self.end_point();
        self.begin(stem);
        self.set_window(unix_ns(), end_unix_ns);
        ended
    }

    fn set_window(&self, begin: u64, end: u64) {
        self.monitor.point_window(begin, end);
        self.remotes.iter().for_each(|(_, remote)| remote.point_window(begin, end));
    }

    /// The point's clock starts at `at_unix_ns`; its window ends at `end_max` at the latest.
    pub(super) fn window(&mut self, assignment: &Assignment, at_unix_ns: u64, end_max: u64) {
        let window = assignment.windows().first().copied().unwrap_or(assignment.phases);
        let begin = at_unix_ns + window.warm_up_ns.0;
        let end = end_max.min(at_unix_ns + window.window_end().0);
        self.set_window(begin, end);
        if let Some((profiler, seconds)) = self.profiler.take() {
            let profile = move || {
                let _ = cores::lower_priority();
                std::thread::sleep(Duration::from_nanos(begin.saturating_sub(unix_ns())));
                profiler.record(seconds)
            };
            let thread = std::thread::Builder::new().name("plimsoll-profile".into());
            self.profile = thread.spawn(profile).ok();
        }
    }

    /// Profiles the server in the window of the next load point.
    pub(super) fn profile_next(&mut self, profiler: Profiler, seconds: u32) {
        self.profiler = Some((profiler, seconds));
    }

    /// The profile; waits until perf has ended. `None` if it was not started.
    pub(super) fn take_profile(&mut self) -> Option<Result<Folded, ProfileError>> {
        self.profile.take()?.join().ok()
    }

    /// Ends the monitors; returns the first error of each.
    pub(super) fn stop(self) -> Vec<MonitorError> {
        let remotes = self.remotes.into_iter().map(|(_, remote)| remote.stop());
        std::iter::once(self.monitor.stop()).chain(remotes).filter_map(Result::err).collect()
    }

    /// Called after the agent has ended.
    pub(super) fn end_point(&mut self) -> PointUse {
        let mut point_use = self.monitor.point_finished();
        let mut work: Vec<HostWork> = point_use.work.take().into_iter().collect();
        for (_, remote) in &self.remotes {
            let there = remote.point_finished();
            point_use.resources.extend(there.resources);
            work.extend(there.work);
        }
        PointUse {
            work,
            process_cpu_ns: point_use.process_cpu_ns,
            monitor_cpu_ns: point_use.monitor_cpu_ns,
            clock_step_ns: point_use.clock_step_ns,
            resources: point_use.resources,
            core_users: point_use.core_users,
            server_core_users: point_use.server_core_users,
        }
    }
}
