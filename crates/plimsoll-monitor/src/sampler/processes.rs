//! Processes that are watched, alone or with their descendants (a web server and its workers).

use std::path::PathBuf;

use plimsoll_model::units::NANOS_PER_SECOND;

use super::Elapsed;
use super::proc_file::ProcFile;
use super::table::{Column, Rows, Table, Unit};
use crate::parse::{ProcessStat, parse_process_stat};
use crate::process::ProcessUse;
use crate::root::Root;
use crate::watch::{Scope, WatchedProcess};

/// Descendants are looked for, and descriptors counted, once in so many samples: both walk
/// directories.
const SAMPLES_PER_SCAN: u32 = 5;

pub(super) static PROCESSES: Table = Table {
    name: "process",
    keyed: true,
    idle_left_out: false,
    columns: &[
        Column::summed("cpu", Unit::Cores),
        Column::written("cpu_user", Unit::Cores),
        Column::written("cpu_system", Unit::Cores),
        Column::summed("rss", Unit::Bytes),
        Column::summed("threads", Unit::Count),
        Column::summed("descriptors", Unit::Count),
        Column::summed("processes", Unit::Count),
    ],
};

/// A watched process and its descendants.
#[derive(Debug)]
struct Tree {
    process: WatchedProcess,
    members: Vec<Member>,
    descriptors: Option<u64>,
}

/// One process of a tree.
#[derive(Debug)]
struct Member {
    pid: u32,
    stat: ProcFile,
    before: Option<ProcessUse>,
}

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
        let member = Member::open(&self.root, process.pid);
        self.trees.push(Tree { process, members: vec![member], descriptors: None });
        self.rescan();
    }

    pub(super) fn rescan(&mut self) {
        self.samples_to_scan = 0;
    }

    pub(super) fn sample(&mut self, elapsed: Elapsed, rows: &mut Rows) {
        rows.clear();
        if self.trees.is_empty() {
            return;
        }
        if self.samples_to_scan == 0 {
            self.samples_to_scan = SAMPLES_PER_SCAN;
            self.scan();
        }
        self.samples_to_scan -= 1;
        for tree in &mut self.trees {
            let total = tree.sample(&mut self.buffer);
            let cores =
                |ns: Option<u64>| elapsed.rate(Some(0), ns).map(|ns| ns / NANOS_PER_SECOND as f64);
            let cpu = total.user_ns.zip(total.system_ns).map(|(u, s)| u.saturating_add(s));
            let count = |n: u64| (total.processes > 0).then_some(n as f64);
            let values = [
                cores(cpu),
                cores(total.user_ns),
                cores(total.system_ns),
                count(total.rss_bytes),
                count(total.threads),
                tree.descriptors.map(|n| n as f64),
                Some(total.processes as f64),
            ];
            rows.push(&tree.process.name, &values);
        }
    }

    /// A descendant that is found only now counts from now on: what it used before would all fall
    /// into one sample.
    fn scan(&mut self) {
        let with_descendants = |tree: &Tree| tree.process.scope == Scope::WithDescendants;
        let all = match self.trees.iter().any(with_descendants) {
            true => all_processes(&self.root),
            false => Vec::new(),
        };
        for tree in &mut self.trees {
            let found = match tree.process.scope {
                Scope::Alone => Vec::new(),
                Scope::WithDescendants => descendants(&all, tree.process.pid),
            };
            for pid in found {
                if !tree.members.iter().any(|member| member.pid == pid) {
                    tree.members.push(Member::open(&self.root, pid));
                }
            }
            let counts: Option<Vec<u64>> =
                tree.members.iter().map(|member| descriptors(&self.root, member.pid)).collect();
            tree.descriptors = counts.map(|counts| counts.iter().sum());
        }
    }
}

/// Sums over a tree. CPU time is what was used since the sample before.
#[derive(Default)]
struct TreeUse {
    user_ns: Option<u64>,
    system_ns: Option<u64>,
    rss_bytes: u64,
    threads: u64,
    processes: u64,
}

impl Tree {
    /// Members that ended are dropped; what they used after their last sample is not seen.
    fn sample(&mut self, buffer: &mut Vec<u8>) -> TreeUse {
        let mut total = TreeUse::default();
        self.members.retain_mut(|member| {
            let stat = member.stat.read(buffer).and_then(|text| parse_process_stat(&text));
            let Some(stat) = stat else { return false };
            let now = ProcessUse::from_stat(&stat);
            if let Some(before) = member.before.replace(now) {
                let grown = |sum: Option<u64>, before: u64, now: u64| {
                    Some(sum.unwrap_or(0).saturating_add(now.saturating_sub(before)))
                };
                total.user_ns = grown(total.user_ns, before.user_ns, now.user_ns);
                total.system_ns = grown(total.system_ns, before.system_ns, now.system_ns);
            }
            total.rss_bytes = total.rss_bytes.saturating_add(now.rss_bytes);
            total.threads = total.threads.saturating_add(now.threads);
            total.processes += 1;
            true
        });
        total
    }
}

impl Member {
    fn open(root: &Root, pid: u32) -> Self {
        Self { pid, stat: ProcFile::open(root, format!("proc/{pid}/stat")), before: None }
    }
}

fn all_processes(root: &Root) -> Vec<ProcessStat> {
    let names = root.names("proc");
    let pids = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    pids.filter_map(|pid| parse_process_stat(&root.read(format!("proc/{pid}/stat"))?)).collect()
}

/// All processes below one, children before grandchildren.
fn descendants(all: &[ProcessStat], root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        for process in all.iter().filter(|process| process.parent == parent) {
            if !found.contains(&process.pid) {
                found.push(process.pid);
            }
        }
    }
    found.remove(0);
    found
}

/// Open descriptors. Since Linux 6.2 the directory's size says; before, its entries are counted.
fn descriptors(root: &Root, pid: u32) -> Option<u64> {
    let directory = root.path(PathBuf::from(format!("proc/{pid}/fd")));
    let size = std::fs::metadata(&directory).ok()?.len();
    match size {
        0 => Some(std::fs::read_dir(&directory).ok()?.count() as u64),
        size => Some(size),
    }
}
