use super::*;

#[test]
fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
    let text = "22494 (a) b (c)) R 22471 22471 19253 0 -1 4194304 101 0 0 0 7 9 0 0 20 0 3 0 \
                139115 3133440 416 18446744073709551615 1 1\n";
    let stat = parse_process_stat(text).unwrap();
    assert_eq!((stat.pid, stat.name.as_str(), stat.parent), (22_494, "a) b (c)", 22_471));
    assert_eq!((stat.user_ticks, stat.system_ticks), (7, 9));
    assert_eq!((stat.threads, stat.resident_pages), (3, 416));
}

#[test]
fn ticks_threads_and_core_are_found_in_a_line_of_the_kernel() {
    let text = "7 (my (x) y) S 1 7 7 0 -1 4194304 10 0 0 0 55 66 7 8 20 0 3 0 139115 3133440 \
                416 18446744073709551615 1 1 0 0 0 0 0 4096 17 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 \
                0 0 0\n";
    let expected = ThreadStat {
        name: "my (x) y".into(),
        state: 'S',
        kernel: false,
        parent: 1,
        ticks: [55, 66],
        ended_ticks: [7, 8],
        threads: 3,
        began_ticks: 139_115,
        core: 5,
    };
    assert_eq!(parse_thread_stat(text), Some(expected));
    let kworker = text.replace("4194304", "69238880");
    assert!(parse_thread_stat(&kworker).unwrap().kernel);
    assert_eq!(parse_thread_stat("7 (cut) S 1 7"), None);
}

#[test]
fn a_cut_stat_line_is_no_process() {
    assert_eq!(parse_process_stat("1 (init) S 0 1"), None);
    assert_eq!(parse_process_stat(") ("), None);
}

#[test]
fn limits_are_found_by_their_name() {
    let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                Max open files            1024                 unlimited            files\n";
    assert_eq!(parse_limit(text, "Max open files"), Some(("1024", "unlimited")));
    assert_eq!(parse_limit(text, "Max cpu time"), None);
}

#[test]
fn a_quota_is_in_cores_and_max_is_none() {
    assert_eq!(parse_cpu_max("250000 100000\n"), Some(2.5));
    for none in ["max 100000", "100000 0", "-1 100000", ""] {
        assert_eq!(parse_cpu_max(none), None, "{none:?}");
    }
}

#[test]
fn throttling_is_in_nanoseconds_for_both_versions() {
    let v2 = parse_throttling("usage_usec 9\nnr_periods 8\nnr_throttled 3\nthrottled_usec 7\n");
    assert_eq!(v2, Throttling { periods: Some(3), throttled_ns: Some(7_000) });
    let v1 = parse_throttling("nr_periods 8\nnr_throttled 3\nthrottled_time 7000\n");
    assert_eq!(v1, v2);
    assert_eq!(parse_throttling("usage_usec 9"), Throttling::default());
}

#[test]
fn transfers_of_both_versions_are_by_device() {
    let mut v1 = Vec::new();
    parse_device_lines("254:0 Read 7\n254:0 Write 2\n254:0 Total 9\nTotal 9\n", false, &mut v1);
    parse_device_lines("254:0 Read 4096\n254:0 Write 512\n", true, &mut v1);
    let v2 = parse_device_limits("254:0 rbytes=4096 wbytes=512 rios=7 wios=2 dbytes=0\n");
    assert_eq!(v1, v2);
    let limits = parse_device_limits("8:0 rbps=max wbps=max riops=800 wiops=max\n");
    assert_eq!(limits[0].1, DeviceRates { reads: Some(800), ..DeviceRates::default() });
    let mut smaller = limits[0].1;
    smaller.keep_smaller(&DeviceRates { reads: Some(90), writes: Some(5), ..smaller });
    assert_eq!((smaller.reads, smaller.writes), (Some(90), Some(5)));
}

#[test]
fn refaults_are_summed_over_kinds_and_groups_below() {
    let text = "workingset_refault_anon 1\nworkingset_refault_file 2\n";
    assert_eq!(parse_refaults(text), Some(3));
    let v1 = format!("{text}total_workingset_refault_anon 4\ntotal_workingset_refault_file 9\n");
    assert_eq!(parse_refaults(&v1), Some(13));
    assert_eq!(parse_refaults("cache 4\n"), None);
}
