//! The file set against the numbers of the method.

use super::*;
use plimsoll_protocol::marker::MarkerError;

const MIB: f64 = 1_048_576.0;

#[test]
fn shares_of_the_sizes_are_those_of_the_method() {
    for ops in [1.0, 7.0, 26.0, 100.0, 777.0, 2_000.0, 40_000.0] {
        let set = FileSet::for_load(ops, 10.0, 1.0);
        let counts = set.class_counts();
        assert_eq!(counts.iter().sum::<u32>(), set.files());
        for (count, class) in counts.iter().zip(SIZE_CLASSES) {
            let percent = 100.0 * f64::from(*count) / f64::from(set.files());
            assert!((percent - f64::from(class.percent)).abs() <= 0.1, "{ops}: {counts:?}");
        }
    }
}

#[test]
fn a_set_has_ten_mebibytes_for_each_op_per_second() {
    for ops in [20.0, 33.0, 100.0, 250.5, 1_000.0, 12_345.0, 100_000.0] {
        let set = FileSet::for_load(ops, 10.0, 1.0);
        let off = set.bytes() as f64 / (10.0 * MIB * ops) - 1.0;
        assert!(off.abs() < 0.005, "{ops} ops/s: {off}");
        let tenth = set.accessed_bytes() as f64 / set.bytes() as f64;
        assert!((0.09..0.12).contains(&tenth), "{ops} ops/s: {tenth}");
    }
    assert_eq!(FileSet::for_load(1_000.0, 10.0, 1.0).files(), 383_378);
    assert_eq!(FileSet::for_load(1_000.0, 10.0, 0.001).files(), FILES_MIN);
    assert_eq!(FileSet::for_load(f64::MAX, 10.0, 1.0).files(), FILES_MAX);
    assert_eq!(FileSet::new(100).bytes(), 2_671 * 1_024);
    assert_eq!(FileSet::new(0).directories(), 0);
}

#[test]
fn ten_ops_per_second_bring_the_directories_and_links_of_a_process() {
    let set = FileSet::new(3_840);
    assert_eq!((set.directories(), set.links(), set.slots()), (20, 20, 100));
}

#[test]
fn a_smaller_set_is_a_prefix_of_a_larger_one() {
    let (small, large) = (FileSet::new(4_321), FileSet::new(98_765));
    assert!(small.accessed() < large.accessed() && small.slots() < large.slots());
    for directory in 0..small.directories() {
        let (few, many) = (small.files_of(DirNo(directory)), large.files_of(DirNo(directory)));
        assert_eq!(few.start, many.start);
        assert!(few.end <= many.end && !few.is_empty());
        assert!(few.clone().all(|n| FileNo(n).directory() == DirNo(directory)));
        assert_eq!(small.slots_of(DirNo(directory)), large.slots_of(DirNo(directory)));
    }
    for set in [small, large, FileSet::new(1_000), FileSet::new(5_040), FileSet::new(5_100)] {
        let of_files: Vec<Accessed> =
            (0..set.files()).filter_map(|n| FileNo(n).accessed()).collect();
        let numbered: Vec<Accessed> = (0..set.accessed()).map(Accessed).collect();
        assert_eq!(of_files, numbered);
        assert!(numbered.iter().all(|a| a.file().accessed() == Some(*a)));
        let bytes: u64 = numbered.iter().map(|a| a.bytes()).sum();
        assert_eq!(bytes, set.accessed_bytes());
        let bytes: u64 = (0..set.files()).map(|n| FileNo(n).bytes()).sum();
        assert_eq!(bytes, set.bytes());
    }
}

#[test]
fn access_groups_are_equal_and_have_every_size() {
    let mut counts = [[0u32; SIZE_CLASSES.len()]; 10];
    for accessed in (0..1_000).map(Accessed) {
        counts[accessed.group(10) as usize][accessed.file().class()] += 1;
    }
    let percent = SIZE_CLASSES.map(|class| class.percent);
    assert!(counts.iter().all(|group| *group == percent), "{counts:?}");
    // Also among the hundred of the smallest set no group lacks small files.
    let smallest: Vec<Accessed> = (0..100).map(Accessed).collect();
    for group in 0..10 {
        let of_group = smallest.iter().filter(|a| a.group(10) == group);
        assert_eq!(of_group.clone().count(), 10);
        assert!(of_group.filter(|a| a.bytes() <= 2_048).count() >= 4, "group {group}");
    }
}

#[test]
fn names_have_leading_zeros_and_grow_when_they_must() {
    assert_eq!(FileNo(12).name().as_str(), "file0000012");
    assert_eq!(FileNo(123_456_789).name().as_str(), "file123456789");
    assert_eq!(FileNo(0).name().as_str(), "file0000000");
    assert_eq!(DirNo(7).name().to_string(), "dir00007");
    assert_eq!(LinkNo(2).name().as_str(), "link00002");
    assert_eq!(LinkNo(2).text().as_str(), "file0000384");
    assert_eq!(SlotNo(u32::MAX).name().as_bytes(), b"slot4294967295");
}

#[test]
fn content_follows_from_seed_file_and_offset() {
    let content = Content::new(1);
    let file = FileNo(4_711);
    let whole: Vec<u8> =
        (0..24).flat_map(|i| content.slice(file, i * 50_000, 50_000)).copied().collect();
    for (offset, bytes) in [(0, SLICE_BYTES_MAX), (1_000_000, SLICE_BYTES_MAX), (8_191, 2), (3, 0)]
    {
        assert_eq!(content.slice(file, offset as u64, bytes), &whole[offset..offset + bytes]);
    }
    assert_eq!(Content::new(1).slice(file, 77, 500), content.slice(file, 77, 500));
    assert_ne!(Content::new(2).slice(file, 77, 500), content.slice(file, 77, 500));
    assert_ne!(content.slice(FileNo(4_712), 77, 500), content.slice(file, 77, 500));
    assert_ne!(content.slice(file, 78, 500), content.slice(file, 77, 500));
}

#[test]
fn a_marker_reads_back_and_a_foreign_one_is_refused() {
    let marker = FileSetMarker::new(u64::MAX, FileSet::new(3_834));
    let text = marker.to_json();
    assert_eq!(FileSetMarker::parse(text.as_bytes()), Ok(marker.clone()));
    assert_eq!((marker.seed(), marker.set().files()), (u64::MAX, 3_834));
    let refusal = |from: &str, to: &str| FileSetMarker::parse(text.replace(from, to).as_bytes());
    let other = refusal("\"format\": 1", "\"format\": 2");
    assert!(matches!(other, Err(MarkerError::Format { format: 2, .. })));
    let many = refusal("3834", "400000001");
    assert!(matches!(many, Err(MarkerError::Excess { .. })), "{many:?}");
    assert!(matches!(FileSetMarker::parse(b"{}"), Err(MarkerError::Invalid { .. })));
    assert!(matches!(FileSetMarker::parse(b"\xff"), Err(MarkerError::Invalid { .. })));
}
