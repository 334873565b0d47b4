//! Processes, threads and limits below `/proc`, and the files of control groups, of both versions.

use super::nth_number;

/// What the samplers need of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id.
    pub pid: u32,
    /// Name of the program, cut by the kernel to 15 bytes.
    pub name: String,
    /// Parent.
    pub parent: u32,
    /// Clock ticks in user mode, all threads.
    pub user_ticks: u64,
    /// Clock ticks in the kernel, all threads.
    pub system_ticks: u64,
    /// Clock ticks, user and system, of children that have ended and been waited for.
    pub ended_ticks: u64,
    /// Threads.
    pub threads: u64,
    /// Resident pages.
    pub resident_pages: u64,
}

/// Reads `/proc/PID/stat`. The name may contain blanks and parentheses.
pub fn parse_process_stat(text: &str) -> Option<ProcessStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    // Field 3 of the manual, the state, is token 0 here.
    let tokens: Vec<&str> = tail.split_whitespace().collect();
    Some(ProcessStat {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        parent: tokens.get(1)?.parse().ok()?,
        user_ticks: nth_number(&tokens, 11)?,
        system_ticks: nth_number(&tokens, 12)?,
        ended_ticks: nth_number(&tokens, 13)?.saturating_add(nth_number(&tokens, 14)?),
        threads: nth_number(&tokens, 17)?,
        resident_pages: nth_number(&tokens, 21)?,
    })
}

/// Flag in `/proc/PID/stat`: a thread of the kernel (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

/// Fields that show who used a core, from `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStat {
    /// Name of the program, cut by the kernel to 15 bytes.
    pub name: String,
    /// `R` runs or is ready to, `D` waits for a disk, `S` waits for something else.
    pub state: char,
    /// It is a thread of the kernel.
    pub kernel: bool,
    /// Parent.
    pub parent: u32,
    /// Clock ticks in user mode and in the kernel.
    pub ticks: [u64; 2],
    /// The same of children that have ended and been waited for.
    pub ended_ticks: [u64; 2],
    /// Threads of the process.
    pub threads: u64,
    /// When it began, in clock ticks since boot: distinguishes a process from a later one of the
    /// same id.
    pub began_ticks: u64,
    /// Core on which it ran last; of a process, its first thread's.
    pub core: u32,
}

/// Reads it, without the fields between.
pub fn parse_thread_stat(text: &str) -> Option<ThreadStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut tokens = tail.split_ascii_whitespace();
    // These are fields 3, 4, 9, 14 to 17, 20, 22 and 39 of the manual.
    let state = tokens.next()?.chars().next()?;
    let parent = tokens.next()?.parse().ok()?;
    let flags: u32 = tokens.nth(4)?.parse().ok()?;
    let ticks = [tokens.nth(4)?.parse().ok()?, tokens.next()?.parse().ok()?];
    let ended_ticks = [tokens.next()?.parse().ok()?, tokens.next()?.parse().ok()?];
    let threads = tokens.nth(2)?.parse().ok()?;
    let began_ticks = tokens.nth(1)?.parse().ok()?;
    let core = tokens.nth(16)?.parse().ok()?;
    let kernel = flags & PF_KTHREAD != 0;
    let name = name.to_owned();
    Some(ThreadStat { name, state, kernel, parent, ticks, ended_ticks, threads, began_ticks, core })
}

/// Soft and hard limit from `/proc/PID/limits`, as the kernel spells them (`1024`, `unlimited`).
pub fn parse_limit<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut tokens = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    Some((tokens.next()?, tokens.next()?))
}

/// Cores a `cpu.max` allows (`200000 100000` is two); `None` for `max` and for odd text.
pub fn parse_cpu_max(text: &str) -> Option<f64> {
    let mut tokens = text.split_whitespace();
    let quota_us: u64 = tokens.next()?.parse().ok()?;
    let period_us: u64 = tokens.next()?.parse().ok()?;
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// How often and how long a quota throttled the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the quota ran out.
    pub periods: Option<u64>,
    /// Nanoseconds the group's processes were kept from running, summed over processors.
    pub throttled_ns: Option<u64>,
}

/// Reads `cpu.stat`: version 2 counts microseconds, version 1 nanoseconds.
pub fn parse_throttling(text: &str) -> Throttling {
    let mut throttling = Throttling::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else { continue };
        let count = || value.trim().parse::<u64>().ok();
        match key {
            "nr_throttled" => throttling.periods = count(),
            "throttled_usec" => {
                throttling.throttled_ns = count().and_then(|us| us.checked_mul(1_000));
            }
            "throttled_time" => throttling.throttled_ns = count(),
            _ => {}
        }
    }
    throttling
}

/// Transfers of one device: counts since the group was made, or limits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceRates {
    /// Read requests.
    pub reads: Option<u64>,
    /// Write requests.
    pub writes: Option<u64>,
    /// Bytes read.
    pub read_bytes: Option<u64>,
    /// Bytes written.
    pub written_bytes: Option<u64>,
}

impl DeviceRates {
    /// Keeps the smaller of two limits.
    pub fn keep_smaller(&mut self, other: &Self) {
        let smaller = |a: Option<u64>, b: Option<u64>| [a, b].into_iter().flatten().min();
        self.reads = smaller(self.reads, other.reads);
        self.writes = smaller(self.writes, other.writes);
        self.read_bytes = smaller(self.read_bytes, other.read_bytes);
        self.written_bytes = smaller(self.written_bytes, other.written_bytes);
    }
}

/// Reads `blkio.throttle.io_serviced` or, of `bytes`, `io_service_bytes` into `devices`: lines of
/// `254:0 Read 12` (kernel, cgroup-v1/blkio-controller).
pub fn parse_device_lines(text: &str, bytes: bool, devices: &mut Vec<(String, DeviceRates)>) {
    for line in text.lines() {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        let [device, direction, count] = tokens.as_slice() else { continue };
        let position = devices.iter().position(|(name, _)| name == device).unwrap_or_else(|| {
            devices.push(((*device).to_owned(), DeviceRates::default()));
            devices.len() - 1
        });
        let rates = &mut devices[position].1;
        let field = match (*direction, bytes) {
            ("Read", false) => &mut rates.reads,
            ("Write", false) => &mut rates.writes,
            ("Read", true) => &mut rates.read_bytes,
            ("Write", true) => &mut rates.written_bytes,
            _ => continue,
        };
        *field = count.parse().ok();
    }
}

/// Reads `io.stat` or `io.max` of version 2: `254:0 rbytes=1 wbytes=2 rios=3 wios=4` and
/// `254:0 rbps=max wbps=max riops=800 wiops=max` (kernel, cgroup-v2).
pub fn parse_device_limits(text: &str) -> Vec<(String, DeviceRates)> {
    let line = |line: &str| {
        let (device, rest) = line.split_once(' ')?;
        let mut rates = DeviceRates::default();
        for (key, value) in rest.split_whitespace().filter_map(|word| word.split_once('=')) {
            let field = match key {
                "rios" | "riops" => &mut rates.reads,
                "wios" | "wiops" => &mut rates.writes,
                "rbytes" | "rbps" => &mut rates.read_bytes,
                "wbytes" | "wbps" => &mut rates.written_bytes,
                _ => continue,
            };
            *field = value.parse().ok();
        }
        Some((device.to_owned(), rates))
    };
    text.lines().filter_map(line).collect()
}

/// Pages of a group that were read again soon after memory had no room for them, from
/// `memory.stat`; of version 1 with those of the groups below.
pub fn parse_refaults(text: &str) -> Option<u64> {
    let sum = |prefix: &str| {
        let counts = text.lines().filter_map(|line| {
            let (key, value) = line.split_once(' ')?;
            key.starts_with(prefix).then(|| value.trim().parse::<u64>().ok()).flatten()
        });
        let counts: Vec<u64> = counts.collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    };
    sum("total_workingset_refault").or_else(|| sum("workingset_refault"))
}

#[cfg(test)]
mod tests;
