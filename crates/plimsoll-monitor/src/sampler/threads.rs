//! The threads of a watched process, one by one.

use std::collections::HashMap;

use procfs_core::FromRead as _;
use procfs_core::process::Schedstat;
use rustix::process::{Resource, getrlimit};

use super::proc_file::ProcFile;
use crate::parse::parse_thread_stat;
use crate::root::Root;

/// Trees with more threads are not looked at thread by thread (measured: 17 µs a thread).
pub(super) const THREADS_MAX: u64 = 256;
/// Files of threads stay open, since opening one costs more than reading it, where this process may
/// have so many open (the hard limit: workers raise the other one to it): four times those of the
/// largest tree that is looked at thread by thread.
const OPEN_MAX_AT_LEAST: u64 = 4 * FILES_A_THREAD * THREADS_MAX;
const FILES_A_THREAD: u64 = 3;

/// What the threads of a tree did since the sample before, and are doing now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadsUse {
    /// Ready to run while others had the core.
    pub(super) wait_ns: u64,
    /// Time on a core of the thread that had most.
    pub(super) busiest_ns: u64,
    /// Threads that wait for a disk.
    pub(super) for_disk: u64,
    /// Threads that wait for another one.
    pub(super) for_lock: u64,
}

/// Those of one process, by their ids.
#[derive(Debug, Default)]
pub(super) struct Threads(HashMap<u32, Thread>);

#[derive(Debug)]
struct Thread {
    schedstat: ProcFile,
    stat: ProcFile,
    /// In which of the kernel's functions it sleeps.
    wchan: ProcFile,
    before: Option<Scheduled>,
    waits: Option<Wait>,
}

/// What the scheduler has counted since a thread began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scheduled {
    run_ns: u64,
    wait_ns: u64,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Disk,
    Lock,
}

impl Threads {
    /// Adds what they did to a sum, which is made where the kernel counts the waiting of threads.
    pub(super) fn sample(
        &mut self,
        root: &Root,
        pid: u32,
        buffer: &mut Vec<u8>,
        sum: &mut Option<ThreadsUse>,
    ) {
        let tids = root.names(format!("proc/{pid}/task"));
        let tids: Vec<u32> = tids.iter().filter_map(|name| name.parse().ok()).collect();
        self.0.retain(|tid, _| tids.contains(tid));
        for tid in tids {
            // Most have been here before: no limit is asked for and no path made for these.
            let thread = self.0.entry(tid).or_insert_with(|| {
                let kept_open = may_stay_open(getrlimit(Resource::Nofile).maximum);
                Thread::new(root, &format!("proc/{pid}/task/{tid}"), kept_open)
            });
            thread.sample(buffer, sum);
        }
    }

    /// CPU time since each began, by thread id.
    pub(super) fn run_ns(&self) -> impl Iterator<Item = (u64, u32)> {
        self.0.iter().filter_map(|(tid, thread)| Some((thread.before?.run_ns, *tid)))
    }
}

/// Where no more than `limit` files can be open; `None` is no limit.
fn may_stay_open(limit: Option<u64>) -> bool {
    limit.is_none_or(|limit| limit >= OPEN_MAX_AT_LEAST)
}

impl Thread {
    fn new(root: &Root, directory: &str, kept_open: bool) -> Self {
        let open = |name: &str| {
            let file = format!("{directory}/{name}");
            if kept_open { ProcFile::open(root, file) } else { ProcFile::reopened(root, file) }
        };
        Self {
            schedstat: open("schedstat"),
            stat: open("stat"),
            wchan: open("wchan"),
            before: None,
            waits: None,
        }
    }

    fn sample(&mut self, buffer: &mut Vec<u8>, sum: &mut Option<ThreadsUse>) {
        let Some(text) = self.schedstat.read_line(buffer) else { return };
        let Ok(now) = Schedstat::from_read(text.as_bytes()) else { return };
        let now = Scheduled { run_ns: now.sum_exec_runtime, wait_ns: now.run_delay };
        let before = self.before.replace(now);
        // One that has not run since is where it was.
        if before != Some(now) {
            self.waits = self.waits_for(buffer);
        }
        let sum = sum.get_or_insert_with(ThreadsUse::default);
        if let Some(before) = before {
            let waited_ns = now.wait_ns.saturating_sub(before.wait_ns);
            sum.wait_ns = sum.wait_ns.saturating_add(waited_ns);
            sum.busiest_ns = sum.busiest_ns.max(now.run_ns.saturating_sub(before.run_ns));
        }
        match self.waits {
            Some(Wait::Disk) => sum.for_disk += 1,
            Some(Wait::Lock) => sum.for_lock += 1,
            None => {}
        }
    }

    /// The kernel says in which of its functions a thread sleeps, where that may be known.
    fn waits_for(&self, buffer: &mut Vec<u8>) -> Option<Wait> {
        match parse_thread_stat(&self.stat.read_line(buffer)?)?.state {
            'D' => Some(Wait::Disk),
            'S' => {
                let place = self.wchan.read_line(buffer)?;
                let locked = ["futex", "lock"].iter().any(|word| place.contains(word));
                locked.then_some(Wait::Lock)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_threads_stay_open_where_they_are_a_quarter_of_what_may_be() {
        assert!(may_stay_open(None) && may_stay_open(Some(3_072)));
        assert!(!may_stay_open(Some(3_071)) && !may_stay_open(Some(1_024)));
    }
}
