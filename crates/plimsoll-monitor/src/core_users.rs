//! Who used certain cores between two instants: every process and kernel thread, by its CPU time.
//!
//! The kernel counts CPU time in ticks (10 ms as a rule) and says of a thread only on which core
//! it ran last. So a process that moves between cores is counted by where it is at the end, and
//! one that began and ended in between is not seen. Threads of this process are read to the
//! nanosecond.

use std::collections::HashMap;

use plimsoll_model::event::CoreUser;

use crate::clock;
use crate::parse::{ThreadStat, parse_cpu_numbers, parse_status_field, parse_thread_stat};
use crate::process::ticks_to_ns;
use crate::root::Root;

/// Users that are named.
const USERS_MAX: usize = 5;
/// One part in so many of the time between is too little to name.
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

/// What other processes have done since a scan: process id, state now, CPU time.
#[derive(Debug)]
pub(crate) struct Grown {
    least_ns: u64,
    processes: Vec<(u32, ThreadStat, u64)>,
}

impl Grown {
    /// All but some.
    pub(crate) fn without(mut self, is_left_out: impl Fn(u32) -> bool) -> Self {
        self.processes.retain(|(pid, ..)| !is_left_out(*pid));
        self
    }
}

/// CPU time of everything that runs, at the first instant.
#[derive(Debug)]
pub(crate) struct CoreScan {
    at_ns: u64,
    /// By process id.
    processes: HashMap<u32, u64>,
    /// By thread id: of processes with several threads, and of this process.
    threads: HashMap<u32, u64>,
}

impl CoreScan {
    /// Reads everything once. `None` where processes of others are hidden: the first process is
    /// then hidden too.
    pub(crate) fn take(root: &Root, watched: &WatchedCores) -> Option<Self> {
        if watched.cores.is_empty() {
            return None;
        }
        let mut scan = Self {
            at_ns: clock::monotonic_ns(),
            processes: HashMap::new(),
            threads: HashMap::new(),
        };
        for pid in ids(root, "proc") {
            let Some(stat) = stat(root, &format!("proc/{pid}")) else { continue };
            scan.processes.insert(pid, cpu_ns(&stat));
            if pid == std::process::id() {
                for &thread in &watched.own_threads {
                    let exact = exact_ns(root, pid, thread);
                    scan.threads.extend(exact.map(|ns| (thread, ns)));
                }
            } else if stat.threads > 1 {
                let directory = format!("proc/{pid}/task");
                for thread in ids(root, &directory) {
                    let stat = self::stat(root, &format!("{directory}/{thread}"));
                    scan.threads.extend(stat.map(|stat| (thread, cpu_ns(&stat))));
                }
            }
        }
        scan.processes.contains_key(&1).then_some(scan)
    }

    /// What every other process has done since, and no thread of this one.
    pub(crate) fn grown(&self, root: &Root) -> Grown {
        let least_ns = (clock::monotonic_ns().saturating_sub(self.at_ns) / PARTS_MIN).max(1);
        let others = ids(root, "proc").into_iter().filter(|pid| *pid != std::process::id());
        let grown = others.filter_map(|pid| {
            let stat = stat(root, &format!("proc/{pid}"))?;
            let before_ns = self.processes.get(&pid).copied().unwrap_or_default();
            let grown_ns = cpu_ns(&stat).saturating_sub(before_ns);
            // Most have done nothing, and nobody needs to look at their threads.
            (grown_ns >= least_ns).then_some((pid, stat, grown_ns))
        });
        Grown { least_ns, processes: grown.collect() }
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

    /// Who else may run on the server's cores, the largest first, by all CPU time since: which of
    /// it was there, the kernel does not say.
    pub(crate) fn beside_server(
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

    /// What a process's threads that are on the cores now have used since.
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

/// What cannot be read may.
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
    ticks_to_ns(stat.ticks)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::CoreUserKind;
    use std::fs;
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::*;

    /// A machine with one process after the other: id, name, core, ticks. Those named like the
    /// kernel's workers are its own.
    fn lay_out(root: &Root, processes: &[(u32, &str, u32, u64)]) {
        for &(pid, name, core, ticks) in processes {
            let dir = root.path(format!("proc/{pid}"));
            fs::create_dir_all(&dir).unwrap();
            let zeros = "0 ".repeat(18);
            // As of a kworker of Linux 6.1.
            let flags = if name.starts_with("kworker") { 69_238_880 } else { 4_194_560 };
            let line = format!(
                "{pid} ({name}) S 0 0 0 0 0 {flags} 0 0 0 0 {ticks} 0 0 0 0 0 1 {zeros}{core} 0\n"
            );
            fs::write(dir.join("stat"), line).unwrap();
        }
    }

    fn watched() -> WatchedCores {
        WatchedCores { cores: vec![3], own_threads: vec![] }
    }

    #[test]
    fn users_of_the_watched_cores_are_named_the_largest_first_and_five_at_most() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Root::at(directory.path());
        let before = [(1, "init", 3, 10), (8, "elsewhere", 2, 0), (9, "kworker/3:1", 3, 100)];
        lay_out(&root, &before);
        let scan = CoreScan::take(&root, &watched()).unwrap();
        lay_out(&root, &[(8, "elsewhere", 2, 90), (9, "kworker/3:1", 3, 150)]);
        let later: Vec<_> = (20..30).map(|pid| (pid, "late", 3, u64::from(pid))).collect();
        lay_out(&root, &later);
        let users = scan.users(&root, &watched(), &scan.grown(&root));
        let told: Vec<_> = users.iter().map(|user| (user.name.as_str(), user.pid)).collect();
        let expected = [("kworker/3:1", 9), ("late", 29), ("late", 28), ("late", 27), ("late", 26)];
        assert_eq!(told, expected);
        let tick_ns = ticks_to_ns(1);
        assert_eq!((users[0].cpu_ns, users[0].own), (50 * tick_ns, false), "what it used since");
        let kinds: Vec<_> = users[..2].iter().map(CoreUser::kind).collect();
        assert_eq!(kinds, [CoreUserKind::Kernel, CoreUserKind::Other]);
    }

    #[test]
    fn beside_the_server_are_those_that_may_run_on_its_cores_wherever_they_were_last() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Root::at(directory.path());
        lay_out(&root, &[(1, "init", 0, 10)]);
        let scan = CoreScan::take(&root, &watched()).unwrap();
        lay_out(&root, &[(8, "pinned", 0, 90), (9, "floats", 0, 50), (10, "there", 3, 40)]);
        fs::write(root.path("proc/8/status"), "Cpus_allowed_list:\t0-2\n").unwrap();
        fs::write(root.path("proc/9/status"), "Cpus_allowed_list:\t0-3\n").unwrap();
        let users = scan.beside_server(&root, &watched(), &scan.grown(&root));
        let told: Vec<_> = users.iter().map(|user| (user.name.as_str(), user.cpu_ns)).collect();
        assert_eq!(told, [("floats", 50 * ticks_to_ns(1)), ("there", 40 * ticks_to_ns(1))]);
    }

    #[test]
    fn where_the_first_process_is_hidden_nothing_is_said() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Root::at(directory.path());
        lay_out(&root, &[(70, "ours", 3, 5)]);
        assert!(CoreScan::take(&root, &watched()).is_none());
        lay_out(&root, &[(1, "init", 3, 5)]);
        assert!(CoreScan::take(&root, &watched()).is_some());
        assert!(CoreScan::take(&root, &WatchedCores::default()).is_none(), "no core is watched");
    }

    struct Loop(Child);

    impl Drop for Loop {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_busy_loop_on_a_core_is_named_and_our_own_threads_are_ours() {
        let root = Root::default();
        let core = rustix::thread::sched_getcpu() as u32;
        let own_threads = vec![rustix::thread::gettid().as_raw_nonzero().get() as u32];
        let every_core = WatchedCores { cores: (0..1_024).collect(), own_threads };
        let busy = Command::new("taskset")
            .args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let busy = Loop(busy);
        let scan = CoreScan::take(&root, &every_core).unwrap();
        let begin_ns = clock::thread_cpu_ns();
        std::thread::sleep(Duration::from_millis(300));
        while clock::thread_cpu_ns() < begin_ns + 30_000_000 {}
        // Not the five largest: this machine may have other work.
        let users = scan.all_users(&root, &every_core, &scan.grown(&root));
        let user = users.iter().find(|user| user.pid == busy.0.id()).unwrap();
        assert!(user.cpu_ns >= 20_000_000 && !user.own, "{users:?}");
        let other = WatchedCores { cores: vec![1_023], own_threads: vec![] };
        assert!(scan.all_users(&root, &other, &scan.grown(&root)).is_empty());
        let own: Vec<_> = scan.own(&root, &every_core, std::process::id());
        assert!(own.len() == 1 && own[0].own && own[0].cpu_ns >= 30_000_000, "{own:?}");
    }
}
