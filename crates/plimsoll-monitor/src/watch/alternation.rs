//! Two resources that alternate within a second: processors that are full while nobody waits for
//! storage, and the reverse. Means over a second show both half used; samples of 50 ms show it.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::parse::{CpuTimes, parse_pressure, parse_stat};
use crate::root::{ProcFile, Root};

/// Time between two samples.
pub(super) const INTERVAL_NS: u64 = NANOS_PER_SECOND / 20;
/// The text of more processors takes too long to read so often.
const CORES_MAX: usize = 32;
/// Share of a sample from which a resource was full in it.
const FULL_MIN_RATIO: f64 = 0.8;
/// Share of a sample from which somebody waited for storage in it. The kernel weighs this by how
/// busy each processor is, so that it stays low on a host that does other work too.
const STALLED_MIN_RATIO: f64 = 0.4;
/// Fewer samples show nothing.
const SAMPLES_MIN: f64 = 20.0;

/// Reads both, and adds up how they go together.
#[derive(Debug)]
pub(super) struct Alternation {
    stat: ProcFile,
    storage: ProcFile,
    cores: Vec<u32>,
    before: Option<Reading>,
    sums: Sums,
    buffer: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Reading {
    at_ns: u64,
    busy: u64,
    total: u64,
    stalled_us: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
    x_full: f64,
    y_full: f64,
}

impl Alternation {
    /// For these cores, and for the storage of the whole host.
    pub(super) fn open(root: &Root, cores: Vec<u32>) -> Option<Self> {
        (!cores.is_empty() && cores.len() <= CORES_MAX).then(|| Self {
            stat: ProcFile::open(root, "proc/stat"),
            storage: ProcFile::open(root, "proc/pressure/io"),
            cores,
            before: None,
            sums: Sums::default(),
            buffer: Vec::new(),
        })
    }

    pub(super) fn sample(&mut self, at_ns: u64) {
        let Some(now) = self.read(at_ns) else { return };
        if let Some(before) = self.before.replace(now.clone()) {
            let part = |part: u64, whole: u64| (part as f64 / whole.max(1) as f64).min(1.0);
            let total = now.total.saturating_sub(before.total);
            let elapsed_us = now.at_ns.saturating_sub(before.at_ns) / 1_000;
            let busy = part(now.busy.saturating_sub(before.busy), total);
            let stalled = part(now.stalled_us.saturating_sub(before.stalled_us), elapsed_us);
            self.sums.add(busy, stalled);
        }
    }

    fn read(&mut self, at_ns: u64) -> Option<Reading> {
        let stat = parse_stat(&self.stat.read(&mut self.buffer)?);
        let of = |times: fn(&CpuTimes) -> u64| {
            let own = stat.cpus.iter().filter(|(number, _)| self.cores.contains(number));
            own.map(|(_, of_core)| times(of_core)).sum()
        };
        let (busy, total) = (of(CpuTimes::busy), of(CpuTimes::total));
        let stalled_us = parse_pressure(&self.storage.read(&mut self.buffer)?).some_us?;
        Some(Reading { at_ns, busy, total, stalled_us })
    }

    /// Results of the window; the next starts afresh.
    pub(super) fn resources(&self) -> Vec<ResourceUse> {
        let Sums { n, x_full, y_full, .. } = self.sums;
        let Some(correlation) = self.sums.correlation() else { return Vec::new() };
        let figures = [
            ("host.turns_correlation", correlation),
            ("host.turns_cpu_full", x_full / n),
            ("host.turns_storage_stalled", y_full / n),
        ];
        let use_ = |(name, value)| ResourceUse::of_window(name, "ratio", value, value);
        figures.into_iter().map(use_).collect()
    }
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.yy += y * y;
        self.xy += x * y;
        self.x_full += f64::from(u8::from(x >= FULL_MIN_RATIO));
        self.y_full += f64::from(u8::from(y >= STALLED_MIN_RATIO));
    }

    /// Pearson's; absent where one of both did not vary.
    fn correlation(&self) -> Option<f64> {
        let n = Some(self.n).filter(|n| *n >= SAMPLES_MIN)?;
        let spread = |sum: f64, squares: f64| (n * squares - sum * sum).max(0.0).sqrt();
        let spreads = spread(self.x, self.xx) * spread(self.y, self.yy);
        (spreads > 1e-9 * n * n).then(|| (n * self.xy - self.x * self.y) / spreads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(of: impl Fn(u64) -> (u64, u64)) -> Vec<f64> {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Root::in_directory(directory.path());
        std::fs::create_dir_all(root.path("proc/pressure")).unwrap();
        let (mut busy, mut idle, mut stalled) = (0, 0, 0);
        let mut alternation: Option<Alternation> = None;
        for sample in 0..60 {
            let (ticks, us) = of(sample);
            busy += ticks;
            idle += 5 - ticks;
            stalled += us;
            let stat = format!("cpu 0 0 0 0\ncpu0 9 0 0 9\ncpu1 {busy} 0 0 {idle}\n");
            std::fs::write(root.path("proc/stat"), stat).unwrap();
            std::fs::write(root.path("proc/pressure/io"), format!("some total={stalled}\n"))
                .unwrap();
            let alternation =
                alternation.get_or_insert_with(|| Alternation::open(&root, vec![1]).unwrap());
            alternation.sample(sample * INTERVAL_NS);
        }
        alternation.unwrap().resources().into_iter().map(|resource| resource.mean).collect()
    }

    #[test]
    fn turns_of_100_ms_are_seen_and_two_at_once_are_not_turns() {
        let alternating = means(|sample| if sample / 2 % 2 == 0 { (5, 0) } else { (0, 50_000) });
        assert!(
            alternating[0] < -0.99 && alternating[1] > 0.4 && alternating[2] > 0.4,
            "{alternating:?}"
        );
        let together = means(|sample| if sample / 2 % 2 == 0 { (5, 50_000) } else { (0, 0) });
        assert!(together[0] > 0.99, "{together:?}");
        assert!(means(|_| (5, 50_000)).is_empty(), "what does not vary takes no turns");
    }
}
