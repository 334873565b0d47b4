//! A watched process, alone or with its descendants, followed as it forks and ends, and its threads
//! one by one.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use procfs_core::FromRead as _;
use procfs_core::process::Schedstat;
use rustix::process::{Resource, getrlimit};

use crate::parse::{
    ProcessStat, parse_cpu_numbers, parse_process_stat, parse_status_field, parse_thread_stat,
};
use crate::process::{ProcessUse, Scope, WatchedProcess, ticks_to_ns};
use crate::root::{ProcFile, Root};

/// A watched process and its descendants.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) process: WatchedProcess,
    members: Vec<Member>,
    pub(super) descriptors: Option<u64>,
    /// Cores that any of its threads may run on.
    pub(super) cores: BTreeSet<u32>,
}

/// One process of a tree.
#[derive(Debug)]
struct Member {
    pid: u32,
    stat: ProcFile,
    before: Option<MemberUse>,
    threads: Threads,
}

/// What a process had used at a sample.
#[derive(Clone, Copy, Debug, Default)]
struct MemberUse {
    own: ProcessUse,
    /// CPU time of children that have ended.
    ended_ns: u64,
}

/// Sums over a tree. CPU time is what was used since the sample before.
#[derive(Debug, Default)]
pub(super) struct TreeUse {
    pub(super) user_ns: Option<u64>,
    pub(super) system_ns: Option<u64>,
    /// CPU time, seen by no sample, of processes that ended since the sample before.
    pub(super) ended_ns: u64,
    pub(super) rss_bytes: u64,
    pub(super) threads: u64,
    pub(super) processes: u64,
    /// Absent where threads are not looked at one by one, or the kernel does not count their
    /// waiting.
    pub(super) by_thread: Option<ThreadsUse>,
}

impl Tree {
    pub(super) fn new(root: &Root, process: WatchedProcess) -> Self {
        let members = process.pids.iter().map(|pid| Member::open(root, *pid)).collect();
        Self { process, members, descriptors: None, cores: BTreeSet::new() }
    }

    /// It counts its descendants too.
    pub(super) fn follows(&self) -> bool {
        self.process.scope == Scope::WithDescendants
    }

    /// Children born since the sample before: all they have used counts.
    pub(super) fn follow(&mut self, root: &Root) {
        let mut next = 0;
        while let Some(member) = self.members.get(next) {
            next += 1;
            let pid = member.pid;
            let file = format!("proc/{pid}/task/{pid}/children");
            let Some(text) = root.read(file) else { continue };
            let sampled = member.before.is_some();
            for child in text.split_ascii_whitespace().filter_map(|word| word.parse().ok()) {
                if !self.has(child) {
                    let before = sampled.then(MemberUse::default);
                    self.members.push(Member { before, ..Member::open(root, child) });
                }
            }
        }
    }

    /// Descendants among all processes. One that is found only now counts from now on: its
    /// earlier use would all fall into one sample.
    pub(super) fn scan(&mut self, root: &Root, all: &[ProcessStat]) {
        let mut next = 0;
        while self.follows()
            && let Some(parent) = self.members.get(next).map(|member| member.pid)
        {
            next += 1;
            for process in all.iter().filter(|process| process.parent == parent) {
                if !self.has(process.pid) {
                    self.members.push(Member::open(root, process.pid));
                }
            }
        }
        let counts: Option<Vec<u64>> =
            self.members.iter().map(|member| descriptors(root, member.pid)).collect();
        self.descriptors = counts.map(|counts| counts.iter().sum());
    }

    /// Which cores its threads may run on: those that have done nine tenths of its work. A thread
    /// that waits for signals is often not pinned to the server's cores. Earlier cores stay where
    /// there is no new information: another host reports them in some samples only.
    pub(super) fn look_for_cores(&mut self, root: &Root) {
        let mut threads: Vec<(u64, u32, u32)> = Vec::new();
        for member in &self.members {
            threads.extend(member.threads.run_ns().map(|(run_ns, tid)| (run_ns, member.pid, tid)));
        }
        threads.sort_unstable_by(|a, b| b.cmp(a));
        let all_ns: u64 = threads.iter().map(|(run_ns, ..)| run_ns).sum();
        let mut summed_ns = 0;
        let workers = threads.iter().take_while(|(run_ns, ..)| {
            let before_ns = summed_ns;
            summed_ns += run_ns;
            before_ns == 0 || before_ns < all_ns / 10 * 9
        });
        let workers = workers.map(|(_, pid, tid)| format!("proc/{pid}/task/{tid}/status"));
        let processes = self.members.iter().map(|member| format!("proc/{}/status", member.pid));
        let files: Vec<String> = match threads.is_empty() {
            true => processes.collect(),
            false => workers.collect(),
        };
        let texts: Vec<String> = files.into_iter().filter_map(|file| root.read(file)).collect();
        if texts.is_empty() {
            return;
        }
        self.cores.clear();
        for text in texts {
            let list = parse_status_field(&text, "Cpus_allowed_list");
            self.cores.extend(list.and_then(parse_cpu_numbers).unwrap_or_default());
        }
    }

    pub(super) fn has(&self, pid: u32) -> bool {
        self.members.iter().any(|member| member.pid == pid)
    }

    /// Members that ended are dropped; their use is in their parent's counters of ended
    /// children.
    pub(super) fn sample(&mut self, root: &Root, buffer: &mut Vec<u8>) -> TreeUse {
        let mut total = TreeUse::default();
        let mut ended_ns: u64 = 0;
        let mut sampled_ns: u64 = 0;
        self.members.retain_mut(|member| {
            let stat = member.stat.read(buffer).and_then(|text| parse_process_stat(&text));
            let Some(stat) = stat else {
                let own = member.before.map(|last| last.own).unwrap_or_default();
                sampled_ns = sampled_ns.saturating_add(own.user_ns.saturating_add(own.system_ns));
                return false;
            };
            let own = ProcessUse::from_stat(&stat);
            let now = MemberUse { own, ended_ns: ticks_to_ns(stat.ended_ticks) };
            if let Some(before) = member.before.replace(now) {
                let grown = |sum: Option<u64>, before: u64, now: u64| {
                    Some(sum.unwrap_or(0).saturating_add(now.saturating_sub(before)))
                };
                total.user_ns = grown(total.user_ns, before.own.user_ns, own.user_ns);
                total.system_ns = grown(total.system_ns, before.own.system_ns, own.system_ns);
                ended_ns = ended_ns.saturating_add(now.ended_ns.saturating_sub(before.ended_ns));
            }
            total.rss_bytes = total.rss_bytes.saturating_add(own.rss_bytes);
            total.threads = total.threads.saturating_add(own.threads);
            total.processes += 1;
            true
        });
        if self.follows() {
            total.ended_ns = ended_ns.saturating_sub(sampled_ns);
            if total.threads <= THREADS_MAX {
                for member in &mut self.members {
                    member.threads.sample(root, member.pid, buffer, &mut total.by_thread);
                }
            }
        }
        total
    }
}

impl Member {
    fn open(root: &Root, pid: u32) -> Self {
        let stat = ProcFile::open(root, format!("proc/{pid}/stat"));
        Self { pid, stat, before: None, threads: Threads::default() }
    }
}

/// All processes of the host.
pub(super) fn all_processes(root: &Root) -> Vec<ProcessStat> {
    let names = root.names("proc");
    let pids = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    pids.filter_map(|pid| parse_process_stat(&root.read(format!("proc/{pid}/stat"))?)).collect()
}

/// Open descriptors: the directory's size since Linux 6.2; before, its entries are counted.
fn descriptors(root: &Root, pid: u32) -> Option<u64> {
    let directory = root.path(PathBuf::from(format!("proc/{pid}/fd")));
    let size = std::fs::metadata(&directory).ok()?.len();
    match size {
        0 => Some(std::fs::read_dir(&directory).ok()?.count() as u64),
        size => Some(size),
    }
}

/// Trees with more threads are not looked at thread by thread (measured: 17 µs a thread).
const THREADS_MAX: u64 = 256;
/// Files of threads stay open, since opening one costs more than reading it, if this process may
/// have this many open: four times those of the largest tree that is looked at thread by thread.
/// The hard limit counts: workers raise the soft limit to it.
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
    /// Times that a thread was given a core.
    pub(super) switches: u64,
}

/// Those of one process, by their ids.
#[derive(Debug, Default)]
struct Threads(HashMap<u32, Thread>);

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
    switches: u64,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Disk,
    Lock,
}

impl Threads {
    /// Adds what they did to a sum, which is made where the kernel counts the waiting of threads.
    fn sample(
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
            // Most are known already; these need no limit and no path.
            let thread = self.0.entry(tid).or_insert_with(|| {
                let kept_open = may_stay_open(getrlimit(Resource::Nofile).maximum);
                Thread::new(root, &format!("proc/{pid}/task/{tid}"), kept_open)
            });
            thread.sample(buffer, sum);
        }
    }

    /// CPU time since each began, by thread id.
    fn run_ns(&self) -> impl Iterator<Item = (u64, u32)> {
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
        let now = Scheduled {
            run_ns: now.sum_exec_runtime,
            wait_ns: now.run_delay,
            switches: now.pcount,
        };
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
            let switches = now.switches.saturating_sub(before.switches);
            sum.switches = sum.switches.saturating_add(switches);
        }
        match self.waits {
            Some(Wait::Disk) => sum.for_disk += 1,
            Some(Wait::Lock) => sum.for_lock += 1,
            None => {}
        }
    }

    /// The kernel function in which a thread sleeps, where it may be read.
    fn waits_for(&self, buffer: &mut Vec<u8>) -> Option<Wait> {
        match parse_thread_stat(&self.stat.read_line(buffer)?)?.state {
            'D' => Some(Wait::Disk),
            'S' => {
                let function = self.wchan.read_line(buffer)?;
                let locked = ["futex", "lock"].iter().any(|word| function.contains(word));
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
