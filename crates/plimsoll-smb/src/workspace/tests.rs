//! The workspace against the numbers of the method.

use std::collections::HashSet;

use super::*;
use plimsoll_protocol::marker::MarkerError;

#[test]
fn a_workspace_of_twenty_mebibytes_is_the_methods_to_the_byte() {
    let workspace = Workspace::new(20.0, 1.0);
    assert_eq!(workspace.bytes(), 20_971_520);
    let sizes = |bytes| workspace.files().filter(|file| workspace.bytes_of(*file) == bytes).count();
    assert_eq!([260_096, 1_048_576, 327_680, 1_867_776].map(sizes), [48, 6, 1, 1]);
    assert_eq!(workspace.files().count() as u32, SEED_FILES);
    assert_eq!(workspace.bytes_of(FIRST_LARGE), 1_048_576);
    assert_eq!(Workspace::new(80.0, 1.0).bytes(), 4 * 20_971_520);
}

#[test]
fn sizes_scale_and_the_large_files_keep_room_for_the_largest_read() {
    let half = Workspace::new(20.0, 0.5);
    assert_eq!(half.bytes(), 10_485_760);
    assert_eq!(half, Workspace::new(10.0, 1.0));
    for scale in [1e-9, 0.001, 0.01, 0.05] {
        let small = Workspace::new(20.0, scale);
        for file in small.files() {
            let least = if file < FIRST_LARGE { 4_096 } else { 65_536 };
            assert!(small.bytes_of(file) >= least, "{file:?} at {scale}");
        }
    }
}

#[test]
fn names_are_where_the_share_has_them() {
    let text = |path: PathText| path.as_str().to_owned();
    let own = path_of(Home::Client(7), SeedFile(3));
    assert_eq!(text(own), r"plimsoll-files\client00007\seed\file03.dat");
    assert_eq!(text(path_of(Home::Shared, SeedFile(55))), r"plimsoll-files\shared\file55.dat");
    let made = made_path(12_345, MadeFile { number: 9, renames: 1 });
    assert_eq!(text(made), r"plimsoll-files\client12345\work\made000009-1.dat");
    assert_eq!(text(root_path(MARKER)), r"plimsoll-files\.plimsoll");
    assert_eq!(text(nic_path()), r"plimsoll-files\nic.dat");
    assert_eq!(text(replay_root()), r"plimsoll-files\replay");
    assert_eq!(text(missing_name(4)), "none000004.dat");
    let longest = MadeFile { number: u32::MAX, renames: u32::MAX };
    assert!(made_path(u32::MAX, longest).as_str().ends_with("made4294967295-4294967295.dat"));
}

#[test]
fn every_file_has_content_of_its_own() {
    let mut keys = HashSet::new();
    for file in (0..SEED_FILES).map(SeedFile) {
        for home in [Home::Shared, Home::Client(0), Home::Client(1)] {
            keys.insert(content(1, home, file).key);
        }
        keys.insert(content(2, Home::Shared, file).key);
        keys.insert(made_content(1, 0, file.0).key);
    }
    keys.insert(nic_content(1).key);
    assert_eq!(keys.len() as u32, 5 * SEED_FILES + 1);
}

#[test]
fn a_marker_reads_back_and_a_foreign_one_is_refused() {
    let workspace = Workspace::new(20.0, 1.0);
    let marker = ShareMarker::new(u64::MAX, workspace, 60);
    let text = marker.to_json();
    assert_eq!(ShareMarker::parse(text.as_bytes()), Ok(marker.clone()));
    assert_eq!((marker.seed(), marker.clients()), (u64::MAX, 60));
    assert!(marker.is_of(u64::MAX, workspace));
    assert!(!marker.is_of(1, workspace) && !marker.is_of(u64::MAX, Workspace::new(80.0, 1.0)));
    let refusal = |from: &str, to: &str| ShareMarker::parse(text.replace(from, to).as_bytes());
    let other = refusal("\"format\": 1", "\"format\": 2");
    assert!(matches!(other, Err(MarkerError::Format { format: 2, .. })));
    let many = refusal("\"clients\": 60", "\"clients\": 100001");
    assert!(matches!(many, Err(MarkerError::Excess { .. })), "{many:?}");
    assert!(matches!(ShareMarker::parse(b"{}"), Err(MarkerError::Invalid { .. })));
    assert!(matches!(ShareMarker::parse(b"\xff"), Err(MarkerError::Invalid { .. })));
}
