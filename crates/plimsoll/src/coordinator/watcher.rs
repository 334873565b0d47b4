//! What a load point costs this host, as the monitors see it.

use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::consumers::HostWork;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_monitor::{
    Folded, Monitor, MonitorConfig, MonitorError, MonitorUrl, Outputs, ProfileError, Profiler,
    RemoteMonitor, Source, WatchedCores, WatchedProcess,
};

use plimsoll_protocol::host::Target;

use super::server_status::{self, Served};
use super::sources;
use crate::clock::unix_ns;
use crate::exit::Failure;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PointUse {
    /// CPU time of the generator process in the window.
    pub process_cpu_ns: u64,
    /// CPU time of the monitors in the window.
    pub monitor_cpu_ns: u64,
    /// Wall clock minus monotonic clock moved by this much during the point.
    pub clock_step_ns: i64,
    pub resources: Vec<ResourceUse>,
    /// Who else used the workers' cores.
    pub core_users: Option<Vec<CoreUser>>,
    /// Who else may run on the server's cores.
    pub server_core_users: Option<Vec<CoreUser>>,
    /// Where the processor time of each host went.
    pub work: Vec<HostWork>,
}

/// The server of a target, where it runs on this host and may be seen.
fn watched_server(target: &Target) -> Option<WatchedProcess> {
    let pids = target.pids();
    let port = target.resolved.address.port();
    // A Unix socket has none.
    let ports = (port > 0).then_some(port).into_iter().collect();
    (!pids.is_empty()).then(|| WatchedProcess::of("server", pids, ports))
}

/// Watches this host, and those of sources, while points run.
#[derive(Debug)]
pub(super) struct Watcher {
    monitor: Monitor,
    remotes: Vec<(MonitorUrl, RemoteMonitor)>,
    facts: Vec<Setting>,
    /// What is to be started with the window of the next load point, and for how many seconds.
    profiler: Option<(Profiler, u32)>,
    profile: Option<JoinHandle<Result<Folded, ProfileError>>>,
}

impl Watcher {
    /// Starts the monitors; their samples go to `dir`. Programs that sources run on this host are
    /// held to `cores`.
    pub(super) fn start(
        dir: &Path,
        served: Served<'_>,
        sources: Vec<Source>,
        cores: &[u32],
    ) -> Result<Self, Failure> {
        let mut watcher = Self {
            monitor: Self::local(dir, served)?,
            remotes: Vec::new(),
            facts: Vec::new(),
            profiler: None,
            profile: None,
        };
        for source in sources {
            watcher.facts.extend_from_slice(source.facts());
            let url = source.url().clone();
            let remote = RemoteMonitor::start(source, dir, cores);
            let remote = remote.map_err(|e| Failure::unusable(e.to_string()))?;
            remote.watch_ports(&sources::ports_on(&url, served.targets));
            watcher.remotes.push((url, remote));
        }
        Ok(watcher)
    }

    /// What sources tell of their hosts, for the disclosure.
    pub(super) fn facts(&self) -> &[Setting] {
        &self.facts
    }

    /// Watched are the processes of the targets, and those that tell figures of their own are asked
    /// for them.
    fn local(dir: &Path, served: Served<'_>) -> Result<Monitor, Failure> {
        let mut processes = vec![WatchedProcess::own("generator")];
        processes.extend(served.targets.iter().filter_map(watched_server));
        let unusable = |e: MonitorError| Failure::unusable(e.to_string());
        let outputs = Outputs::in_directory(dir).map_err(unusable)?;
        let probes = server_status::probes(served);
        let config = MonitorConfig { processes, probes, outputs, ..MonitorConfig::default() };
        Monitor::start(config).map_err(unusable)
    }

    /// Watches other servers from now on; what was written so far stays.
    pub(super) fn restart(&mut self, dir: &Path, served: Served<'_>) -> Result<(), Failure> {
        for (url, remote) in &self.remotes {
            remote.watch_ports(&sources::ports_on(url, served.targets));
        }
        let before = std::mem::replace(&mut self.monitor, Self::local(dir, served)?);
        before.stop().map_err(|e| Failure::unusable(e.to_string()))
    }

    /// Before the agent starts; `threads` are those of this program that are there already, so
    /// that no worker is among them.
    pub(super) fn begin_point(&mut self, assignment: &Assignment, threads: Vec<u32>) {
        self.monitor.point_started(&assignment.point.stem());
        for (_, remote) in &self.remotes {
            remote.point_started(&assignment.point.stem());
        }
        let cores = assignment.cores.iter().copied().take(assignment.workers.max(1) as usize);
        self.monitor.point_cores(WatchedCores { cores: cores.collect(), own_threads: threads });
    }

    /// The point's clock starts at `at_unix_ns`; its window is over at `end_max`, if not before.
    pub(super) fn window(&mut self, assignment: &Assignment, at_unix_ns: u64, end_max: u64) {
        let begin = at_unix_ns + assignment.phases.warm_up_ns.0;
        let end = end_max.min(at_unix_ns + assignment.phases.window_end().0);
        self.monitor.point_window(begin, end);
        for (_, remote) in &self.remotes {
            remote.point_window(begin, end);
        }
        if let Some((profiler, seconds)) = self.profiler.take() {
            let profile = move || {
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

    /// What became of it; waits until perf has ended. `None` where it was not started.
    pub(super) fn take_profile(&mut self) -> Option<Result<Folded, ProfileError>> {
        self.profile.take()?.join().ok()
    }

    /// Ends the monitors; of each, the first thing that came up.
    pub(super) fn stop(self) -> Vec<MonitorError> {
        let remotes = self.remotes.into_iter().map(|(_, remote)| remote.stop());
        let stopped = std::iter::once(self.monitor.stop()).chain(remotes);
        stopped.filter_map(Result::err).collect()
    }

    /// After the agent has ended.
    pub(super) fn end_point(&mut self) -> PointUse {
        let mut seen = self.monitor.point_finished();
        let mut work: Vec<HostWork> = seen.work.take().into_iter().collect();
        for (_, remote) in &self.remotes {
            let there = remote.point_finished();
            seen.resources.extend(there.resources);
            work.extend(there.work);
        }
        PointUse {
            work,
            process_cpu_ns: seen.process_cpu_ns,
            monitor_cpu_ns: seen.monitor_cpu_ns,
            clock_step_ns: seen.clock_step_ns,
            resources: seen.resources,
            core_users: seen.core_users,
            server_core_users: seen.server_core_users,
        }
    }
}
