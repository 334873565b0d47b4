//! Every process of a host and its interrupts at an instant, and what was done between two.
//!
//! The kernel counts CPU time in ticks (10 ms as a rule). A process that began between the two
//! readings counts with all it has used. One that ended is counted through its parent, which counts
//! the time of children that it waited for, less their earlier use. A process that leaves neither
//! trace is missing, and appears in the difference from the time that the processors were busy.

use std::collections::{BTreeMap, HashMap};

use plimsoll_model::consumers::{ConsumerWork, HostWork, InterruptCount, InterruptKind};
use plimsoll_model::event::CoreUserKind;

use crate::clock;
use crate::parse::{
    Stat, ThreadStat, parse_interrupts, parse_softirqs, parse_stat, parse_thread_stat,
};
use crate::process::ticks_to_ns;
use crate::root::Root;

/// Consumers that are named.
const CONSUMERS_MAX: usize = 10;
/// Interrupts of each kind that are named.
const INTERRUPTS_MAX: usize = 16;
/// Bytes of a name; the kernel's own workers have up to 64.
const NAME_BYTES_MAX: usize = 64;
/// Processes that are read; a host with more has no census.
const PROCESSES_MAX: usize = 200_000;
/// A line of another host for each process, as `/proc/PID/stat` has it.
const PROCESSES_TEXT: &str = "plimsoll/processes";

/// All that is read at an instant.
#[derive(Debug)]
pub(crate) struct Census {
    pub(crate) at_ns: u64,
    /// By process id.
    pub(crate) processes: HashMap<u32, ThreadStat>,
    stat: Stat,
    soft: BTreeMap<String, u64>,
    hard: BTreeMap<String, u64>,
}

impl Census {
    /// Reads this host.
    pub(crate) fn take(root: &Root) -> Self {
        let at_ns = clock::monotonic_ns();
        let ids = root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
        let of = |pid: u32| {
            let text = root.read(format!("proc/{pid}/stat"))?;
            Some((pid, parse_thread_stat(&text)?))
        };
        Self::with(root, at_ns, ids.take(PROCESSES_MAX).filter_map(of).collect())
    }

    /// Census of another host, where its last frame has all processes.
    pub(crate) fn of_frame(root: &Root, at_ns: u64) -> Option<Self> {
        let text = root.read(PROCESSES_TEXT)?;
        let of = |line: &str| {
            let pid = line.split_once(' ')?.0.parse::<u32>().ok()?;
            Some((pid, parse_thread_stat(line)?))
        };
        // An invalid line shows that the text was cut.
        let processes: Option<HashMap<_, _>> =
            text.lines().filter(|line| !line.is_empty()).take(PROCESSES_MAX).map(of).collect();
        Some(Self::with(root, at_ns, processes.filter(|all| !all.is_empty())?))
    }

    fn with(root: &Root, at_ns: u64, processes: HashMap<u32, ThreadStat>) -> Self {
        let text = |file: &str| root.read(file).unwrap_or_default();
        Self {
            at_ns,
            processes,
            stat: parse_stat(&text("proc/stat")),
            soft: parse_softirqs(&text("proc/softirqs")),
            hard: parse_interrupts(&text("proc/interrupts")),
        }
    }

    /// Work done since an earlier census. `kind` gives the owner of a process where the process
    /// itself does not show it.
    pub(crate) fn since(
        &self,
        before: &Self,
        kind: impl Fn(u32) -> Option<CoreUserKind>,
    ) -> Option<HostWork> {
        let (was, is) = (before.stat.all?, self.stat.all?);
        let grown = |was: u64, is: u64| ticks_to_ns(is.saturating_sub(was));
        let (consumers, others) = largest(self.consumers(before, kind));
        let interrupts = [
            counts(InterruptKind::Soft, &before.soft, &self.soft),
            counts(InterruptKind::Hard, &before.hard, &self.hard),
        ];
        Some(HostWork {
            source: None,
            elapsed_ns: self.at_ns.saturating_sub(before.at_ns),
            processors: self.stat.cpus.len() as u32,
            busy_ns: grown(was.busy(), is.busy()),
            irq_ns: grown(was.irq, is.irq),
            softirq_ns: grown(was.softirq, is.softirq),
            forks: self.stat.forks.zip(before.stat.forks).map(|(is, was)| is.saturating_sub(was)),
            consumers,
            others,
            interrupts: interrupts.concat(),
        })
    }

    /// Everybody who used CPU time, summed by name.
    fn consumers(
        &self,
        before: &Self,
        kind: impl Fn(u32) -> Option<CoreUserKind>,
    ) -> Vec<ConsumerWork> {
        let gone = self.gone(before);
        let mut all: BTreeMap<(String, CoreUserKind, bool), ConsumerWork> = BTreeMap::new();
        for (pid, now) in &self.processes {
            let was = before.same(*pid, now);
            let (ticks, ended) = was.map_or(([0; 2], [0; 2]), |it| (it.ticks, it.ended_ticks));
            let kind = kind(*pid).unwrap_or(match now.kernel {
                true => CoreUserKind::Kernel,
                false => CoreUserKind::Other,
            });
            let of_gone = gone.get(pid).copied().unwrap_or_default();
            let own = less(now.ticks, ticks);
            let of_children = less(less(now.ended_ticks, ended), of_gone);
            for (is_ended, ticks) in [(false, own), (true, of_children)] {
                if ticks == [0; 2] {
                    continue;
                }
                let key = (name_of(now), kind, is_ended);
                let sum = all.entry(key).or_default();
                sum.processes += u32::from(!is_ended);
                sum.user_ns = sum.user_ns.saturating_add(ticks_to_ns(ticks[0]));
                sum.system_ns = sum.system_ns.saturating_add(ticks_to_ns(ticks[1]));
            }
        }
        let named = |((name, kind, ended), work)| ConsumerWork { name, kind, ended, ..work };
        all.into_iter().map(named).collect()
    }

    /// Earlier use of processes that have ended, by the ancestor that is still there.
    fn gone(&self, before: &Self) -> HashMap<u32, [u64; 2]> {
        let mut all: HashMap<u32, [u64; 2]> = HashMap::new();
        let is_here = |pid: u32, was: &ThreadStat| self.same(pid, was).is_some();
        for (pid, was) in before.processes.iter().filter(|(pid, was)| !is_here(**pid, was)) {
            let mut ancestor = was.parent;
            // A circle of parents is no kernel's.
            for _ in 0..ANCESTORS_MAX {
                match before.processes.get(&ancestor).filter(|it| !is_here(ancestor, it)) {
                    Some(gone) if ancestor != *pid => ancestor = gone.parent,
                    _ => break,
                }
            }
            let sum = all.entry(ancestor).or_default();
            for part in [was.ticks, was.ended_ticks] {
                *sum = [sum[0].saturating_add(part[0]), sum[1].saturating_add(part[1])];
            }
        }
        all
    }

    /// The same process, not a later one of the same id.
    fn same(&self, pid: u32, process: &ThreadStat) -> Option<&ThreadStat> {
        self.processes.get(&pid).filter(|it| it.began_ticks == process.began_ticks)
    }
}

/// Processes between one that ended and the ancestor that lives.
const ANCESTORS_MAX: usize = 64;

fn less(now: [u64; 2], before: [u64; 2]) -> [u64; 2] {
    [now[0].saturating_sub(before[0]), now[1].saturating_sub(before[1])]
}

/// Common name of processes of one kind: kernel threads have a processor or their current work in
/// their names (`ksoftirqd/1`, `kworker/0:1-events`).
fn name_of(process: &ThreadStat) -> String {
    let name = process.name.as_str();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = match name.split_once('/') {
        Some((head @ "kworker", _)) if process.kernel => head,
        Some((head, rest)) if process.kernel && number(rest) => head,
        _ => name,
    };
    let end =
        name.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|at| *at <= NAME_BYTES_MAX);
    let end = end.last().unwrap_or(0);
    name[..end].chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The largest by themselves, and the sum of the others.
fn largest(mut all: Vec<ConsumerWork>) -> (Vec<ConsumerWork>, ConsumerWork) {
    all.sort_by(|a, b| b.cpu_ns().cmp(&a.cpu_ns()).then_with(|| a.name.cmp(&b.name)));
    let rest = all.split_off(all.len().min(CONSUMERS_MAX));
    let mut others = ConsumerWork::default();
    for it in rest {
        others.processes = others.processes.saturating_add(it.processes);
        others.user_ns = others.user_ns.saturating_add(it.user_ns);
        others.system_ns = others.system_ns.saturating_add(it.system_ns);
    }
    (all, others)
}

/// Those that were served, the most frequent first.
fn counts(
    kind: InterruptKind,
    before: &BTreeMap<String, u64>,
    now: &BTreeMap<String, u64>,
) -> Vec<InterruptCount> {
    let grown = |(name, count): (&String, &u64)| InterruptCount {
        name: name.clone(),
        kind,
        count: count.saturating_sub(before.get(name).copied().unwrap_or_default()),
    };
    let mut all: Vec<_> = now.iter().map(grown).filter(|it| it.count > 0).collect();
    all.sort_by_key(|it| std::cmp::Reverse(it.count));
    all.truncate(INTERRUPTS_MAX);
    all
}

#[cfg(test)]
mod tests;
