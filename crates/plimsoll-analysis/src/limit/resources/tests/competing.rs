//! A server that shares its core with another program.

use plimsoll_model::event::CoreUser;
use plimsoll_model::limit::{LimitKind, LimitSpan};
use plimsoll_model::result::RunResult;
use plimsoll_report::sentences::limit;

use super::{here, set_resources};
use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};

/// The server's share of core 1, which was full, and how long its threads waited for it.
#[derive(Clone, Copy)]
struct Shared {
    own: f64,
    run_delay: f64,
    /// Threads of the server that waited for a disk.
    on_disk: f64,
}

const LOW: Shared = Shared { own: 0.2, run_delay: 0.1, on_disk: 0.0 };
/// It ran or was ready to all the time.
const ALWAYS_READY: Shared = Shared { own: 0.45, run_delay: 0.54, on_disk: 0.0 };
/// The server had nothing to do for a third of the time.
const PARTLY_IDLE: Shared = Shared { own: 0.45, run_delay: 0.2, on_disk: 0.0 };

/// 4, 16 and 32 clients. Another program used `cores` of the server's cores.
fn run(points: [Shared; 3], cores: f64) -> RunResult {
    let loads = [(4, 800), (16, 990), (32, 1_000)];
    let mut run = RunBuilder::from_points(loads.map(|(clients, ops)| {
        let response_ns = u64::from(clients) * 1_000_000_000 / ops;
        PointBuilder::closed(clients).achieved(ops).response_ns(response_ns)
    }));
    for (index, Shared { own, run_delay, on_disk }) in points.into_iter().enumerate() {
        let means = [
            ("process.server.cores_allowed", 1.0),
            ("process.server.cores_busy", 0.99),
            ("process.server.cpu", own),
            ("process.server.run_delay", run_delay),
            ("process.server.threads_waiting_for_disk", on_disk),
        ];
        set_resources(&mut run, index, &means, None);
        let record = run.finished_mut(index);
        let cpu_ns = (cores * record.measured_ns.0 as f64) as u64;
        let name = "backup".to_owned();
        let other = CoreUser { name, pid: 77, cpu_ns, own: false, server: false, kernel: false };
        record.server_core_users = Some(vec![other]);
    }
    let mut raw = run.raw();
    raw.disclosure = here();
    analyse(&raw)
}

fn kinds(result: &RunResult) -> Vec<LimitKind> {
    result.points.iter().map(|point| point.limit.kind).collect()
}

#[test]
fn a_core_that_the_server_wants_all_the_time_is_its_limit_and_the_other_program_is_named() {
    let result = run([LOW, ALWAYS_READY, ALWAYS_READY], 0.5);
    assert_eq!(kinds(&result), [LimitKind::None, LimitKind::Core, LimitKind::Core]);
    let limit = &result.points[2].limit;
    assert_eq!(limit.place.as_deref(), Some("core 1"));
    let others = limit.others.as_ref().unwrap();
    assert!((others.cores_ratio - 0.54).abs() < 1e-9, "{others:?}");
    assert_eq!(others.foremost.as_ref().unwrap().pid, 77);
    let shares = "99 % busy, 45 % of it with the server itself and 55 % with other programs, most \
                  of all backup (process 77)";
    assert!(limit::text(limit).contains(shares), "{limit:?}");
}

#[test]
fn the_lowest_load_of_a_ladder_beside_another_program_is_not_said_to_be_held_back() {
    let result = run([ALWAYS_READY, ALWAYS_READY, ALWAYS_READY], 0.5);
    assert_eq!(kinds(&result)[0], LimitKind::None);
}

#[test]
fn a_core_that_the_server_did_not_want_all_the_time_is_not_its_limit() {
    let on_disk = Shared { on_disk: 3.0, ..ALWAYS_READY };
    for shared in [PARTLY_IDLE, on_disk] {
        let result = run([LOW, shared, shared], 0.5);
        let limit = &result.points[2].limit;
        assert_eq!(limit.kind, LimitKind::Unknown, "{limit:?}");
        let who = "other programs had 54 % of the server's cores, most of all backup (process 77)";
        assert!(limit::text(limit).contains(who), "{limit:?}");
        assert!(limit.others.is_some());
    }
}

#[test]
fn a_program_that_does_not_explain_what_others_had_is_not_named() {
    let result = run([LOW, PARTLY_IDLE, PARTLY_IDLE], 0.05);
    let limit = &result.points[2].limit;
    assert!(
        limit::text(limit).ends_with("other programs had 54 % of the server's cores"),
        "{limit:?}"
    );
    assert_eq!(limit.others.as_ref().unwrap().foremost, None);
}

#[test]
fn points_at_the_end_that_name_nothing_do_not_undo_the_limit_below_them() {
    let result = run([LOW, ALWAYS_READY, PARTLY_IDLE], 0.5);
    let facts = |span: &LimitSpan| (span.from, span.limit.kind, span.limit.place.clone());
    let spans: Vec<_> = result.summary.limits.iter().map(facts).collect();
    let core = (16.0, LimitKind::Core, Some("core 1".to_owned()));
    assert_eq!(spans, [core, (32.0, LimitKind::Unknown, None)]);
    let text = result.summary.limit.unwrap();
    let expected = "from 16 clients on; from 32 clients on the limit is not known";
    assert!(
        text.contains("the limit is one core of the server (core 1") && text.contains(expected),
        "{text}"
    );
    // Between two points that name it, the third is scatter.
    let again = run([LOW, ALWAYS_READY, ALWAYS_READY], 0.5).summary.limits;
    assert_eq!(again.iter().map(|span| span.from).collect::<Vec<_>>(), [16.0]);
}

#[test]
fn a_run_that_nothing_held_back_has_no_span_and_one_of_which_nothing_is_known_has_one() {
    let open = RunBuilder::open(&[500.0, 1_000.0]);
    assert!(analyse(&open.raw()).summary.limits.is_empty());
    let unknown = run([LOW, PARTLY_IDLE, PARTLY_IDLE], 0.5).summary.limits;
    let facts: Vec<_> = unknown.iter().map(|span| (span.from, span.limit.kind)).collect();
    assert_eq!(facts, [(16.0, LimitKind::Unknown)]);
}

#[test]
fn a_searched_ladder_has_the_limit_of_the_load_that_was_too_much() {
    let run = RunBuilder::open(&[500.0, 1_000.0]).with_failed_probe(3_000.0);
    let limits = analyse(&run.raw()).summary.limits;
    let facts: Vec<_> = limits.iter().map(|span| (span.from, span.limit.kind)).collect();
    assert_eq!(facts, [(3_000.0, LimitKind::Unknown)]);
}

#[test]
fn a_generator_that_was_disturbed_below_a_load_that_the_server_limited_is_not_the_limit_of_the_run()
{
    let built = |busy: [f64; 3]| {
        let loads = [(4, 800), (16, 990), (32, 1_000)];
        let points = loads.into_iter().zip(busy).map(|((clients, ops), busy)| {
            let response_ns = u64::from(clients) * 1_000_000_000 / ops;
            let point = PointBuilder::closed(clients).achieved(ops).response_ns(response_ns);
            point.worker_busy(busy)
        });
        let mut run = RunBuilder::from_points(points.collect::<Vec<_>>());
        for (index, used) in [0.4, 0.99, 0.99].into_iter().enumerate() {
            let means =
                [("process.server.cores_allowed", 1.0), ("process.server.cores_busy", used)];
            set_resources(
                &mut run,
                index,
                &[&means[..], &[("process.server.cpu", used)]].concat(),
                None,
            );
        }
        let mut raw = run.raw();
        raw.disclosure = here();
        analyse(&raw).summary
    };
    let facts = |limits: &[LimitSpan]| -> Vec<(f64, LimitKind)> {
        limits.iter().map(|span| (span.from, span.limit.kind)).collect()
    };
    let disturbed = built([0.5, 0.99, 0.5]);
    assert_eq!(facts(&disturbed.limits), [(32.0, LimitKind::Core)]);
    let text = disturbed.limit.unwrap();
    assert!(
        text.contains("the limit is one core of the server") && text.contains("from 32"),
        "{text}"
    );
    let at_the_end = built([0.5, 0.5, 0.99]);
    let both = [(16.0, LimitKind::Core), (32.0, LimitKind::Generator)];
    assert_eq!(facts(&at_the_end.limits), both);
    assert!(at_the_end.limit.unwrap().starts_with("generator-limited from 32 clients on"));
}
