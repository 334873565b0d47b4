use plimsoll_model::page_cache::AccessClass;
use proptest::prelude::*;

use super::*;

fn class(items: u64, bytes: u64, share: f64) -> AccessClass {
    AccessClass { items, bytes, share }
}

fn model(classes: &[AccessClass]) -> CacheModel {
    CacheModel::from_pattern(&AccessPattern { classes: classes.to_vec() }).unwrap()
}

#[test]
fn equally_popular_files_hit_by_the_part_of_them_that_has_room() {
    let model = model(&[class(1_000, 4_096, 1.0)]);
    assert_eq!(model.full_bytes(), 4_096_000.0);
    for part in [0.0, 0.1, 0.5, 0.9, 1.0] {
        let ratio = model.hit_ratio(part * 4_096_000.0, HitsBy::Reads);
        assert!((ratio - part).abs() < 1e-9, "{ratio} of {part}");
    }
}

#[test]
fn a_file_takes_whole_pages_of_memory_and_of_disk() {
    let model = model(&[class(10, 1_024, 0.5), class(10, 5_000, 0.5)]);
    assert_eq!(model.full_bytes(), 10.0 * (4_096.0 + 8_192.0));
    assert!((model.cold_miss_ratio() - 12_288.0 / 6_024.0).abs() < 1e-12);
    assert_eq!(model.miss_ratio(f64::INFINITY), 0.0);
}

#[test]
fn what_is_never_read_takes_no_room_and_nothing_read_has_no_model() {
    let model = model(&[class(10, 4_096, 1.0), class(1_000, 4_096, 0.0), class(0, 4_096, 0.0)]);
    assert_eq!(model.full_bytes(), 40_960.0);
    for classes in [vec![], vec![class(10, 4_096, 0.0)], vec![class(10, 0, 1.0)]] {
        assert!(CacheModel::from_pattern(&AccessPattern { classes }).is_none());
    }
}

proptest! {
    #[test]
    fn the_size_for_a_hit_ratio_has_that_ratio(
        classes in prop::collection::vec((1u64..5_000, 1u64..1_000_000, 0.001f64..1.0), 1..6),
        ratio in 0.01f64..0.99,
    ) {
        let classes: Vec<_> = classes.into_iter().map(|(n, size, share)| class(n, size, share)).collect();
        let model = model(&classes);
        for by in [HitsBy::Reads, HitsBy::Bytes] {
            let bytes = model.cache_bytes(ratio, by);
            prop_assert!(bytes > 0.0 && bytes < model.full_bytes());
            let again = model.hit_ratio(bytes, by);
            prop_assert!((again - ratio).abs() < 1e-6, "{again} instead of {ratio} by {by:?}");
        }
    }
}
