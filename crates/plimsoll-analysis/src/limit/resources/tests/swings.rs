//! Loads and limits that change within the window.

use plimsoll_report::sentences::limit;

use super::*;

#[test]
fn two_that_take_turns_are_both_named_though_each_is_half_used() {
    let of = |correlation| {
        [
            ("process.server.cores_allowed", 1.0),
            ("host.turns_correlation", correlation),
            ("host.turns_cpu_full", 0.4),
            ("host.turns_storage_stalled", 0.35),
            ("disk.vda.busy", 0.2),
        ]
    };
    let result = |high: &[(&str, f64)]| {
        let low: ResourceMeans<'_> = &[];
        run(&[(800, low), (990, high), (1_000, high)], here(), None).points[2].limit.clone()
    };
    let limit = result(&of(-0.9));
    assert_eq!((limit.kind, limit.place.as_deref()), (LimitKind::Core, Some("core 1")));
    assert_eq!(
        (limit.also[0].kind, limit.also[0].place.as_deref()),
        (LimitKind::Disk, Some("vda"))
    );
    assert_eq!(result(&of(0.3)).kind, LimitKind::Unknown);
}

#[test]
fn averages_name_no_lock_where_throughput_swings_within_a_second() {
    let waiting = |threads| {
        idle_and(&[
            ("process.server.threads", 17.0),
            ("process.server.threads_waiting_for_lock", threads),
        ])
    };
    let (low, high) = (waiting(16.0), waiting(12.0));
    assert_eq!(last(&low, &high).0, LimitKind::Lock);
    let swinging = [&high[..], &[("load.slow_rate", 200.0), ("load.fast_rate", 2_000.0)]].concat();
    assert_eq!(last(&low, &swinging).0, LimitKind::Unknown);
}

#[test]
fn a_core_that_ops_wait_for_is_full_though_the_load_comes_in_bursts() {
    let of = |busy: f64, waiting: f64| {
        [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", busy),
            ("process.server.cpu", busy),
            ("process.server.core", 1.0),
            ("process.server.run_delay", waiting),
        ]
    };
    let low = of(0.4, 0.1);
    let last = |high: ResourceMeans<'_>| {
        let result = run(&[(800, &low), (990, high), (1_000, high)], here(), None);
        result.points[2].limit.clone()
    };
    // 32 ops are under way.
    let limit = last(&of(0.9, 20.0));
    assert_eq!((limit.kind, limit.place.as_deref()), (LimitKind::Core, Some("core 1")));
    assert!(limit::text(&limit).ends_with("and ops spent most of their time waiting"), "{limit:?}");
    let limit = last(&of(0.9, 10.0));
    assert_eq!(limit.kind, LimitKind::Unknown);
    let nearest = "nearest to it core 1: 90 % busy, of 93 % that count as full, with 10.0 threads \
                   waiting on average";
    assert!(limit::text(&limit).ends_with(nearest), "{limit:?}");
    assert_eq!(last(&of(0.75, 20.0)).kind, LimitKind::Unknown);
    assert!(!limit::text(&last(&of(0.5, 0.1))).contains("nearest"));
}
