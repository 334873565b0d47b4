use std::fs;

use super::*;

const GIB: u64 = 1 << 30;

const MACHINE: Machine = Machine {
    kernel: Some((6, 18)),
    memory_bytes: Some(24_684_096 * 1_024),
    processors_possible: Some(4),
};

#[test]
fn every_line_of_the_tables_can_be_read() {
    for table in [KERNEL, DISK] {
        let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.clone().count(), rows(table).count());
        for row in rows(table) {
            assert!(!row.name.is_empty() && !row.meaning.is_empty(), "{}", row.name);
            assert!(!row.meaning.contains('|'), "{}", row.name);
            let default = default_of(row.default, &MACHINE);
            let depends = default.as_ref().err();
            assert!(depends.is_none() || row.default.starts_with('?'), "{}: {default:?}", row.name);
            assert!(!row.default.is_empty(), "{}", row.name);
        }
    }
    let mut names: Vec<&str> = rows(KERNEL).map(|row| row.name).collect();
    let all = names.len();
    assert!(all >= 80, "{all}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "no name twice");
}

#[test]
fn defaults_follow_the_kernel_and_the_memory() {
    let of = |name: &str, machine: &Machine| {
        let row = rows(KERNEL).find(|row| row.name == name).unwrap();
        default_of(row.default, machine)
    };
    let old = Machine { kernel: Some((4, 14)), memory_bytes: Some(64 * GIB), ..MACHINE };
    for (name, now, then) in [
        ("net.core.somaxconn", "4096", "128"),
        ("net.core.rmem_max", "4194304", "212992"),
        ("net.ipv4.tcp_tw_reuse", "2", "0"),
        ("net.ipv4.tcp_rmem", "4096 131072 33554432", "4096 87380 6291456"),
        // As a machine of 24 GiB with Linux 6.18 has them untouched; 64 GiB reach the bound.
        ("net.ipv4.tcp_max_tw_buckets", "131072", "262144"),
        ("net.ipv4.tcp_max_orphans", "131072", "262144"),
        ("net.ipv4.tcp_max_syn_backlog", "2048", "4096"),
        ("vm.swappiness", "60", "60"),
        ("kernel.pid_max", "32768", "32768"),
    ] {
        assert_eq!(of(name, &MACHINE).as_deref(), Ok(now), "{name}");
        assert_eq!(of(name, &old).as_deref(), Ok(then), "{name}");
    }
    let large = Machine { processors_possible: Some(128), ..MACHINE };
    assert_eq!(of("kernel.pid_max", &large).as_deref(), Ok("131072"));
    let unknown = Machine::default();
    assert_eq!(of("net.core.somaxconn", &unknown), Err("the kernel's version"));
    assert_eq!(of("kernel.pid_max", &unknown), Err("the number of processors"));
    assert_eq!(of("net.ipv4.tcp_mem", &MACHINE), Err("the size of memory"));
}

#[test]
fn what_differs_is_listed_with_its_default_and_what_cannot_be_judged_says_why() {
    let temp_dir = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("proc/sys/net/core/somaxconn", "1024\n"),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t33554432\n"),
        ("proc/sys/net/ipv4/tcp_mem", "1\t2\t3\n"),
        ("proc/sys/vm/page-cluster", "0\n"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n"),
        ("sys/block/vda/size", "2048\n"),
        ("sys/block/vda/queue/read_ahead_kb", "4096\n"),
        ("sys/block/vda/queue/scheduler", "[none] mq-deadline\n"),
        ("sys/block/loop0/size", "0\n"),
        ("sys/block/loop0/queue/read_ahead_kb", "1\n"),
    ] {
        let path = temp_dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let result = settings(&Root::in_directory(temp_dir.path()), &MACHINE);
    let text =
        |s: &KernelSetting| format!("{} {} {:?} {}", s.name, s.value, s.default.as_deref(), s.unit);
    let lines: Vec<String> = result.not_default.iter().map(text).collect();
    assert_eq!(
        lines,
        [
            "net.core.somaxconn 1024 Some(\"4096\") connections",
            "vm.page-cluster 0 Some(\"3\") log2 pages",
            "sys/block/vda/queue/read_ahead_kb 4096 Some(\"128\") KiB",
            "net.ipv4.tcp_mem 1 2 3 None pages",
            "sys/block/vda/queue/scheduler none None ",
        ]
    );
    assert_eq!(result.compared, 5);
    assert_eq!(result.all.len(), 7);
    assert!(result.not_default.iter().all(|s| s.default.is_some() != s.depends_on.is_some()));
}
