//! `/proc/meminfo` and `/proc/vmstat`.

/// Sizes in bytes from `/proc/meminfo` (proc_meminfo(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemInfo {
    /// Memory the kernel manages.
    pub total: Option<u64>,
    /// What could be had without swapping.
    pub available: Option<u64>,
    /// Page cache.
    pub cached: Option<u64>,
    /// Waiting to be written.
    pub dirty: Option<u64>,
    /// Being written.
    pub writeback: Option<u64>,
    /// Swap space.
    pub swap_total: Option<u64>,
    /// Unused swap space.
    pub swap_free: Option<u64>,
}

/// Reads `/proc/meminfo`. The kernel's `kB` are 1,024 bytes.
pub fn parse_meminfo(text: &str) -> MemInfo {
    let mut info = MemInfo::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let bytes =
            || value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024);
        match key {
            "MemTotal" => info.total = bytes(),
            "MemAvailable" => info.available = bytes(),
            "Cached" => info.cached = bytes(),
            "Dirty" => info.dirty = bytes(),
            "Writeback" => info.writeback = bytes(),
            "SwapTotal" => info.swap_total = bytes(),
            "SwapFree" => info.swap_free = bytes(),
            _ => {}
        }
    }
    info
}

/// Counts since boot from `/proc/vmstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// KiB read from block devices.
    pub paged_in_kib: Option<u64>,
    /// KiB written to block devices.
    pub paged_out_kib: Option<u64>,
    /// Pages read from swap.
    pub swapped_in: Option<u64>,
    /// Pages written to swap.
    pub swapped_out: Option<u64>,
    /// Page faults that had to wait for a disk.
    pub major_faults: Option<u64>,
}

/// Reads `/proc/vmstat`.
pub fn parse_vmstat(text: &str) -> VmStat {
    let mut stat = VmStat::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(' ') else { continue };
        let count = || value.trim().parse().ok();
        match key {
            "pgpgin" => stat.paged_in_kib = count(),
            "pgpgout" => stat.paged_out_kib = count(),
            "pswpin" => stat.swapped_in = count(),
            "pswpout" => stat.swapped_out = count(),
            "pgmajfault" => stat.major_faults = count(),
            _ => {}
        }
    }
    stat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_bytes_and_missing_lines_are_absent() {
        let text = "MemTotal:       24684092 kB\nMemAvailable:   100 kB\nCached: 7 kB\n\
                    Dirty: 0 kB\nHugePages_Total:       0\nSwapTotal: lots kB\n";
        let info = parse_meminfo(text);
        assert_eq!(info.total, Some(24_684_092 * 1024));
        assert_eq!((info.cached, info.dirty), (Some(7 * 1024), Some(0)));
        assert_eq!((info.writeback, info.swap_total), (None, None));
    }

    #[test]
    fn a_size_beyond_the_range_is_absent() {
        assert_eq!(parse_meminfo("MemTotal: 18446744073709551615 kB").total, None);
    }

    #[test]
    fn vmstat_gives_the_paging_counters() {
        let stat = parse_vmstat("nr_free_pages 1\npgpgin 5\npgpgout 6\npswpin 0\npgmajfault 9\n");
        assert_eq!((stat.paged_in_kib, stat.paged_out_kib), (Some(5), Some(6)));
        assert_eq!(
            (stat.swapped_in, stat.swapped_out, stat.major_faults),
            (Some(0), None, Some(9))
        );
    }
}
