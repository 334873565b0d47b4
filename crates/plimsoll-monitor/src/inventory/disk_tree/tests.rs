use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::root::Frame;

/// As a Linux host with dm and md shows itself: `/srv/www` on a volume that is striped over two
/// RAID arrays of partitions, `/var/log` on a partition, `/run` in memory.
const MOUNTS: &str = "\
    22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
    23 22 253:0 / /srv/www rw - xfs /dev/mapper/vg-www rw\n\
    24 22 8:2 / /var/log rw - ext4 /dev/sda2 rw\n\
    25 22 9:0 / /srv/md rw - ext4 /dev/md0 rw\n\
    26 22 0:30 / /run rw - tmpfs tmpfs rw\n\
    27 22 0:31 / /srv/pool rw - btrfs /dev/sdf rw\n";
const DEVICES: [(&str, &str); 5] =
    [("8:1", "sda1"), ("8:2", "sda2"), ("253:0", "dm-0"), ("9:0", "md0"), ("7:0", "loop0")];
const FILES: [&str; 16] = [
    "sys/block/sda/sda1/partition",
    "sys/block/sda/sda2/partition",
    "sys/block/sdb/sdb1/partition",
    "sys/block/sdc/sdc1/partition",
    "sys/block/sdd/size",
    "sys/block/sde/size",
    "sys/block/md0/slaves/sdb1/size",
    "sys/block/md0/slaves/sdc1/size",
    "sys/block/md1/slaves/sdd/size",
    "sys/block/md1/slaves/sde/size",
    "sys/block/dm-0/slaves/md0/size",
    "sys/block/dm-0/slaves/md1/size",
    "sys/block/sda/size",
    "sys/block/sdb/size",
    "sys/block/sdc/size",
    "sys/block/loop0/size",
];

/// The host laid out below a directory.
fn in_directory() -> (TempDir, DiskTree) {
    let folder = TempDir::new().unwrap();
    let put = |file: &str, text: &str| {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("proc/self/mountinfo", MOUNTS);
    FILES.iter().for_each(|file| put(file, "2048\n"));
    fs::create_dir_all(folder.path().join("sys/dev/block")).unwrap();
    for (numbers, name) in DEVICES {
        let link = folder.path().join("sys/dev/block").join(numbers);
        symlink(format!("../../devices/{name}"), link).unwrap();
    }
    let tree = DiskTree::from_root(Root::in_directory(folder.path()));
    (folder, tree)
}

/// The same as a shell on another host prints it.
fn in_frame() -> DiskTree {
    let line = |(numbers, name): &(&str, &str)| {
        let (major, minor) = numbers.split_once(':').unwrap();
        format!("{major} {minor} {name} 1 2 3\n")
    };
    let mut texts: crate::root::Texts =
        FILES.iter().map(|file| ((*file).to_owned(), "2048\n".to_owned())).collect();
    texts.insert("proc/self/mountinfo".to_owned(), MOUNTS.to_owned());
    texts.insert("proc/diskstats".to_owned(), DEVICES.iter().map(line).collect());
    let frame = Frame::default();
    frame.replace(texts);
    DiskTree::from_root(Root::of_frame(frame))
}

#[test]
fn files_lie_on_the_disks_below_partitions_arrays_and_volumes() {
    let (_folder, here) = in_directory();
    for tree in [here, in_frame()] {
        for (path, disks) in [
            ("/srv/www/set", &["sdb", "sdc", "sdd", "sde"][..]),
            ("/srv/md", &["sdb", "sdc"]),
            ("/var/log/nginx/access.log", &["sda"]),
            ("/srv", &["sda"]),
            ("loop0", &["loop0"]),
            ("dm-0", &["dm-0"]),
        ] {
            assert_eq!(tree.find(path), disks, "{path}");
        }
        // In memory; of several disks, of which the kernel names none; a part of a disk; none.
        for nothing in ["/run/www", "/srv/pool", "sda1", "sdz"] {
            assert!(tree.find(nothing).is_empty(), "{nothing}");
        }
    }
}

#[test]
fn a_tree_without_an_end_ends() {
    let (folder, _) = in_directory();
    let slaves = folder.path().join("sys/block/md1/slaves/dm-0");
    fs::create_dir_all(slaves).unwrap();
    let tree = DiskTree::from_root(Root::in_directory(folder.path()));
    assert_eq!(tree.find("/srv/www"), ["sdb", "sdc", "sdd", "sde"]);
}

#[test]
fn names_alone_tell_what_is_there_and_not_what_lies_on_it() {
    let tree = DiskTree::from_names(vec!["C:".to_owned()]);
    assert_eq!(tree.find("C:"), ["C:"]);
    assert!(tree.find("/srv").is_empty());
}

#[test]
fn a_log_is_a_file_that_is_open_for_appending() {
    let folder = TempDir::new().unwrap();
    let (log, data) = (folder.path().join("log"), folder.path().join("data"));
    let _appended = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
    let _written = fs::File::create(&data).unwrap();
    let files = appended_files(std::process::id());
    assert!(files.contains(&log.canonicalize().unwrap()), "{files:?}");
    assert!(!files.contains(&data.canonicalize().unwrap()), "{files:?}");
}
