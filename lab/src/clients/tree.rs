//! A process with all its descendants: CPU time and memory, looked at while it runs.

use std::fs;
use std::time::Duration;

use plimsoll_servers::clock::monotonic_ns;

use crate::process;

/// How often to look: some clients are dozens of processes, and polling them costs time on a core
/// that one of them may need.
const LOOK_EVERY_NS: u64 = 500_000_000;

/// What was observed of it.
#[derive(Default)]
pub struct Watched {
    looks: Vec<Look>,
    peak_bytes: u64,
}

struct Look {
    at_ns: u64,
    cpu: Duration,
}

impl Watched {
    /// Looks at the process, if it is time to.
    pub fn look(&mut self, id: u32) {
        let at_ns = monotonic_ns();
        if self.looks.last().is_some_and(|last| at_ns - last.at_ns < LOOK_EVERY_NS) {
            return;
        }
        let ids = tree(id);
        let cpu = ids.iter().filter_map(|id| cpu(*id)).sum();
        let bytes = ids.iter().filter_map(|id| process::memory_bytes(*id, "VmRSS:")).sum();
        self.looks.push(Look { at_ns, cpu });
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    /// CPU time between two instants of CLOCK_MONOTONIC; `None` where it was not watched all the
    /// time.
    pub fn cpu_between(&self, [from_ns, to_ns]: [u64; 2]) -> Option<Duration> {
        self.cpu_at(to_ns)?.checked_sub(self.cpu_at(from_ns)?)
    }

    /// Most resident memory of all processes together. Memory that several share counts in each.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// On the line between the looks before and after.
    fn cpu_at(&self, at_ns: u64) -> Option<Duration> {
        let after = self.looks.iter().position(|look| look.at_ns >= at_ns)?;
        let after_look = &self.looks[after];
        let before = &self.looks[after.checked_sub(1)?];
        let part = (at_ns - before.at_ns) as f64 / (after_look.at_ns - before.at_ns) as f64;
        let between = after_look.cpu.checked_sub(before.cpu)?;
        Some(before.cpu + between.mul_f64(part))
    }
}

/// The process and its descendants.
fn tree(id: u32) -> Vec<u32> {
    let mut ids = vec![id];
    let mut next = 0;
    while let Some(id) = ids.get(next).copied() {
        ids.extend(children(id));
        next += 1;
    }
    ids
}

/// Children of all its threads.
fn children(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let ids = lists.flat_map(|list| {
        list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>()
    });
    ids.collect()
}

/// User and system time of a process and of its children that have ended: proc(5),
/// `/proc/PID/stat`, fields 14 to 17.
fn cpu(id: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields = after_name.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_between_the_looks() {
        let look = |at_ns, ms| Look { at_ns, cpu: Duration::from_millis(ms) };
        let looks = vec![look(0, 0), look(1_000, 100), look(2_000, 300)];
        let watched = Watched { looks, peak_bytes: 0 };
        assert_eq!(watched.cpu_between([500, 1_500]), Some(Duration::from_millis(150)));
        assert_eq!(watched.cpu_between([500, 2_500]), None);
    }

    #[test]
    fn a_child_of_a_child_belongs_to_the_tree() {
        let mut child = std::process::Command::new("sh");
        let mut child = child.args(["-c", "sleep 20 & wait"]).spawn().unwrap();
        let is_complete = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            tree(std::process::id()).len() >= 3
        });
        let grandchildren = tree(child.id());
        for id in grandchildren.iter().skip(1) {
            let _ = std::process::Command::new("kill").arg(id.to_string()).status();
        }
        let _ = child.wait();
        assert!(is_complete);
    }
}
