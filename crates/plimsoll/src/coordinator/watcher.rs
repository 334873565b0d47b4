//! What a load point costs this host, as the monitors see it.

use std::path::Path;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_monitor::{
    Monitor, MonitorConfig, MonitorError, Outputs, WatchedCores, WatchedProcess,
};

use super::app_status;
use super::servers::Target;
use crate::exit::Failure;

/// Resource use of one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointUse {
    /// CPU time of the generator process in the window.
    pub process_cpu_ns: u64,
    /// CPU time of the monitors in the window.
    pub monitor_cpu_ns: u64,
    /// Wall clock minus monotonic clock moved by this much during the point.
    pub clock_step_ns: i64,
    /// What the monitors saw.
    pub resources: Vec<ResourceUse>,
    /// Who else used the workers' cores.
    pub core_users: Option<Vec<CoreUser>>,
}

/// The server of a target, where it runs on this host and may be seen.
fn watched_server(target: &Target) -> Option<WatchedProcess> {
    let pids = target.pids();
    let port = target.resolved.address.port();
    (!pids.is_empty()).then(|| WatchedProcess::of("server", pids, vec![port]))
}

/// Watches this host while points run.
#[derive(Debug)]
pub struct Watcher {
    monitor: Monitor,
}

impl Watcher {
    /// Starts the monitors; their samples go to `dir`. Watched are the processes of the targets, and
    /// those that tell figures of their own are asked for them.
    pub fn start(dir: &Path, targets: &[Target]) -> Result<Self, Failure> {
        let mut processes = vec![WatchedProcess::own("generator")];
        processes.extend(targets.iter().filter_map(watched_server));
        let unusable = |e: MonitorError| Failure::unusable(e.to_string());
        let outputs = Outputs::in_directory(dir).map_err(unusable)?;
        let probes = app_status::probes(targets);
        let config = MonitorConfig { processes, probes, outputs, ..MonitorConfig::default() };
        Ok(Self { monitor: Monitor::start(config).map_err(unusable)? })
    }

    /// Watches other servers from now on; what was written so far stays.
    pub fn restart(&mut self, dir: &Path, targets: &[Target]) -> Result<(), Failure> {
        let before = std::mem::replace(self, Self::start(dir, targets)?);
        before.stop().map_err(|e| Failure::unusable(e.to_string()))
    }

    /// Before the agent starts; `threads` are those of this program that are there already, so
    /// that no worker is among them.
    pub fn begin_point(&mut self, assignment: &Assignment, threads: Vec<u32>) {
        self.monitor.point_started(&assignment.point.stem());
        let cores = assignment.cores.iter().copied().take(assignment.workers.max(1) as usize);
        self.monitor.point_cores(WatchedCores { cores: cores.collect(), own_threads: threads });
    }

    /// The point's clock starts at this instant.
    pub fn point_starts(&mut self, assignment: &Assignment, at_unix_ns: u64) {
        let begin = at_unix_ns + assignment.phases.warm_up_ns.0;
        let end = at_unix_ns + assignment.phases.window_end().0;
        self.monitor.point_window(begin, end);
    }

    /// Ends the monitors; the error is the first that came up.
    pub fn stop(self) -> Result<(), MonitorError> {
        self.monitor.stop()
    }

    /// After the agent has ended.
    pub fn end_point(&mut self) -> PointUse {
        let seen = self.monitor.point_finished();
        PointUse {
            process_cpu_ns: seen.process_cpu_ns,
            monitor_cpu_ns: seen.monitor_cpu_ns,
            clock_step_ns: seen.clock_step_ns,
            resources: seen.resources,
            core_users: seen.core_users,
        }
    }
}
