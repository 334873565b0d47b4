//! Who used certain cores between two instants: every process and kernel thread, by its CPU time.
//!
//! The kernel counts CPU time in ticks (10 ms as a rule) and reports only the core on which a
//! thread ran last. So a process that moves between cores counts on its core at the end, and one
//! that began and ended in between is missed. Threads of this process are read to the nanosecond.

use std::collections::HashMap;

use plimsoll_model::event::CoreUser;

use crate::census::Census;
use crate::parse::{ThreadStat, parse_cpu_numbers, parse_status_field, parse_thread_stat};
use crate::process::ticks_to_ns;
use crate::root::Root;

/// Users that are named.
const USERS_MAX: usize = 5;
/// A user of less than one part in this many of the time between is not named.
const PARTS_MIN: u64 = 1_000;

/// Which cores to watch, and which threads of this process are no workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedCores {
    /// The workers' cores.
    pub cores: Vec<u32>,
    /// Thread ids of this process that count as its own use of them; its other threads are the
    /// workers.
    pub own_threads: Vec<u32>,
}

/// Work of other processes between two readings: process id, state now, CPU time.
#[derive(Debug)]
pub(crate) struct Grown {
    least_ns: u64,
    processes: Vec<(u32, ThreadStat, u64)>,
}

impl Grown {
    /// Work of every other process between two instants; no thread of this one.
    pub(crate) fn between(before: &Census, now: &Census) -> Self {
        let least_ns = (now.at_ns.saturating_sub(before.at_ns) / PARTS_MIN).max(1);
        let others = now.processes.iter().filter(|(pid, _)| **pid != std::process::id());
        let grown = others.filter_map(|(&pid, stat)| {
            let before_ns = before.processes.get(&pid).map(cpu_ns).unwrap_or_default();
            let grown_ns = cpu_ns(stat).saturating_sub(before_ns);
            // Most have done nothing, and nobody needs to look at their threads.
            (grown_ns >= least_ns).then(|| (pid, stat.clone(), grown_ns))
        });
        Self { least_ns, processes: grown.collect() }
    }

    /// All but some.
    pub(crate) fn without(mut self, is_left_out: impl Fn(u32) -> bool) -> Self {
        self.processes.retain(|(pid, ..)| !is_left_out(*pid));
        self
    }
}

/// CPU time of threads, at the first instant.
#[derive(Debug)]
pub(crate) struct CoreScan {
    /// By thread id: of processes with several threads, and of this process.
    threads: HashMap<u32, u64>,
}

impl CoreScan {
    /// Reads the threads of all processes. `None` where processes of others are hidden: the first
    /// process is then hidden too.
    pub(crate) fn take(root: &Root, watched: &WatchedCores, census: &Census) -> Option<Self> {
        if watched.cores.is_empty() || !census.processes.contains_key(&1) {
            return None;
        }
        let mut threads = HashMap::new();
        for (&pid, stat) in &census.processes {
            if pid == std::process::id() {
                for &thread in &watched.own_threads {
                    let exact = exact_ns(root, pid, thread);
                    threads.extend(exact.map(|ns| (thread, ns)));
                }
            } else if stat.threads > 1 {
                let directory = format!("proc/{pid}/task");
                for thread in ids(root, &directory) {
                    let stat = self::stat(root, &format!("{directory}/{thread}"));
                    threads.extend(stat.map(|stat| (thread, cpu_ns(&stat))));
                }
            }
        }
        Some(Self { threads })
    }

    /// Who has used the cores most since, the largest first.
    pub(crate) fn users(
        &self,
        root: &Root,
        watched: &WatchedCores,
        grown: &Grown,
    ) -> Vec<CoreUser> {
        let mut users = self.all_users(root, watched, grown);
        sort(&mut users);
        users.truncate(USERS_MAX);
        users
    }

    fn all_users(&self, root: &Root, watched: &WatchedCores, grown: &Grown) -> Vec<CoreUser> {
        let mut users = self.own(root, watched, std::process::id());
        for (pid, stat, grown_ns) in &grown.processes {
            let cpu_ns = match stat.threads {
                0 | 1 if watched.cores.contains(&stat.core) => *grown_ns,
                0 | 1 => 0,
                _ => self.threads_grown(root, watched, *pid),
            };
            users.push(user(*pid, stat, cpu_ns));
        }
        users.retain(|user| user.cpu_ns >= grown.least_ns);
        users
    }

    /// Who else may run on the server's cores, the largest first, by all CPU time since: the kernel
    /// does not report how much of it was on these cores.
    pub(crate) fn alongside_server(
        &self,
        root: &Root,
        server: &WatchedCores,
        grown: &Grown,
    ) -> Vec<CoreUser> {
        let mut users = self.own(root, server, std::process::id());
        users.extend(grown.processes.iter().map(|(pid, stat, ns)| user(*pid, stat, *ns)));
        sort(&mut users);
        let may = |it: &CoreUser| it.own || may_run_on(root, it.pid, &server.cores);
        users.into_iter().filter(may).take(USERS_MAX).collect()
    }

    /// CPU time used since by a process's threads that are on the cores now.
    fn threads_grown(&self, root: &Root, watched: &WatchedCores, pid: u32) -> u64 {
        let directory = format!("proc/{pid}/task");
        let mut grown_ns = 0;
        for thread in ids(root, &directory) {
            let Some(stat) = stat(root, &format!("{directory}/{thread}")) else { continue };
            if watched.cores.contains(&stat.core) {
                let before_ns = self.threads.get(&thread).copied().unwrap_or_default();
                grown_ns += cpu_ns(&stat).saturating_sub(before_ns);
            }
        }
        grown_ns
    }

    /// Our own threads that are no workers, one by one.
    fn own(&self, root: &Root, watched: &WatchedCores, pid: u32) -> Vec<CoreUser> {
        let mut users = Vec::new();
        for &thread in &watched.own_threads {
            let Some(stat) = stat(root, &format!("proc/{pid}/task/{thread}")) else { continue };
            let Some(now_ns) = exact_ns(root, pid, thread) else { continue };
            if watched.cores.contains(&stat.core) {
                let before_ns = self.threads.get(&thread).copied().unwrap_or_default();
                let cpu_ns = now_ns.saturating_sub(before_ns);
                let (name, server, kernel) = (stat.name, false, false);
                users.push(CoreUser { name, pid, cpu_ns, own: true, server, kernel });
            }
        }
        users
    }
}

fn user(pid: u32, stat: &ThreadStat, cpu_ns: u64) -> CoreUser {
    let (name, kernel) = (stat.name.clone(), stat.kernel);
    CoreUser { name, pid, cpu_ns, own: false, server: false, kernel }
}

fn sort(users: &mut [CoreUser]) {
    users.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.pid.cmp(&b.pid)));
}

/// A process that cannot be read may.
fn may_run_on(root: &Root, pid: u32, cores: &[u32]) -> bool {
    let listed = || {
        let status = root.read(format!("proc/{pid}/status"))?;
        parse_cpu_numbers(parse_status_field(&status, "Cpus_allowed_list")?)
    };
    listed().is_none_or(|allowed| cores.iter().any(|core| allowed.contains(core)))
}

fn ids(root: &Root, directory: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(root.path(directory)) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn stat(root: &Root, of: &str) -> Option<ThreadStat> {
    parse_thread_stat(&root.read(format!("{of}/stat"))?)
}

/// CPU time of a thread from `schedstat`, its first figure.
fn exact_ns(root: &Root, pid: u32, thread: u32) -> Option<u64> {
    let text = root.read(format!("proc/{pid}/task/{thread}/schedstat"))?;
    text.split_whitespace().next()?.parse().ok()
}

fn cpu_ns(stat: &ThreadStat) -> u64 {
    ticks_to_ns(stat.ticks[0].saturating_add(stat.ticks[1]))
}

#[cfg(test)]
mod tests;
