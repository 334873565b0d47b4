//! CPU time and memory of this process and of others, and which processes are watched.

use std::fs;

use plimsoll_model::units::NANOS_PER_SECOND;
use procfs_core::FromRead as _;
use procfs_core::process::StatM;

use crate::clock;
use crate::parse::{ProcessStat, parse_process_stat};

/// CPU time, user and system, of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    clock::process_cpu_ns()
}

/// CPU time, user and system, of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock::thread_cpu_ns()
}

/// Resident memory of this process in bytes.
pub fn rss_bytes() -> Option<u64> {
    StatM::from_file("/proc/self/statm").ok()?.resident.checked_mul(page_bytes())
}

/// What one process has used so far. Its children are not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// CPU time in user mode; the kernel counts in ticks, 10 ms as a rule.
    pub user_ns: u64,
    /// CPU time in the kernel, in ticks too.
    pub system_ns: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Threads.
    pub threads: u64,
}

impl ProcessUse {
    /// Use of a process by its id; `None` when there is no such process.
    pub fn from_pid(pid: u32) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Some(Self::from_stat(&parse_process_stat(&String::from_utf8_lossy(&text))?))
    }

    pub(crate) fn from_stat(stat: &ProcessStat) -> Self {
        Self {
            user_ns: ticks_to_ns(stat.user_ticks),
            system_ns: ticks_to_ns(stat.system_ticks),
            rss_bytes: stat.resident_pages.saturating_mul(page_bytes()),
            threads: stat.threads,
        }
    }
}

pub(crate) fn ticks_to_ns(ticks: u64) -> u64 {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    ticks.saturating_mul(NANOS_PER_SECOND / per_second)
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// A process whose use is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// Its name in the rows: `server`, `generator`.
    pub name: String,
    /// Process ids, one as a rule; several where a server was found by its socket.
    pub pids: Vec<u32>,
    /// Who counts to it.
    pub scope: Scope,
    /// Ports it serves, whose queues are watched.
    pub ports: Vec<u16>,
}

/// Who counts to a watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The process itself.
    Alone,
    /// Its children and theirs too: a web server and its workers.
    WithDescendants,
}

impl WatchedProcess {
    /// A process by its id, with its descendants. A name that is taken already gets a number
    /// (`server`, `server-2`).
    pub fn new(name: impl Into<String>, pid: u32) -> Self {
        Self::from_pids(name, vec![pid], Vec::new())
    }

    /// Processes by their ids, with their descendants, and the ports they serve.
    pub fn from_pids(name: impl Into<String>, pids: Vec<u32>, ports: Vec<u16>) -> Self {
        Self { name: name.into(), pids, scope: Scope::WithDescendants, ports }
    }

    /// This process alone: servers it has started are its children, but not its work.
    pub fn own(name: impl Into<String>) -> Self {
        let pids = vec![std::process::id()];
        Self { name: name.into(), pids, scope: Scope::Alone, ports: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_cpu_and_memory() {
        assert!(process_cpu_ns() >= thread_cpu_ns());
        assert!(rss_bytes().unwrap() > 100_000);
    }

    #[test]
    fn the_use_of_a_process_is_found_by_its_id() {
        let own = ProcessUse::from_pid(std::process::id()).unwrap();
        assert!(own.threads >= 1 && own.rss_bytes > 100_000, "{own:?}");
        assert_eq!(ProcessUse::from_pid(u32::MAX), None);
    }
}
