//! `/proc/meminfo`.

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
}
