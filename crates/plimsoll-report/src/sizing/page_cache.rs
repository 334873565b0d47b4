//! How much memory saves how many disks.

use plimsoll_model::size::{DisksWithMemory, PageCacheSize};
use plimsoll_model::units::{Bytes, counted, three_digits};

/// Nothing where the access pattern is not ours.
pub(super) fn lines(cache: Option<PageCacheSize>, memory: Option<f64>) -> Vec<String> {
    let Some(cache) = cache else { return Vec::new() };
    let with = memory.zip(cache.with).map(|(memory, with)| disks_with(memory, with));
    [enough(cache)].into_iter().chain(with).collect()
}

fn enough(cache: PageCacheSize) -> String {
    let disks = counted(cache.disks as usize, "disk");
    let enough = match (cache.enough_bytes, cache.disk_bytes_per_s) {
        (Some(bytes), _) => format!("{}, until {disks} can serve the load; ", size(bytes)),
        (None, Some(_)) => format!("writes alone are too much for {disks}; "),
        (None, None) => String::new(),
    };
    format!(
        "Memory for files: {enough}{}, until nothing is read from disks",
        size(cache.full_bytes)
    )
}

fn disks_with(memory: f64, with: DisksWithMemory) -> String {
    let DisksWithMemory { bytes, miss_ratio, disks } = with;
    let disks = disks.map_or_else(
        || "the capacity of a disk is not known: add --disk-rate".to_owned(),
        |disks| counted(disks.ceil().max(1.0) as usize, "disk"),
    );
    format!(
        "With {} of memory, {} of it for files: misses {} %, {disks}",
        size(memory),
        size(bytes),
        three_digits(miss_ratio * 100.0)
    )
}

fn size(bytes: f64) -> Bytes {
    Bytes(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    #[test]
    fn memory_and_disks_are_named_with_their_sizes() {
        let with = DisksWithMemory { bytes: 3.0 * GIB, miss_ratio: 0.034, disks: Some(1.2) };
        let cache = PageCacheSize {
            disks: 2.0,
            disk_bytes_per_s: Some(1e8),
            enough_bytes: Some(2.0 * GIB),
            full_bytes: 8.0 * GIB,
            with: Some(with),
        };
        let text = lines(Some(cache), Some(4.0 * GIB)).join("\n");
        assert_eq!(
            text,
            "Memory for files: 2.00 GiB, until 2 disks can serve the load; 8.00 GiB, until nothing is read \
             from disks\nWith 4.00 GiB of memory, 3.00 GiB of it for files: misses 3.40 %, 2 disks"
        );
        let unknown = DisksWithMemory { disks: None, ..with };
        let cache = PageCacheSize { enough_bytes: None, with: Some(with), ..cache };
        let text = lines(Some(cache), Some(GIB)).join("\n");
        assert!(text.contains("files: writes alone are too much for 2 disks; 8.00 GiB"), "{text}");
        let cache = PageCacheSize { disk_bytes_per_s: None, with: Some(unknown), ..cache };
        let text = lines(Some(cache), Some(4.0 * GIB)).join("\n");
        assert!(
            text.starts_with("Memory for files: 8.00 GiB") && text.ends_with("add --disk-rate")
        );
        assert_eq!(lines(None, Some(GIB)), Vec::<String>::new());
    }
}
