use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_model::units::NANOS_PER_SECOND;

use super::*;
use crate::root::{Frame, Texts};

/// Rows of servers, polled once more.
fn sample_once(source: &mut ServerSource, now_ns: impl Fn() -> u64, rows: &mut Rows) {
    let [mut models, mut gpus] = [&models::MODELS, &models::GPUS].map(Rows::new);
    source.sample(now_ns, [rows, &mut models, &mut gpus]);
}

fn text(requests: u32, wait_s: f64) -> String {
    format!(
        "plimsoll_app_threads 4\nplimsoll_app_threads_busy 3\nplimsoll_app_queue_length 7\n\
         plimsoll_app_queue_wait_seconds_total {wait_s}\n\
         plimsoll_app_requests_total{{type=\"read\",status=\"ok\"}} {requests}\n\
         plimsoll_app_requests_total{{type=\"status\",status=\"ok\"}} {}\n",
        requests * 9,
    )
}

#[test]
fn gauges_are_as_told_and_totals_become_rates() {
    let mut replies = [text(100, 10.0), text(300, 22.0)].into_iter();
    let mut source = ServerSource::new(vec![ServerProbe::new("", move || replies.next())]);
    let mut rows = Rows::new(&SERVERS);
    sample_once(&mut source, || 7 * NANOS_PER_SECOND, &mut rows);
    assert_eq!(rows.value("", "threads_busy"), Some(3.0));
    assert_eq!(rows.value("", "requests"), None, "the first has no rates");
    sample_once(&mut source, || 9 * NANOS_PER_SECOND, &mut rows);
    assert_eq!(rows.value("", "requests"), Some(100.0), "status requests are no work");
    assert_eq!(rows.value("", "queue_mean"), Some(6.0));
    assert_eq!((rows.value("", "queue"), rows.value("", "threads")), (Some(7.0), Some(4.0)));
    assert_eq!(rows.value("", "fdatasyncs"), None, "what a server does not tell is absent");
    sample_once(&mut source, || 10 * NANOS_PER_SECOND, &mut rows);
    assert!(rows.rows().is_empty(), "it does not answer any more");
}

#[test]
fn a_server_that_takes_its_time_to_answer_is_not_busier_for_it() {
    // Asked once a second, it answers after 0.0, 0.6 and 0.1 s; 100 requests a second.
    let now_ms = Arc::new(AtomicU64::new(0));
    let clock = Arc::clone(&now_ms);
    let mut waits_ms = [0, 600, 100].into_iter();
    let ask = move || {
        clock.fetch_add(waits_ms.next()?, Ordering::Relaxed);
        let answered_ms = clock.load(Ordering::Relaxed);
        Some(text((answered_ms / 10) as u32, 0.0))
    };
    let mut source = ServerSource::new(vec![ServerProbe::new("", ask)]);
    let mut rows = Rows::new(&SERVERS);
    for second in 0..3 {
        now_ms.store(second * 1_000, Ordering::Relaxed);
        sample_once(&mut source, || now_ms.load(Ordering::Relaxed) * 1_000_000, &mut rows);
        let expected = (second > 0).then_some(100.0);
        assert_eq!(rows.value("", "requests"), expected);
    }
}

#[test]
fn a_server_that_was_away_or_began_anew_has_no_rates_at_first() {
    let mut replies = [Some(text(900, 9.0)), None, Some(text(50, 1.0)), Some(text(20, 0.5))];
    let mut calls = 0;
    let ask = move || {
        calls += 1;
        replies[calls - 1].take()
    };
    let mut source = ServerSource::new(vec![ServerProbe::new("2", ask)]);
    let mut rows = Rows::new(&SERVERS);
    for second in 0..3 {
        sample_once(&mut source, || second * NANOS_PER_SECOND, &mut rows);
    }
    assert_eq!(rows.value("2", "queue"), Some(7.0));
    assert_eq!(rows.value("2", "requests"), None, "nothing is known of the time between");
    sample_once(&mut source, || 3 * NANOS_PER_SECOND, &mut rows);
    assert_eq!(rows.value("2", "requests"), None, "a total that shrank is another's");
}

fn nfsd_texts(threads: u32, calls: u32, read: u32) -> Texts {
    let text = format!("io {read} 0\nth {threads} 0 0.000\nnet 9 0 9 1\nrpc {calls} 0 0 0 0\n");
    Texts::from([("proc/net/rpc/nfsd".to_owned(), text)])
}

#[test]
fn the_nfs_server_of_another_host_tells_its_calls_through_frames() {
    let frame = Frame::default();
    frame.replace(nfsd_texts(8, 1_000, 4_096));
    let mut source = NfsdSource::open(&Root::of_frame(frame.clone()));
    let mut rows = Rows::new(&NFSD);
    source.sample(Elapsed::from_ns(0), &mut rows);
    assert_eq!((rows.value("", "threads"), rows.value("", "calls")), (Some(8.0), None));
    frame.replace(nfsd_texts(8, 1_500, 8_192));
    source.sample(Elapsed::from_ns(2 * NANOS_PER_SECOND), &mut rows);
    assert_eq!(rows.value("", "calls"), Some(250.0));
    assert_eq!(rows.value("", "read"), Some(2_048.0));
    frame.replace(nfsd_texts(8, 3, 0));
    source.sample(Elapsed::from_ns(NANOS_PER_SECOND), &mut rows);
    assert_eq!(rows.value("", "calls"), None, "it was started anew");
}

#[test]
fn a_host_whose_nfs_server_is_not_started_or_gone_has_no_row_of_it() {
    let frame = Frame::default();
    frame.replace(nfsd_texts(0, 0, 0));
    let mut source = NfsdSource::open(&Root::of_frame(frame.clone()));
    let mut rows = Rows::new(&NFSD);
    source.sample(Elapsed::from_ns(0), &mut rows);
    assert!(rows.rows().is_empty());
    frame.replace(Texts::new());
    source.sample(Elapsed::from_ns(NANOS_PER_SECOND), &mut rows);
    assert!(rows.rows().is_empty());
}
