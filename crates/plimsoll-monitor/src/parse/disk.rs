//! `/proc/diskstats`.

use super::nth_number;

/// Counts since boot of one block device (kernel, admin-guide/iostats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Kernel name.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Sectors read; a sector is 512 bytes here, whatever the disk has.
    pub sectors_read: u64,
    /// Milliseconds all reads took, summed.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Milliseconds all writes took, summed.
    pub write_ms: u64,
    /// Transfers in flight now.
    pub in_flight: u64,
    /// Milliseconds with at least one transfer in flight.
    pub busy_ms: u64,
    /// Milliseconds times transfers in flight.
    pub queue_ms: u64,
}

/// Reads `/proc/diskstats`, partitions included. Short lines are passed over.
pub fn parse_diskstats(text: &str) -> Vec<DiskCounters> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<DiskCounters> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index| nth_number(&words, index);
    Some(DiskCounters {
        name: (*words.get(2)?).to_owned(),
        reads: number(3)?,
        sectors_read: number(5)?,
        read_ms: number(6)?,
        writes: number(7)?,
        sectors_written: number(9)?,
        write_ms: number(10)?,
        in_flight: number(11)?,
        busy_ms: number(12)?,
        queue_ms: number(13)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_any_kernel_since_2_6_is_read() {
        let text = " 254       0 vda 64089 10546 6725762 31024 33980 51757 6722144 22191 2 14756 \
                    55381 18849 27 3445840 2004 3940 161\n   8  1 sda1 1 2 3 4\n";
        let disks = parse_diskstats(text);
        assert_eq!(disks.len(), 1);
        let disk = &disks[0];
        assert_eq!((disk.name.as_str(), disk.reads, disk.sectors_read), ("vda", 64_089, 6_725_762));
        assert_eq!((disk.writes, disk.write_ms, disk.in_flight), (33_980, 22_191, 2));
        assert_eq!((disk.busy_ms, disk.queue_ms), (14_756, 55_381));
    }
}
