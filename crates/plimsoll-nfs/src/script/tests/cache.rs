//! The blocks that the clients read, through a cache of the server.

use plimsoll_analysis::cache_model::{CacheModel, HitsBy};
use plimsoll_testkit::lru::LruCache;

use super::*;

#[test]
fn a_cache_of_least_recently_used_blocks_hits_as_its_formula_says() {
    const READS: u64 = 300_000;
    let plan = plan("nfs-v3", FileSet::new(60_000), 16);
    let pattern = plan.access_pattern(1);
    let whole: f64 = pattern.classes.iter().map(|class| class.share).sum();
    assert!((whole - 1.0).abs() < 1e-9, "{whole}");
    let model = CacheModel::from_pattern(&pattern).unwrap();
    for part in [0.05, 0.3, 0.7] {
        let bytes = (part * model.full_bytes()) as u64;
        let mut cache = LruCache::new(bytes, READS / 2);
        let mut scripts: Vec<_> = (0..16).map(|n| NfsScript::new(plan.clone(), n)).collect();
        for read in 0..READS {
            let NfsCall::Read(span, _) = scripts[(read % 16) as usize].read() else { panic!() };
            let first = span.offset / u64::from(BLOCK_BYTES);
            for block in first..=first + u64::from(span.blocks_left) {
                let left = span.file.bytes() - block * u64::from(BLOCK_BYTES);
                cache.read((span.file, block), left.min(u64::from(BLOCK_BYTES)));
            }
        }
        for (by, ratio) in [HitsBy::Reads, HitsBy::Bytes].into_iter().zip(cache.hit_ratios()) {
            let predicted = model.hit_ratio(bytes as f64, by);
            let off = (predicted - ratio).abs();
            assert!(off < 0.01, "{part}: {predicted} instead of {ratio} by {by:?}");
        }
    }
}
