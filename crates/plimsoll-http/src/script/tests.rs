use plimsoll_analysis::cache_model::{CacheModel, HitsBy};
use plimsoll_engine::interface::{Link, Session as _};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_testkit::lru::LruCache;

use super::*;
use crate::parameters::Connections;
use crate::session::HttpSession;
use crate::site::Request;
use crate::test_io::{Bench, SMALL, file_op, file_set, file_site, reply};
use crate::wire::request::Method;

fn file_plan(shared: bool) -> Arc<FilePlan> {
    Arc::new(FilePlan {
        seed: 11,
        class_percent: [35, 50, 14, 1],
        cumulative: cumulative(poisson_weights(5.0)),
        directories: 44,
        verify_one_in: 64,
        method: Method::GET,
        shared,
    })
}

fn file(op: HttpOp) -> FileId {
    match op.request {
        Request::File(id) => id,
        Request::Url(_) => panic!("not a file"),
    }
}

#[test]
fn weights_within_a_class_are_those_of_the_method() {
    let percent = poisson_weights(5.0).map(|w| (w * 1000.0).round() / 10.0);
    assert_eq!(percent, [3.5, 8.8, 14.6, 18.3, 18.3, 15.2, 10.9, 6.8, 3.8]);
    let shares = [0.35, 0.5, 0.14, 0.01];
    let mean: f64 = (0..4u8)
        .flat_map(|class| (1..=9u8).map(move |k| (class, k)))
        .map(|(class, k)| {
            let bytes = FileId { directory: 0, class, k }.bytes() as f64;
            shares[usize::from(class)] * poisson_weights(5.0)[usize::from(k) - 1] * bytes
        })
        .sum();
    assert_eq!(mean.round(), 14_566.0);
}

#[test]
fn every_deck_of_every_client_holds_exactly_the_class_shares() {
    for client in 0..20 {
        let mut script = FileScript::new(file_plan(false), client);
        for deck in 0..10 {
            let mut counts = [0; 4];
            for i in 0..100 {
                counts[usize::from(file(script.op(deck * 100 + i)).class)] += 1;
            }
            assert_eq!(counts, [35, 50, 14, 1]);
        }
    }
}

#[test]
fn clients_with_a_few_ops_each_hold_the_mix_together() {
    for first in [0, 37, 95, 1_000] {
        let mut counts = [0u32; 4];
        for client in 0..64 {
            let mut script = FileScript::new(file_plan(false), client);
            // As uneven as independent schedules are.
            for index in first..first + 7 + u64::from(client % 7) {
                counts[usize::from(file(script.op(index)).class)] += 1;
            }
        }
        let n = f64::from(counts.iter().sum::<u32>());
        for (count, share) in counts.iter().zip([0.35, 0.5, 0.14, 0.01]) {
            let off = (f64::from(*count) / n - share).abs();
            assert!(off < 0.01, "{counts:?} from {first}");
        }
    }
}

#[test]
fn files_within_a_class_are_apportioned_even_in_a_short_run() {
    let mut counts = [0u32; 9];
    for client in 0..64 {
        let mut script = FileScript::new(file_plan(false), client);
        for index in 0..300 {
            let id = file(script.op(index));
            if id.class == 1 {
                counts[usize::from(id.k) - 1] += 1;
            }
        }
    }
    let n: u32 = counts.iter().sum();
    for (count, weight) in counts.iter().zip(poisson_weights(5.0)) {
        let share = f64::from(*count) / f64::from(n);
        assert!((share - weight).abs() < 0.005, "{share} for {weight}");
    }
}

#[test]
fn an_op_depends_on_its_index_and_not_on_the_order_of_asking() {
    let ops = |script: &mut FileScript, order: &[u64]| -> Vec<(u64, HttpOp)> {
        let mut ops: Vec<_> = order.iter().map(|i| (*i, script.op(*i))).collect();
        ops.sort_by_key(|(i, _)| *i);
        ops
    };
    let mut forward = FileScript::new(file_plan(true), 0);
    let mut other_client = FileScript::new(file_plan(true), 5);
    assert_eq!(
        ops(&mut forward, &[0, 1, 150, 151, 900]),
        ops(&mut other_client, &[900, 1, 151, 0, 150])
    );
    let mut own = FileScript::new(file_plan(false), 5);
    assert_ne!(ops(&mut own, &[0, 1, 2, 3, 4, 5]), ops(&mut forward, &[0, 1, 2, 3, 4, 5]));
}

#[test]
fn directories_are_drawn_evenly() {
    let mut script = FileScript::new(file_plan(true), 0);
    let mut counts = [0; 44];
    for index in 0..44_000 {
        counts[file(script.op(index)).directory as usize] += 1;
    }
    assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
}

#[test]
fn one_reply_in_n_is_verified_and_clients_are_out_of_step() {
    let mut verified = [0; 64];
    for client in 0..4 {
        let mut script = FileScript::new(file_plan(false), client);
        for index in 0..64 {
            verified[index as usize] += u32::from(script.op(index).verify);
        }
    }
    assert_eq!(verified.iter().sum::<u32>(), 4);
    assert!(verified.iter().all(|n| *n <= 1));
}

/// Reads of 64 clients in turn, as long as the predicted ratio needs to be within a hundredth.
#[test]
fn a_cache_of_least_recently_used_files_hits_as_its_formula_says() {
    const READS: u64 = 384_000;
    let plan = file_plan(false);
    let model = CacheModel::from_pattern(&plan.access_pattern(1).unwrap()).unwrap();
    assert_eq!(plan.access_pattern(2).unwrap().classes[0].items, 88);
    for part in [0.03, 0.1, 0.3, 0.6, 0.9] {
        let bytes = (part * model.full_bytes()) as u64;
        let mut cache = LruCache::new(bytes, READS / 2);
        let mut scripts: Vec<_> = (0..64).map(|n| FileScript::new(plan.clone(), n)).collect();
        for read in 0..READS {
            let id = file(scripts[(read % 64) as usize].op(read / 64));
            cache.read(id, id.bytes());
        }
        let by = [HitsBy::Reads, HitsBy::Bytes];
        for (by, ratio) in by.into_iter().zip(cache.hit_ratios()) {
            let predicted = model.hit_ratio(bytes as f64, by);
            let off = (predicted - ratio).abs();
            assert!(off < 0.01, "{part}: {predicted} instead of {ratio} by {by:?}");
        }
    }
}

#[test]
fn requests_without_content_have_no_access_pattern() {
    let heads = FilePlan { method: Method::HEAD, ..(*file_plan(false)).clone() };
    assert_eq!(heads.access_pattern(1), None);
}

fn url_plan(weights: &[u32]) -> UrlPlan {
    let card =
        |(i, w): (usize, &u32)| UrlCard { kind: OpKind(i as u8), method: Method::GET, weight: *w };
    UrlPlan::new(3, true, weights.iter().enumerate().map(card).collect())
}

#[test]
fn urls_come_exactly_by_weight_from_each_deck() {
    let plan = url_plan(&[200, 100, 700]);
    assert!(plan.uses_decks());
    let mut script = UrlScript::new(Arc::new(plan), 0);
    let mut counts = [0; 3];
    for index in 0..10 {
        counts[usize::from(script.op(index).kind.0)] += 1;
    }
    assert_eq!(counts, [2, 1, 7]);
}

#[test]
fn weights_too_fine_for_a_deck_are_drawn() {
    let plan = url_plan(&[1, 9_999]);
    assert!(!plan.uses_decks());
    let mut script = UrlScript::new(Arc::new(plan), 0);
    let rare = (0..100_000).filter(|i| script.op(*i).kind == OpKind(0)).count();
    assert!((1..40).contains(&rare), "{rare}");
}

#[test]
fn a_client_sleeps_until_its_turn_and_then_opens_its_connection() {
    let workload = HttpWorkload {
        connections: Connections::Held,
        opened_per_s: Some(100.0),
        ..HttpWorkload::default()
    };
    let mut names = vec!["GET".to_owned()];
    let long_lived = LongLivedConnections::new(&workload, &mut names).unwrap();
    assert_eq!(names, ["GET", "open"]);
    let (kind, request) = (OpKind(0), Request::Url(0));
    let op = HttpOp { kind, request, method: Method::GET, verify: false, key: 0 };
    let opens_at = Nanos::from_millis(70);
    assert_eq!(long_lived.open(op, 7, Nanos::ZERO), Step::SleepUntil(opens_at));
    assert_eq!(long_lived.open(op, 7, opens_at), Step::Issue(HttpOp { kind: OpKind(1), ..op }));
}

/// A client has its first reply; then something happens to its connection. Why it has left.
fn left(happens: impl FnOnce(&mut Bench<HttpSession>, Link)) -> (Bench<HttpSession>, String) {
    let mut bench = Bench::new(file_site(Connections::Held));
    let link = bench.issue_and_connect(file_op(SMALL));
    bench.bytes(link, &reply(file_set().content(SMALL)));
    assert_eq!((bench.last().status, bench.session.lost()), (OpStatus::Ok, None));
    happens(&mut bench, link);
    let why = bench.session.lost().expect("it has left");
    assert!(!bench.session.has_room());
    assert_eq!(bench.io.links, 1, "it does not connect again");
    (bench, why)
}

#[test]
fn a_client_whose_idle_connection_ends_leaves_without_an_error() {
    let (bench, why) = left(|bench, link| bench.eof(link));
    assert_eq!((bench.io.done.len(), &*why), (1, "the server closed the idle connection"));
    left(|bench, link| bench.reset(link));
    left(|bench, link| bench.bytes(link, b"HTTP/1.1 408 Request Timeout\r\n\r\n"));
}

#[test]
fn a_request_on_a_connection_that_is_held_is_not_repeated_on_another() {
    let (bench, why) = left(|bench, link| {
        bench.issue(file_op(SMALL));
        bench.eof(link);
    });
    assert_eq!(bench.last().status, OpStatus::Failed(ErrorClass::Transport));
    assert_eq!(why, "a request on the connection failed");
}

#[test]
fn a_reply_that_announces_the_end_of_its_connection_ends_the_client() {
    let (bench, why) = left(|bench, link| {
        bench.issue(file_op(SMALL));
        let whole = reply(file_set().content(SMALL));
        let (status, rest) = whole.split_at("HTTP/1.1 200 OK".len());
        bench.bytes(link, &[status, b"\r\nConnection: close", rest].concat());
    });
    assert_eq!((bench.io.done.len(), bench.last().status), (2, OpStatus::Ok));
    assert_eq!(why, "the server closed the connection after a reply");
}
