//! Means and maxima over the window of a load point. Pure.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::units::NANOS_PER_SECOND;

use crate::sampler::{Column, Row, Rows, Sample, Table};

/// Samples of a resource that are kept.
const DRAWN_MAX: usize = 120;

/// A mean by time and a maximum.
#[derive(Clone, Debug, Default)]
struct Mean {
    weighted_sum: f64,
    weight: f64,
    /// Of samples that lie in the window by half or more.
    max: Option<f64>,
    /// Of the others; stands in when the window is too short to hold a sample.
    edge_max: Option<f64>,
    /// Samples by the middle of their time in the window, where they are kept.
    over_time: Vec<(f64, f64)>,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64, whole: bool) {
        self.weighted_sum += value * weight;
        self.weight += weight;
        let max = if whole { &mut self.max } else { &mut self.edge_max };
        *max = Some(max.map_or(value, |max| max.max(value)));
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
        let start = end.saturating_sub(sample.elapsed_ns);
        let overlap = end.min(window.1).saturating_sub(start.max(window.0));
        if overlap == 0 {
            return;
        }
        let part = overlap as f64 / sample.elapsed_ns as f64;
        self.covered_ns += overlap;
        self.process_cpu_ns += (own.process_ns as f64 * part).round() as u64;
        self.monitor_cpu_ns += (own.monitor_ns as f64 * part).round() as u64;
        let middle_ns = u64::midpoint(start.max(window.0), end.min(window.1)) - window.0;
        let over_time = Weight { ns: overlap as f64, whole: part >= 0.5, middle_ns };
        let instant = Weight { ns: 1.0, whole: true, middle_ns: end - window.0 };
        for (index, rows) in sample.tables().into_iter().enumerate() {
            if self.tables.len() <= index {
                self.tables.push((rows.table, Vec::new()));
            }
            let at = match rows.table.ends_with_load {
                true if end >= window.1 => continue,
                true => instant,
                false => over_time,
            };
            add_rows(&mut self.tables[index].1, rows, at);
        }
    }

    /// Part of the window that samples cover.
    pub(super) fn covered_ns(&self) -> u64 {
        self.covered_ns
    }

    pub(super) fn own_cpu(&self) -> OwnCpu {
        OwnCpu { process_ns: self.process_cpu_ns, monitor_ns: self.monitor_cpu_ns }
    }

    /// Named `table.key.column`, or `table.column` where there is no key.
    pub(super) fn resources(&self) -> Vec<ResourceUse> {
        let mut resources = Vec::new();
        for (table, all) in &self.tables {
            for series in all.iter().filter(|series| !table.idle_left_out || series.was_used(table))
            {
                for (column, mean) in series.summed(table) {
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

/// What of a sample lies in the window.
#[derive(Clone, Copy)]
struct Weight {
    ns: f64,
    /// By half or more.
    whole: bool,
    /// From the window's start to the middle of it.
    middle_ns: u64,
}

fn add_rows(all: &mut Vec<Series>, rows: &Rows, part: Weight) {
    for Row { key, values } in rows.rows() {
        let position = all.iter().position(|series| series.key == *key).unwrap_or_else(|| {
            all.push(Series { key: key.clone(), columns: vec![Mean::default(); values.len()] });
            all.len() - 1
        });
        let columns = all[position].columns.iter_mut().zip(rows.table.columns);
        for ((mean, column), value) in columns.zip(values) {
            let Some(value) = *value else { continue };
            mean.add(value, part.ns, part.whole);
            if column.drawn && part.whole {
                mean.over_time.push((part.middle_ns as f64 / NANOS_PER_SECOND as f64, value));
            }
        }
    }
}

fn resource(table: &Table, key: &str, column: &Column, mean: &Mean) -> Option<ResourceUse> {
    let name = match table.keyed && !key.is_empty() {
        true => format!("{}.{key}.{}", table.name, column.name),
        false => format!("{}.{}", table.name, column.name),
    };
    let unit = column.unit.label().to_owned();
    let over_time = thinned(&mean.over_time);
    let (mean, max) = mean.summary()?;
    Some(ResourceUse { name, unit, mean, max, over_time, source: None })
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
        let resources = sums.resources();
        let [found] = &resources[..] else { panic!("{resources:?}") };
        assert_eq!((found.name.as_str(), found.mean), ("socket.server.connections", 64.0));
        assert_eq!(sums.covered_ns(), 2_000_000_000);
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
