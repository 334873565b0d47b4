//! Counters as the texts of `/proc` and `/sys` in which the samplers look for them. Pure.

use std::fmt::Write;

use crate::root::Texts;

/// The kernel's tick, as all of `/proc` has it.
const TICKS_PER_SECOND: f64 = 100.0;
const SECTOR_BYTES: f64 = 512.0;
const BYTES_PER_KIB: f64 = 1024.0;
const BITS_PER_BYTE: f64 = 8.0;
const MILLIS_PER_SECOND: f64 = 1e3;
const MICROS_PER_SECOND: f64 = 1e6;

/// Seconds of one processor since its start. What is not told is zero: the samplers take shares of
/// what is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuSeconds {
    pub(super) user: f64,
    pub(super) nice: f64,
    pub(super) system: f64,
    pub(super) idle: f64,
    pub(super) iowait: f64,
    pub(super) irq: f64,
    pub(super) softirq: f64,
    pub(super) steal: f64,
}

/// Counters of one disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskTotals {
    pub(super) reads: f64,
    pub(super) read_bytes: f64,
    pub(super) read_seconds: f64,
    pub(super) writes: f64,
    pub(super) written_bytes: f64,
    pub(super) write_seconds: f64,
    pub(super) in_flight: f64,
    pub(super) busy_seconds: f64,
    pub(super) queue_seconds: f64,
}

/// Counters of one network interface.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NetworkTotals {
    pub(super) received_bytes: f64,
    pub(super) received_packets: f64,
    pub(super) receive_errors: f64,
    pub(super) receive_drops: f64,
    pub(super) sent_bytes: f64,
    pub(super) sent_packets: f64,
    pub(super) send_errors: f64,
    pub(super) send_drops: f64,
    /// Bytes per second; absent where it is not known.
    pub(super) speed: Option<f64>,
}

/// Writes them, a file after the other.
#[derive(Debug, Default)]
pub(super) struct ProcTexts(Texts);

impl ProcTexts {
    pub(super) fn into_texts(self) -> Texts {
        self.0
    }

    /// `/proc/stat`: all processors, and lines such as `ctxt` that are told.
    pub(super) fn stat(&mut self, cpus: &[(u32, CpuSeconds)], lines: &[(&str, Option<f64>)]) {
        let mut text = String::new();
        let mut all = [0; 8];
        let mut each = String::new();
        for (number, cpu) in cpus {
            let ticks = ticks(cpu);
            for (sum, ticks) in all.iter_mut().zip(ticks) {
                *sum = ticks.saturating_add(*sum);
            }
            let _ = writeln!(each, "cpu{number} {}", words(&ticks));
        }
        if !cpus.is_empty() {
            let _ = write!(text, "cpu  {}\n{each}", words(&all));
        }
        for (name, value) in lines {
            if let Some(value) = value {
                let _ = writeln!(text, "{name} {}", whole(*value));
            }
        }
        self.put("proc/stat", text);
    }

    /// Another sum of all processors in `/proc/stat` than what each of them adds to, or none.
    pub(super) fn all_cpus(&mut self, all: Option<CpuSeconds>) {
        let text = self.0.remove("proc/stat").unwrap_or_default();
        let others = text.lines().filter(|line| !line.starts_with("cpu "));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        let all = all.map(|all| format!("cpu  {}\n", words(&ticks(&all)))).unwrap_or_default();
        self.put("proc/stat", format!("{all}{others}"));
    }

    /// `/proc/loadavg`.
    pub(super) fn load(&mut self, load: Option<f64>) {
        if let Some(load) = load {
            self.put("proc/loadavg", format!("{load}\n"));
        }
    }

    /// `/proc/meminfo`, of sizes in bytes.
    pub(super) fn memory<'n>(&mut self, sizes: impl IntoIterator<Item = (&'n str, f64)>) {
        let lines = sizes
            .into_iter()
            .map(|(name, bytes)| format!("{name}: {} kB\n", whole(bytes / BYTES_PER_KIB)));
        self.put("proc/meminfo", lines.collect());
    }

    /// `/proc/vmstat`.
    pub(super) fn vmstat<'n>(&mut self, counters: impl IntoIterator<Item = (&'n str, f64)>) {
        let lines = counters.into_iter().map(|(name, value)| format!("{name} {}\n", whole(value)));
        self.put("proc/vmstat", lines.collect());
    }

    /// `/proc/net/snmp` or `netstat`: one group of counters.
    pub(super) fn paired<'n>(
        &mut self,
        file: &str,
        group: &str,
        counters: impl IntoIterator<Item = (&'n str, f64)>,
    ) {
        let (mut names, mut values) = (format!("{group}:"), format!("{group}:"));
        for (name, value) in counters {
            let _ = write!(names, " {name}");
            let _ = write!(values, " {}", whole(value));
        }
        self.put(file, format!("{names}\n{values}\n"));
    }

    /// `/proc/pressure/NAME`, of seconds.
    pub(super) fn pressure(&mut self, name: &str, some: Option<f64>, full: Option<f64>) {
        let mut text = String::new();
        for (kind, seconds) in [("some", some), ("full", full)] {
            if let Some(seconds) = seconds {
                let _ = writeln!(text, "{kind} total={}", whole(seconds * MICROS_PER_SECOND));
            }
        }
        self.put(&format!("proc/pressure/{name}"), text);
    }

    /// `/proc/diskstats`.
    pub(super) fn disks<'n>(&mut self, disks: impl IntoIterator<Item = (&'n str, DiskTotals)>) {
        let mut text = String::new();
        for (name, disk) in disks {
            let ms = |seconds: f64| whole(seconds * MILLIS_PER_SECOND);
            let sectors = |bytes: f64| whole(bytes / SECTOR_BYTES);
            let _ = writeln!(
                text,
                "0 0 {} {} 0 {} {} {} 0 {} {} {} {} {}",
                one_word(name),
                whole(disk.reads),
                sectors(disk.read_bytes),
                ms(disk.read_seconds),
                whole(disk.writes),
                sectors(disk.written_bytes),
                ms(disk.write_seconds),
                whole(disk.in_flight),
                ms(disk.busy_seconds),
                ms(disk.queue_seconds),
            );
        }
        self.put("proc/diskstats", text);
    }

    /// `/proc/net/dev`, and the speeds of links in `/sys`.
    pub(super) fn networks<'n>(
        &mut self,
        networks: impl IntoIterator<Item = (&'n str, NetworkTotals)>,
    ) {
        let mut text = String::new();
        for (name, it) in networks {
            let name = one_word(name);
            let counts = [
                [it.received_bytes, it.received_packets, it.receive_errors, it.receive_drops],
                [0.0; 4],
                [it.sent_bytes, it.sent_packets, it.send_errors, it.send_drops],
            ];
            let counts = counts.as_flattened().iter().map(|count| whole(*count));
            let _ = writeln!(text, "{name}: {} 0 0 0 0", words(&counts.collect::<Vec<_>>()));
            if let Some(speed) = it.speed.filter(|speed| *speed > 0.0) {
                let mbit_per_s = whole(speed * BITS_PER_BYTE / 1e6);
                self.put(&format!("sys/class/net/{name}/speed"), format!("{mbit_per_s}\n"));
            }
        }
        self.put("proc/net/dev", text);
    }

    /// A file that would be empty is not there.
    fn put(&mut self, file: &str, text: String) {
        if !text.is_empty() {
            self.0.insert(file.to_owned(), text);
        }
    }
}

fn ticks(cpu: &CpuSeconds) -> [u64; 8] {
    [cpu.user, cpu.nice, cpu.system, cpu.idle, cpu.iowait, cpu.irq, cpu.softirq, cpu.steal]
        .map(|seconds| whole(seconds * TICKS_PER_SECOND))
}

fn words(counts: &[u64]) -> String {
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// A counter; what is below zero or no number counts as zero.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// A name that the parsers of `/proc` take for one: other systems have blanks and colons in theirs.
fn one_word(name: &str) -> String {
    let allowed = |c: char| if c.is_alphanumeric() || "._-()#@".contains(c) { c } else { '_' };
    let word: String = name.trim_end_matches(':').chars().map(allowed).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}
