//! The CPU time of servers, read by a thread of the test from `/proc`, not by the program.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::unix_ns;

/// How often it is read.
const PAUSE: Duration = Duration::from_millis(50);
/// Programs that are servers, as the kernel names them; `plimsoll` is one as `plimsoll serve`.
const SERVERS: [&str; 5] = ["nginx", "ganesha.nfsd", "smbd", "caddy", "plimsoll"];

/// Unix time and CPU time since the start of the servers, in nanoseconds.
type Reading = (u64, u64);

/// Reads until it is dropped.
pub struct Accounting {
    readings: Arc<Mutex<Vec<Reading>>>,
    /// Processes whose descendants count.
    roots: Arc<Mutex<Vec<u32>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Accounting {
    /// Of the servers among these processes and their descendants.
    pub fn start(roots: Vec<u32>) -> Self {
        let readings = Arc::<Mutex<Vec<Reading>>>::default();
        let (roots, stop) = (Arc::new(Mutex::new(roots)), Arc::<AtomicBool>::default());
        let (written, of, ended) = (Arc::clone(&readings), Arc::clone(&roots), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut used_ns = HashMap::new();
            while !ended.load(Ordering::Relaxed) {
                let roots = of.lock().unwrap_or_else(PoisonError::into_inner).clone();
                update(&mut used_ns, &roots);
                let reading = (unix_ns(), used_ns.values().sum());
                written.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
                std::thread::sleep(PAUSE);
            }
        });
        Self { readings, roots, stop, thread: Some(thread) }
    }

    /// One more process whose descendants count.
    pub fn add(&self, root: u32) {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).push(root);
    }

    /// Lowest and highest CPU time within this span, as the readings before and after its ends
    /// have it.
    pub fn between(&self, begin_ns: u64, end_ns: u64) -> Option<[u64; 2]> {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let before = |ns| readings.iter().rev().find(|it| it.0 <= ns).map(|it| it.1);
        let after = |ns| readings.iter().find(|it| it.0 >= ns).map(|it| it.1);
        let low = before(end_ns)?.saturating_sub(after(begin_ns)?);
        Some([low, after(end_ns)?.saturating_sub(before(begin_ns)?)])
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// By thread; one that has ended keeps its time.
fn update(used_ns: &mut HashMap<u32, u64>, roots: &[u32]) {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map_or("", |it| it.1);
        let parent = after_name.split(' ').nth(1).and_then(|text| text.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut counted: HashSet<u32> = roots.iter().copied().collect();
    loop {
        let is_child = |it: &(&u32, &u32)| counted.contains(it.1) && !counted.contains(it.0);
        let children: Vec<u32> = parents.iter().filter(is_child).map(|it| *it.0).collect();
        if children.is_empty() {
            break;
        }
        counted.extend(children);
    }
    for pid in counted.into_iter().filter(|pid| is_server(*pid)) {
        used_ns.extend(cpu_ns(pid));
    }
}

fn is_server(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    SERVERS.contains(&name.trim()) && (name.trim() != "plimsoll" || line.contains("\0serve\0"))
}

/// Time that each of its threads was on a processor.
fn cpu_ns(pid: u32) -> Vec<(u32, u64)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let on_cpu = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let thread = thread.file_name().to_str()?.parse().ok()?;
        Some((thread, text.split(' ').next()?.parse::<u64>().ok()?))
    });
    on_cpu.collect()
}
