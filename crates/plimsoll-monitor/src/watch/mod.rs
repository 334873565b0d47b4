//! A thread that samples on schedule, writes the rows, and sums up per load point.

mod alternation;
mod outputs;
mod remote;
mod sums;
mod thread;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use plimsoll_model::consumers::HostWork;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_model::units::Nanos;
use thiserror::Error;

use crate::core_users::WatchedCores;
use crate::process::WatchedProcess;
use crate::root::Root;
use crate::sampler::ServerProbe;
pub use outputs::{Output, Outputs};
pub use remote::{RemoteMonitor, RemotePoint};
use thread::{Command, Watch};

/// Default time between samples.
pub const INTERVAL_DEFAULT: Nanos = Nanos::from_secs(1);
/// Shorter intervals cost more than they show: the kernel counts CPU time in ticks of 1 to 10 ms.
pub const INTERVAL_MIN: Nanos = Nanos::from_millis(10);

/// What to watch and where to write it.
#[derive(Debug)]
pub struct MonitorConfig {
    /// Time between samples; raised to [`INTERVAL_MIN`], and to what keeps them within 0.4 % of a
    /// core.
    pub interval: Nanos,
    /// Processes to watch from the start.
    pub processes: Vec<WatchedProcess>,
    /// Servers that report their own figures.
    pub probes: Vec<ServerProbe>,
    /// One writer per table.
    pub outputs: Outputs,
    /// Where `proc` and `sys` lie.
    pub root: Root,
}

impl Default for MonitorConfig {
    /// This host once a second, no process, nothing written.
    fn default() -> Self {
        Self {
            interval: INTERVAL_DEFAULT,
            processes: Vec::new(),
            probes: Vec::new(),
            outputs: Outputs::discard(),
            root: Root::default(),
        }
    }
}

/// What the monitors saw of one load point, over its window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointMonitors {
    /// Stem of the point.
    pub stem: String,
    /// Part of the window that samples cover; zero when no window was given.
    pub window_ns: u64,
    /// Mean and maximum of each watched resource. Idle disks and interfaces are left out.
    pub resources: Vec<ResourceUse>,
    /// CPU time of this process in the window, monitors included.
    pub process_cpu_ns: u64,
    /// CPU time of the monitors in the window.
    pub monitor_cpu_ns: u64,
    /// Wall clock minus monotonic clock moved by this much from the point's start to its end.
    pub clock_step_ns: i64,
    /// Who else used the watched cores in the window, the largest first; `None` when no cores were
    /// named or the host does not show it.
    pub core_users: Option<Vec<CoreUser>>,
    /// Who else may run on the server's cores and used CPU time in the window, the largest first.
    pub server_core_users: Option<Vec<CoreUser>>,
    /// Where the processor time of this host went; `None` when the window was not seen to its end.
    pub work: Option<HostWork>,
}

/// Why monitoring failed. The run can go on without; its resource use is then incomplete.
#[derive(Debug, Error)]
pub enum MonitorError {
    /// The thread could not be started.
    #[error("cannot start the monitor thread: {0}; raise the limit on threads (ulimit -u)")]
    Start(#[source] io::Error),
    /// A file could not be made or opened.
    #[error("cannot open {path:?} for samples: {source}; choose a directory that can be written")]
    Open {
        /// Which file, or its directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A table could not be written; its rows end there.
    #[error("cannot write the {table} samples: {source}; free space or choose another directory")]
    Write {
        /// Name of the table.
        table: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A source did not answer for a time.
    #[error(
        "{name} {what}; its figures have a gap there: look at that host, and run again if they are missed"
    )]
    Away {
        /// Which source.
        name: String,
        /// How often, how long, why.
        what: String,
    },
    /// A source's host had its clock set.
    #[error(
        "{name} had its clock set {how} while the run went on; its figures carry this host's time \
         and stay as they are: do not compare its own logs with them by time"
    )]
    ClockSet {
        /// Which source.
        name: String,
        /// How far, and in which direction.
        how: String,
    },
    /// A bug.
    #[error("the monitor thread panicked; this is a bug, please report it")]
    Panicked,
}

/// Samples until stopped or dropped.
#[derive(Debug)]
pub struct Monitor {
    commands: Option<Sender<Command>>,
    cpu_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<Option<MonitorError>>>,
}

impl Monitor {
    /// Starts sampling. The first rows follow one interval later.
    pub fn start(config: MonitorConfig) -> Result<Self, MonitorError> {
        let (commands, received) = channel();
        let cpu_ns = Arc::new(AtomicU64::new(0));
        let thread_total = Arc::clone(&cpu_ns);
        let thread = std::thread::Builder::new()
            .name("plimsoll-monitor".into())
            .spawn(move || Watch::new(config, received, thread_total).run())
            .map_err(MonitorError::Start)?;
        Ok(Self { commands: Some(commands), cpu_ns, thread: Some(thread) })
    }

    /// Watches one more process, such as a server that has only now been started.
    pub fn watch(&self, process: WatchedProcess) {
        self.send(Command::Watch(process));
    }

    /// A load point begins: rows carry its stem from now on.
    pub fn point_started(&self, stem: &str) {
        self.send(Command::PointStarted(stem.to_owned()));
    }

    /// Cores of the point that begins, whose users are looked for at the borders of its window.
    pub fn point_cores(&self, cores: WatchedCores) {
        self.send(Command::PointCores(cores));
    }

    /// The point's measurement window, in nanoseconds since the Unix epoch. Given before the window
    /// begins, samples are taken at its borders; what was sampled before it is given is lost to it.
    pub fn point_window(&self, start_unix_ns: u64, end_unix_ns: u64) {
        self.send(Command::PointWindow { start_unix_ns, end_unix_ns });
    }

    /// The point ended; waits some milliseconds at most for a last sample. Without a point that was
    /// started, or when the thread has died (see [`Self::stop`]), everything is empty.
    pub fn point_finished(&self) -> PointMonitors {
        let (reply, answer) = channel();
        self.send(Command::PointFinished(reply));
        answer.recv().unwrap_or_default()
    }

    /// CPU time the monitor thread has used up to its last sample.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed)
    }

    /// Stops within milliseconds. The error is the first that came up, if any.
    pub fn stop(mut self) -> Result<(), MonitorError> {
        self.join()
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A thread that is gone has panicked; `stop` reports it.
            let _ = commands.send(command);
        }
    }

    fn join(&mut self) -> Result<(), MonitorError> {
        self.commands = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        match thread.join() {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(error),
            Err(_) => Err(MonitorError::Panicked),
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // Only `stop` reports errors.
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests;
