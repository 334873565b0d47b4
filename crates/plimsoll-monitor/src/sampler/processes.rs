//! Processes that are watched, alone or with their descendants (a web server and its workers).

use plimsoll_model::units::NANOS_PER_SECOND;

use super::Elapsed;
use super::table::{Column, Rows, Table, Unit};
use super::tree::{ThreadsUse, Tree, all_processes};
use crate::process::WatchedProcess;
use crate::root::Root;

/// Searching all processes for descendants, counting descriptors and reading cores happen once in
/// this many samples, since all of them walk directories. Children of known processes are looked
/// for at each.
const SAMPLES_PER_SCAN: u32 = 10;

pub(super) static PROCESSES: Table = Table::keyed("process").columns(&[
    Column::drawn("cpu", Unit::Cores),
    Column::written("cpu_user", Unit::Cores),
    Column::summed("cpu_system", Unit::Cores),
    // Ready to run while others had the core, over all threads.
    Column::summed("run_delay", Unit::Cores),
    Column::summed("busiest_thread", Unit::Cores),
    // Cores that it may use, and how busy they are with whatever runs there.
    Column::summed("cores_allowed", Unit::Count),
    Column::summed("cores_busy", Unit::Cores),
    Column::summed("cores_steal", Unit::Cores),
    // Number of the only core that it may use.
    Column::summed("core", Unit::Count),
    Column::summed("threads_waiting_for_disk", Unit::Count),
    Column::summed("threads_waiting_for_lock", Unit::Count),
    Column::summed("rss", Unit::Bytes),
    Column::summed("threads", Unit::Count),
    Column::summed("descriptors", Unit::Count),
    Column::summed("processes", Unit::Count),
    // Times that a thread was given a core.
    Column::drawn("context_switches", Unit::PerSecond),
]);

#[derive(Debug)]
pub(super) struct ProcessSource {
    root: Root,
    trees: Vec<Tree>,
    samples_to_scan: u32,
    buffer: Vec<u8>,
}

impl ProcessSource {
    pub(super) fn new(root: Root, processes: Vec<WatchedProcess>) -> Self {
        let mut source = Self { root, trees: Vec::new(), samples_to_scan: 0, buffer: Vec::new() };
        for process in processes {
            source.watch(process);
        }
        source
    }

    /// Two rows of one name would be summed as one, so the later gets a number.
    pub(super) fn watch(&mut self, mut process: WatchedProcess) {
        let name = process.name.clone();
        let mut number = 2;
        while self.trees.iter().any(|tree| tree.process.name == process.name) {
            process.name = format!("{name}-{number}");
            number += 1;
        }
        self.trees.push(Tree::new(&self.root, process));
        self.rescan();
    }

    pub(super) fn rescan(&mut self) {
        self.samples_to_scan = 0;
    }

    /// What is watched, by the names of the rows.
    pub(super) fn watched(&self) -> impl Iterator<Item = &WatchedProcess> {
        self.trees.iter().map(|tree| &tree.process)
    }

    /// Cores of the first process that is watched with its descendants.
    pub(super) fn server_cores(&self) -> Vec<u32> {
        let server = self.trees.iter().find(|tree| tree.follows());
        server.map(|tree| tree.cores.iter().copied().collect()).unwrap_or_default()
    }

    pub(super) fn is_of_server(&self, pid: u32) -> bool {
        self.trees.iter().any(|tree| tree.follows() && tree.has(pid))
    }

    /// `cpus` are the rows of the processors of the same sample.
    pub(super) fn sample(&mut self, elapsed: Elapsed, cpus: &Rows, rows: &mut Rows) {
        rows.clear();
        if self.trees.is_empty() {
            return;
        }
        for tree in self.trees.iter_mut().filter(|tree| tree.follows()) {
            tree.follow(&self.root);
        }
        let scans = self.samples_to_scan == 0;
        if scans {
            self.samples_to_scan = SAMPLES_PER_SCAN;
            self.scan();
        }
        self.samples_to_scan -= 1;
        for tree in &mut self.trees {
            let values = values(tree, &self.root, &mut self.buffer, elapsed, cpus);
            rows.push(&tree.process.name, &values);
            let may_look = scans || self.root.frame().is_some();
            if may_look && tree.follows() {
                tree.look_for_cores(&self.root);
            }
        }
    }

    fn scan(&mut self) {
        let all = match self.trees.iter().any(Tree::follows) {
            true => all_processes(&self.root),
            false => Vec::new(),
        };
        for tree in &mut self.trees {
            tree.scan(&self.root, &all);
        }
    }
}

fn values(
    tree: &mut Tree,
    root: &Root,
    buffer: &mut Vec<u8>,
    elapsed: Elapsed,
    cpus: &Rows,
) -> [Option<f64>; 16] {
    let total = tree.sample(root, buffer);
    let cores = |ns: Option<u64>| elapsed.rate(Some(0), ns).map(|ns| ns / NANOS_PER_SECOND as f64);
    let cpu = total.user_ns.zip(total.system_ns);
    let cpu = cpu.map(|(user, system)| user.saturating_add(system).saturating_add(total.ended_ns));
    let count = |n: u64| (total.processes > 0).then_some(n as f64);
    let threads = |of: fn(&ThreadsUse) -> u64| total.by_thread.as_ref().map(of);
    let of_cores = |column: &str| {
        let busy = tree.cores.iter().map(|core| cpus.value(&core.to_string(), column));
        busy.sum::<Option<f64>>().filter(|_| !tree.cores.is_empty())
    };
    let allowed = tree.cores.len() as f64;
    [
        cores(cpu),
        cores(total.user_ns),
        cores(total.system_ns),
        cores(threads(|t| t.wait_ns)),
        cores(threads(|t| t.busiest_ns)),
        Some(allowed).filter(|allowed| *allowed > 0.0),
        of_cores("busy"),
        of_cores("steal"),
        tree.cores.first().filter(|_| tree.cores.len() == 1).map(|core| f64::from(*core)),
        threads(|t| t.for_disk).map(|n| n as f64),
        threads(|t| t.for_lock).map(|n| n as f64),
        count(total.rss_bytes),
        count(total.threads),
        tree.descriptors.map(|n| n as f64),
        Some(total.processes as f64),
        elapsed.rate(Some(0), threads(|t| t.switches)),
    ]
}
