//! Means and maxima over the window of a load point. Pure.

use plimsoll_model::event::ResourceUse;

use crate::sampler::{Column, Row, Rows, Sample, Table};

/// A mean by time and a maximum.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    weighted_sum: f64,
    weight: f64,
    /// Of samples that lie in the window by half or more.
    max: Option<f64>,
    /// Of the others; stands in when the window is too short to hold a sample.
    edge_max: Option<f64>,
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
        for (index, rows) in sample.tables().into_iter().enumerate() {
            if self.tables.len() <= index {
                self.tables.push((rows.table, Vec::new()));
            }
            add_rows(&mut self.tables[index].1, rows, overlap as f64, part >= 0.5);
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

fn add_rows(all: &mut Vec<Series>, rows: &Rows, weight: f64, whole: bool) {
    for Row { key, values } in rows.rows() {
        let position = all.iter().position(|series| series.key == *key).unwrap_or_else(|| {
            all.push(Series { key: key.clone(), columns: vec![Mean::default(); values.len()] });
            all.len() - 1
        });
        for (mean, value) in all[position].columns.iter_mut().zip(values) {
            if let Some(value) = value {
                mean.add(*value, weight, whole);
            }
        }
    }
}

fn resource(table: &Table, key: &str, column: &Column, mean: &Mean) -> Option<ResourceUse> {
    let name = match table.keyed && !key.is_empty() {
        true => format!("{}.{key}.{}", table.name, column.name),
        false => format!("{}.{}", table.name, column.name),
    };
    let (mean, max) = mean.summary()?;
    Some(ResourceUse { name, unit: column.unit.label().to_owned(), mean, max, source: None })
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
    fn a_window_that_holds_no_whole_sample_still_has_a_maximum() {
        let mut mean = Mean::default();
        assert_eq!(mean.summary(), None);
        mean.add(5.0, 1.0, false);
        assert_eq!(mean.summary(), Some((5.0, 5.0)));
    }
}
