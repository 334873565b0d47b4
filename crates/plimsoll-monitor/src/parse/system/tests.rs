use super::*;

#[test]
fn the_pretty_name_wins_and_quotes_go() {
    let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
    assert_eq!(parse_os_release(text).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
}

#[test]
fn name_and_version_stand_in_for_a_missing_pretty_name() {
    assert_eq!(parse_os_release("NAME=Alpine\nVERSION_ID='3.20'"), Some("Alpine 3.20".into()));
    assert_eq!(parse_os_release("PRETTY_NAME=\"\"\n"), None);
}

#[test]
fn pressure_totals_are_read_and_full_may_be_missing() {
    let text = "some avg10=0.15 avg60=0.85 avg300=0.86 total=42201249\n";
    assert_eq!(parse_pressure(text), Pressure { some_us: Some(42_201_249), full_us: None });
}

#[test]
fn the_choice_in_brackets_is_the_one() {
    assert_eq!(parse_selected("always [madvise] never\n"), Some("madvise"));
    assert_eq!(parse_selected("none\n"), Some("none"));
    assert_eq!(parse_selected("a ]b[ c"), Some("a ]b[ c"));
    assert_eq!(parse_selected(" \n"), None);
}

#[test]
fn status_fields_are_found_by_name() {
    let text = "Name:\tcat\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
    assert_eq!(parse_status_field(text, "Cpus_allowed_list"), Some("0-1"));
    assert_eq!(parse_status_field(text, "Threads"), None);
}

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

const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
25 24 0:23 / /srv/my\\040data rw,nosuid shared:3 master:1 - xfs /dev/vdb rw,noquota
37 31 0:35 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
odd line
";

#[test]
fn options_of_mount_and_file_system_are_joined_and_names_unescaped() {
    let mounts = parse_mountinfo(TEXT);
    assert_eq!(mounts.len(), 3);
    assert_eq!(mounts[0].options, "rw,relatime,discard");
    assert_eq!(mounts[1].mount_point, Path::new("/srv/my data"));
    assert_eq!((mounts[1].kind.as_str(), &*mounts[1].options), ("xfs", "rw,nosuid,noquota"));
    assert!(mounts[2].has_option("cpuacct") && !mounts[2].has_option("cpus"));
}

#[test]
fn a_path_belongs_to_the_deepest_mount_above_it() {
    let mounts = parse_mountinfo(TEXT);
    let kind = |path: &str| Mount::holding(&mounts, Path::new(path)).map(|m| m.kind.as_str());
    assert_eq!(kind("/srv/my data/a"), Some("xfs"));
    assert_eq!(kind("/srv/my database"), Some("ext4"));
    assert_eq!(kind("relative"), None);
}
