//! Whole disks.

use procfs_core::DiskStat;

use super::proc_file::ProcFile;
use super::table::{Column, Rows, Table, Unit};
use super::{Elapsed, growth, share};
use crate::root::Root;

/// `/proc/diskstats` counts these, whatever the disk's own sectors.
const SECTOR_BYTES: f64 = 512.0;
const MILLIS_PER_SECOND: f64 = 1_000.0;

pub(super) static DISKS: Table = Table {
    name: "disk",
    keyed: true,
    idle_left_out: true,
    ends_with_load: false,
    columns: &[
        Column::summed("read", Unit::BytesPerSecond),
        Column::summed("written", Unit::BytesPerSecond),
        Column::summed("reads", Unit::PerSecond),
        Column::summed("writes", Unit::PerSecond),
        Column::summed("per_read", Unit::Seconds),
        Column::summed("per_write", Unit::Seconds),
        Column::written("in_flight", Unit::Count),
        Column::summed("queue_mean", Unit::Count),
        Column::drawn("busy", Unit::Ratio),
    ],
};

#[derive(Debug)]
pub(super) struct DiskSource {
    file: ProcFile,
    /// Names of whole disks with a size; without `/sys`, absent, and every line counts.
    whole: Option<Vec<String>>,
    before: Vec<DiskStat>,
    buffer: Vec<u8>,
}

impl DiskSource {
    pub(super) fn open(root: &Root) -> Self {
        let names = root.names("sys/block");
        let has_size = |name: &String| root.number(format!("sys/block/{name}/size")) != Some(0);
        let whole = (!names.is_empty()).then(|| names.into_iter().filter(has_size).collect());
        let file = ProcFile::open(root, "proc/diskstats");
        Self { file, whole, before: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample(&mut self, elapsed: Elapsed, rows: &mut Rows) {
        rows.clear();
        let Some(text) = self.file.read(&mut self.buffer) else { return };
        let lines = text.lines().filter_map(|line| DiskStat::from_line(line).ok());
        let mut now: Vec<DiskStat> = lines.collect();
        if let Some(whole) = &self.whole {
            now.retain(|disk| whole.contains(&disk.name));
        }
        for disk in &now {
            let was = self.before.iter().find(|was| was.name == disk.name);
            rows.push(&disk.name, &values(was, disk, elapsed));
        }
        self.before = now;
    }
}

fn values(was: Option<&DiskStat>, is: &DiskStat, elapsed: Elapsed) -> [Option<f64>; 9] {
    let rate = |of: fn(&DiskStat) -> u64| elapsed.rate(was.map(of), Some(of(is)));
    let grown = |of: fn(&DiskStat) -> u64| growth(was.map(of), Some(of(is)));
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / MILLIS_PER_SECOND);
    [
        rate(|d| d.sectors_read).map(|sectors| sectors * SECTOR_BYTES),
        rate(|d| d.sectors_written).map(|sectors| sectors * SECTOR_BYTES),
        rate(|d| d.reads),
        rate(|d| d.writes),
        share(seconds(grown(|d| d.time_reading)), grown(|d| d.reads)),
        share(seconds(grown(|d| d.time_writing)), grown(|d| d.writes)),
        Some(is.in_progress as f64),
        seconds(rate(|d| d.weighted_time_in_progress)),
        // The kernel rounds up; a full disk reads as 1.001 now and then.
        seconds(rate(|d| d.time_in_progress)).map(|busy| busy.min(1.0)),
    ]
}
