//! How a server ends, and what it leaves behind.

use std::net::TcpStream;
use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_app::server::{AppConfig, SegmentsRoot};
use plimsoll_app::wire::{RequestHeader, RequestType, Status, work_checksum};

use crate::support::{TIME_LIMIT, config, frame, request, serve};
use plimsoll_testkit::program::wait_until;

/// Work that is still in progress after a few exchanges, even on a machine that pauses.
const LONG: Duration = Duration::from_millis(1_500);

#[test]
fn what_is_under_way_is_answered_and_what_waits_is_refused() {
    let one_thread = AppConfig { threads: NonZeroU32::new(1), ..config() };
    let server = serve(&AppConfig { end_timeout: TIME_LIMIT, ..one_thread });
    let mut watcher = server.client(9, 0);
    let [mut served, mut waiting, mut idle] = [1, 2, 3].map(|number| server.client(number, 0));
    let long = watcher.long_request(LONG);
    served.send(&frame(long, b""));
    wait_until("the only thread has taken it", || {
        watcher.has_metric_line("plimsoll_app_threads_busy 1")
            && watcher.has_metric_line("plimsoll_app_queue_length 0")
    });
    waiting.send(&frame(long, b""));
    wait_until("the next request waits", || watcher.has_metric_line("plimsoll_app_queue_length 1"));
    let address = server.address;
    server.serving.stop.request();
    assert_eq!(waiting.reply().0.status, Status::Ending);
    let (done, _) = served.reply();
    assert_eq!((done.status, done.checksum), (Status::Ok, work_checksum(long.seed, long.work)));
    for client in [&mut served, &mut waiting, &mut idle] {
        client.check_ended();
    }
    server.end();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn neither_long_work_nor_silent_clients_hold_the_end_up() {
    let server = serve(&config());
    let (mut busy, mut beginner) = (server.client(1, 0), server.client(2, 0));
    let longest = RequestHeader { work: 1_000_000, ..request(RequestType::Processor) };
    busy.send(&frame(longest, b""));
    beginner.send(&frame(request(RequestType::Write), &[0; 100])[..50]);
    let stranger = server.stranger();
    let mut watcher = server.client(3, 0);
    wait_until("a thread is busy", || watcher.has_metric_line("plimsoll_app_threads_busy 1"));
    let took = server.end();
    assert!(took < Duration::from_secs(15), "{took:?}");
    drop(stranger);
}

#[test]
fn a_temporary_directory_is_gone_at_the_end() {
    let dir = tempfile::tempdir().unwrap().keep();
    let root = SegmentsRoot::TemporaryAt(dir.clone());
    let server = serve(&AppConfig { root, ..config() });
    let mut client = server.client(1, 4_096);
    client.ask(request(RequestType::Append), b"data");
    assert!(dir.join("client-000001.segment").exists());
    server.end();
    assert!(!dir.exists());
}
