//! Means and maxima over the window of a load point. Pure.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::sampler::{Column, Row, Rows, Sample, Table, Unit};

/// Samples of a resource that are kept.
const DRAWN_MAX: usize = 120;

/// Part of a window that the samples of a counter must cover. Otherwise its growth in the window is
/// unknown.
pub(super) const COVERED_MIN_RATIO: f64 = 0.9;
/// Part of their own time that must lie in the window, where they are taken at its borders …
pub(super) const WITHIN_MIN_RATIO: f64 = 0.9;
/// … and where they come from another host, which may take its time, or counts at its own pace.
pub(super) const WITHIN_ELSEWHERE_MIN_RATIO: f64 = 0.6;
/// Tables of figures that servers and GPUs report: their rates are over the time between two
/// answers, whatever the time between samples.
const OWN_TIMES: [&str; 3] = ["server", "model", "gpu"];

/// A mean by time and a maximum.
#[derive(Clone, Debug, Default)]
struct Mean {
    weighted_sum: f64,
    weight: f64,
    /// Whole length of the samples, in the window or not.
    sampled_ns: f64,
    /// End of the last sample with a value, in the window or not.
    sampled_to_ns: Option<u64>,
    /// Maximum of samples that lie in the window by half or more.
    max: Option<f64>,
    /// Maximum of the others; used when the window is too short to contain a sample.
    edge_max: Option<f64>,
    /// Samples by the middle of their time in the window, where they are kept.
    timeline: Vec<(f64, f64)>,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64, whole: bool) {
        self.weighted_sum += value * weight;
        self.weight += weight;
        let max = if whole { &mut self.max } else { &mut self.edge_max };
        *max = Some(max.map_or(value, |max| max.max(value)));
    }

    /// Samples cover a window of this length, and little else.
    fn is_of_window(&self, window_ns: u64, within_min_ratio: f64) -> bool {
        self.weight >= COVERED_MIN_RATIO * window_ns as f64
            && self.weight >= within_min_ratio * self.sampled_ns
    }

    /// Mean and maximum; absent without samples.
    fn summary(&self) -> Option<(f64, f64)> {
        let max = self.max.or(self.edge_max).filter(|_| self.weight > 0.0)?;
        Some((self.weighted_sum / self.weight, max))
    }
}

/// One row of a table over time.
#[derive(Debug)]
struct Series {
    key: String,
    columns: Vec<Mean>,
}

/// Sums over the samples of a window.
#[derive(Debug, Default)]
pub(super) struct Sums {
    tables: Vec<(&'static Table, Vec<Series>)>,
    covered_ns: u64,
    process_cpu_ns: u64,
    monitor_cpu_ns: u64,
}

/// CPU time since the sample before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnCpu {
    pub(super) process_ns: u64,
    pub(super) monitor_ns: u64,
}

impl Sums {
    /// Adds a sample by the part of its time that lies in the window (monotonic nanoseconds). One
    /// that lies in it by less than half counts for the mean, not for the maximum.
    pub(super) fn add(&mut self, sample: &Sample, own: OwnCpu, window: (u64, u64)) {
        let end = sample.at.monotonic_ns;
        let span = Span { start: end.saturating_sub(sample.elapsed_ns), end, window };
        if let Some(weight) = span.weight() {
            let part = weight.ns / sample.elapsed_ns as f64;
            self.covered_ns += weight.ns as u64;
            self.process_cpu_ns += (own.process_ns as f64 * part).round() as u64;
            self.monitor_cpu_ns += (own.monitor_ns as f64 * part).round() as u64;
        }
        for (index, rows) in sample.tables().into_iter().enumerate() {
            if self.tables.len() <= index {
                self.tables.push((rows.table, Vec::new()));
            }
            add_rows(&mut self.tables[index].1, rows, span);
        }
    }

    /// Part of the window that samples cover.
    pub(super) fn covered_ns(&self) -> u64 {
        self.covered_ns
    }

    pub(super) fn own_cpu(&self) -> OwnCpu {
        OwnCpu { process_ns: self.process_cpu_ns, monitor_ns: self.monitor_cpu_ns }
    }

    /// Resources of a window of this length; at least this share of the time of samples must lie
    /// in it. Named `table.key.column`, or `table.column` where there is no key. Counters without
    /// enough samples are left out.
    pub(super) fn resources(&self, window_ns: u64, within_min_ratio: f64) -> Vec<ResourceUse> {
        let mut resources = Vec::new();
        for (table, all) in &self.tables {
            for series in all.iter().filter(|series| !table.idle_left_out || series.was_used(table))
            {
                let is_covered = |(column, mean): &(&'static Column, &Mean)| {
                    !is_counter(table, column) || mean.is_of_window(window_ns, within_min_ratio)
                };
                for (column, mean) in series.summed(table).filter(is_covered) {
                    resources.extend(resource(table, &series.key, column, mean));
                }
            }
        }
        resources
    }
}

impl Series {
    fn summed<'a>(&'a self, table: &Table) -> impl Iterator<Item = (&'static Column, &'a Mean)> {
        table.columns.iter().zip(&self.columns).filter(|(column, _)| column.summed)
    }

    fn was_used(&self, table: &Table) -> bool {
        self.summed(table).any(|(_, mean)| mean.weighted_sum > 0.0)
    }
}

/// The time that a sample is of, and the window.
#[derive(Clone, Copy)]
struct Span {
    start: u64,
    end: u64,
    window: (u64, u64),
}

/// The part of a sample that lies in the window.
struct Weight {
    ns: f64,
    /// All of it.
    sampled_ns: f64,
    /// By half or more.
    whole: bool,
    /// From the window's start to the middle of it.
    middle_ns: u64,
}

impl Span {
    fn weight(self) -> Option<Weight> {
        let (start, end) = (self.start.max(self.window.0), self.end.min(self.window.1));
        let ns = end.checked_sub(start).filter(|overlap| *overlap > 0)? as f64;
        let sampled_ns = self.end.saturating_sub(self.start) as f64;
        let middle_ns = u64::midpoint(start, end) - self.window.0;
        Some(Weight { ns, sampled_ns, whole: 2.0 * ns >= sampled_ns, middle_ns })
    }

    /// For a state at its end, while its load goes on.
    fn instant(self) -> Option<Weight> {
        let middle_ns = self.end.checked_sub(self.window.0).filter(|_| self.end < self.window.1)?;
        Some(Weight { ns: 1.0, sampled_ns: 1.0, whole: true, middle_ns })
    }
}

fn add_rows(all: &mut Vec<Series>, rows: &Rows, span: Span) {
    for Row { key, values } in rows.rows() {
        let position = all.iter().position(|series| series.key == *key).unwrap_or_else(|| {
            all.push(Series { key: key.clone(), columns: vec![Mean::default(); values.len()] });
            all.len() - 1
        });
        let columns = all[position].columns.iter_mut().zip(rows.table.columns);
        for ((mean, column), value) in columns.zip(values) {
            let Some(value) = *value else { continue };
            // A host that renews its CPU times more seldom than other counters has no share of them
            // in between; the next is of all the time since.
            let sampled_to =
                mean.sampled_to_ns.replace(span.end).filter(|_| column.unit == Unit::Ratio);
            let span = Span { start: sampled_to.unwrap_or(span.start), ..span };
            let weight = if rows.table.ends_with_load { span.instant() } else { span.weight() };
            let Some(weight) = weight else { continue };
            mean.add(value, weight.ns, weight.whole);
            mean.sampled_ns += weight.sampled_ns;
            if column.drawn && weight.whole {
                mean.timeline.push((weight.middle_ns as f64 / NANOS_PER_SECOND as f64, value));
            }
        }
    }
}

/// Its value is the growth of a counter over the time of a sample.
fn is_counter(table: &Table, column: &Column) -> bool {
    let is_instant = matches!(column.unit, Unit::Count | Unit::Bytes);
    !(is_instant || table.ends_with_load || OWN_TIMES.contains(&table.name))
}

fn resource(table: &Table, key: &str, column: &Column, mean: &Mean) -> Option<ResourceUse> {
    let name = match table.keyed && !key.is_empty() {
        true => format!("{}.{key}.{}", table.name, column.name),
        false => format!("{}.{}", table.name, column.name),
    };
    let unit = column.unit.label().to_owned();
    let timeline = thinned(&mean.timeline);
    let (mean, max) = mean.summary()?;
    Some(ResourceUse { name, unit, mean, max, over_time: timeline, source: None })
}

/// Samples that a drawing has room for: means of several where there are more.
fn thinned(samples: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let together = samples.len().div_ceil(DRAWN_MAX).max(1);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        let sum = part.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        (sum.0 / n, sum.1 / n)
    };
    samples.chunks(together).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_by_time_and_a_sample_at_the_edge_does_not_make_the_maximum() {
        let mut mean = Mean::default();
        mean.add(5.0, 1.0, false);
        mean.add(1.0, 3.0, true);
        assert_eq!(mean.summary(), Some((2.0, 1.0)));
    }

    #[test]
    fn connections_are_not_counted_when_the_load_that_made_them_has_ended() {
        let mut sums = Sums::default();
        let mut sample = Sample::empty();
        for (end_ns, connections) in [(1_000_000_000, 64.0), (2_000_000_000, 0.0)] {
            sample.elapsed_ns = end_ns - sample.at.monotonic_ns;
            sample.at.monotonic_ns = end_ns;
            sample.sockets = Rows::new(sample.sockets.table);
            sample.sockets.push("server", &[Some(connections), None, None, None]);
            sums.add(&sample, OwnCpu::default(), (0, 2_000_000_000));
        }
        let resources = sums.resources(2_000_000_000, WITHIN_MIN_RATIO);
        let [only] = &resources[..] else { panic!("{resources:?}") };
        assert_eq!((only.name.as_str(), only.mean), ("socket.server.connections", 64.0));
        assert_eq!(sums.covered_ns(), 2_000_000_000);
    }

    /// Names of the resources of a window of 0.7 s that begins at 1 s, from samples that end then.
    fn resource_names(ends_ms: &[u64]) -> Vec<String> {
        let mut sums = Sums::default();
        let mut sample = Sample::empty();
        for end_ms in ends_ms {
            let end_ns = end_ms * 1_000_000;
            sample.elapsed_ns = end_ns - sample.at.monotonic_ns;
            sample.at.monotonic_ns = end_ns;
            sample.cpus = Rows::new(sample.cpus.table);
            sample.cpus.push("1", &[0.86, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.14].map(Some));
            sample.servers = Rows::new(sample.servers.table);
            let queue =
                sample.servers.table.columns.iter().map(|it| (it.name == "queue").then_some(3.0));
            sample.servers.push("server", &queue.collect::<Vec<_>>());
            sums.add(&sample, OwnCpu::default(), (1_000_000_000, 1_700_000_000));
        }
        sums.resources(700_000_000, WITHIN_MIN_RATIO).into_iter().map(|it| it.name).collect()
    }

    /// The demo of 0.2.0 had one sample of 1.33 s for a window of 0.7 s: core 1 "86 % busy", and no
    /// limit.
    #[test]
    fn a_counter_is_known_where_samples_cover_the_window_and_little_else() {
        let both = ["cpu.1.busy", "server.server.queue"];
        assert_eq!(resource_names(&[950, 1_000, 1_700]), both, "samples at both borders");
        assert_eq!(resource_names(&[950, 1_010, 1_720]), both, "nearly");
        for ends_ms in [&[600, 1_930][..], &[1_000, 1_600], &[900, 1_000, 1_900], &[1_080, 1_700]] {
            let covered = resource_names(ends_ms);
            assert_eq!(covered, ["server.server.queue"], "{ends_ms:?}: a queue is an instant's");
        }
    }

    /// An SNMP agent renews its counters of interfaces every three seconds, its ticks every five.
    #[test]
    fn a_share_that_is_renewed_seldom_is_of_the_time_since_the_last() {
        let mut sums = Sums::default();
        let mut sample = Sample::empty();
        for end_s in (3..=63).step_by(3) {
            let end_ns = end_s * NANOS_PER_SECOND;
            sample.elapsed_ns = end_ns - sample.at.monotonic_ns;
            sample.at.monotonic_ns = end_ns;
            sample.cpus = Rows::new(sample.cpus.table);
            let renewed = end_s % 5 < 3;
            sample.cpus.push("1", &[0.5; 8].map(|share| renewed.then_some(share)));
            sums.add(&sample, OwnCpu::default(), (6 * NANOS_PER_SECOND, 60 * NANOS_PER_SECOND));
        }
        let resources = sums.resources(54 * NANOS_PER_SECOND, WITHIN_ELSEWHERE_MIN_RATIO);
        assert!(resources.iter().any(|it| it.name == "cpu.1.busy" && it.mean == 0.5));
    }

    #[test]
    fn more_samples_than_a_drawing_holds_are_taken_together() {
        let samples: Vec<(f64, f64)> = (0..240).map(|n| (f64::from(n), f64::from(n % 2))).collect();
        let thinned = thinned(&samples);
        assert_eq!((thinned.len(), thinned[0], thinned[119]), (120, (0.5, 0.5), (238.5, 0.5)));
        assert_eq!(super::thinned(&samples[..3]), samples[..3]);
    }

    #[test]
    fn a_window_that_holds_no_whole_sample_still_has_a_maximum() {
        let mut mean = Mean::default();
        assert_eq!(mean.summary(), None);
        mean.add(5.0, 1.0, false);
        assert_eq!(mean.summary(), Some((5.0, 5.0)));
    }
}
