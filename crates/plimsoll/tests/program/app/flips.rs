//! Faults between a run and a transaction server: bytes that change on the way, and cuts.

use std::io::{self, Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::bad_days::serve_below;
use plimsoll_testkit::program::{
    Ended, broken_rules, command, result, short, wait_for, wait_until,
};

/// Facts of the protocol, written down apart from the code under test: the greeting's length, then
/// the header of a reply (`docs/app-protocol.md`).
const WELCOME_BYTES: usize = 32;
const REPLY_HEADER_BYTES: usize = 24;
const KIND_AT: usize = 4;
const CHECKSUM_AT: usize = 12;
/// The only type whose reply has a payload of known bytes.
const SERVER_CLIENT: u8 = 3;
/// The monitors' own request, not one of the load.
const STATUS: u8 = 7;

/// A fault in a reply of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    /// A bit of its checksum changes.
    Checksum,
    /// A bit in the middle of its payload changes, where the payload is known beforehand.
    Payload,
    /// Half of it is passed on, then the connection ends.
    Cut,
    /// The same, and new connections end at once.
    CutForGood,
}

/// Passes connections on to a server, and injects its fault on request.
struct Between {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    trick: Trick,
    /// Replies that still get a fault.
    to_play: AtomicI64,
    played: AtomicU64,
    /// Replies of the load so far, including the preparation's.
    replies: AtomicU64,
}

impl Between {
    /// Its threads end with their connections, the accepting one with the process.
    fn start(server: SocketAddr, trick: Trick) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server,
            trick,
            to_play: AtomicI64::new(0),
            played: AtomicU64::new(0),
            replies: AtomicU64::new(0),
        });
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // An error means that the server refuses; dropping the stream passes it on.
                let _ = take(client, &for_thread);
            }
        });
        Self { address, shared }
    }

    fn play(&self, times: i64) {
        self.shared.to_play.store(times, Ordering::SeqCst);
    }

    fn played(&self) -> u64 {
        self.shared.played.load(Ordering::SeqCst)
    }

    fn replies(&self) -> u64 {
        self.shared.replies.load(Ordering::SeqCst)
    }
}

fn take(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    if shared.trick == Trick::CutForGood && shared.played.load(Ordering::SeqCst) > 0 {
        return Ok(());
    }
    let server = TcpStream::connect(shared.server)?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let _ = pass_replies(&server, &client, &shared);
        let _ = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn pass_replies(mut server: &TcpStream, mut client: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut welcome = [0; WELCOME_BYTES];
    server.read_exact(&mut welcome)?;
    client.write_all(&welcome)?;
    loop {
        let mut reply = vec![0; REPLY_HEADER_BYTES];
        server.read_exact(&mut reply)?;
        let payload_bytes = u32::from_be_bytes([reply[0], reply[1], reply[2], reply[3]]);
        reply.resize(REPLY_HEADER_BYTES + payload_bytes as usize, 0);
        server.read_exact(&mut reply[REPLY_HEADER_BYTES..])?;
        match shared.trick_for(&reply) {
            None => client.write_all(&reply)?,
            Some(Trick::Checksum) => {
                reply[CHECKSUM_AT] ^= 0x10;
                client.write_all(&reply)?;
            }
            Some(Trick::Payload) => {
                let middle = usize::midpoint(REPLY_HEADER_BYTES, reply.len());
                reply[middle] ^= 0x10;
                client.write_all(&reply)?;
            }
            Some(Trick::Cut | Trick::CutForGood) => {
                return client.write_all(&reply[..reply.len() / 2]);
            }
        }
    }
}

impl Shared {
    fn trick_for(&self, reply: &[u8]) -> Option<Trick> {
        if reply[KIND_AT] == STATUS {
            return None;
        }
        self.replies.fetch_add(1, Ordering::SeqCst);
        if self.trick == Trick::Payload && reply[KIND_AT] != SERVER_CLIENT {
            return None;
        }
        if self.to_play.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return None;
        }
        self.played.fetch_add(1, Ordering::SeqCst);
        Some(self.trick)
    }
}

/// A run of one point with four clients; the fault is injected `times` times in the middle of it.
struct FaultRun {
    ended: Ended,
    result: Value,
    /// Replies that came after the fault.
    went_on: u64,
}

impl FaultRun {
    fn run(trick: Trick, times: i64) -> Self {
        let (temp_dir, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = serve_below(&root.path().join("segments"));
        let between = Between::start(server.address(), trick);
        let (url, bundle) = (format!("app://{}", between.address), temp_dir.path().join("b"));
        let mut run = command(&short("transactions", &url, &bundle, &ONE_POINT));
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the load has begun", || has_begun(&bundle));
        // The warm-up is over by then: a client has one op under way.
        let so_far = between.replies();
        wait_until("ops are measured", || between.replies() > so_far + 50);
        between.play(times);
        wait_until("the trick was played", || between.played() == times as u64);
        let so_far = between.replies();
        let ended = wait_for(run);
        let went_on = between.replies() - so_far;
        Self { ended, result: result(&bundle), went_on }
    }

    fn point(&self) -> &Value {
        &self.result["points"][0]
    }

    fn errors(&self) -> &Value {
        &self.point()["errors"]
    }

    /// The program reports it: in a sample of the point's errors, and as a reason of its verdict.
    #[track_caller]
    fn check_reported(&self, sample: &str, rule: &str) {
        self.ended.check(1, &["invalid"]);
        let samples = self.point()["error_samples"].to_string();
        assert!(samples.contains(sample), "{sample:?} is not in {samples}");
        let rules = broken_rules(&self.result);
        assert!(rules.iter().any(|broken| broken == rule), "{rule} is not in {rules:?}");
    }
}

/// Work for the processor is kept short, so that ops are many. One error is too many.
const ONE_POINT: [&str; 14] = [
    "--points",
    "4",
    "--set",
    "profiles.quick.warm_up=1ms",
    "--set",
    "profiles.quick.measure=3s",
    "--set",
    "profiles.quick.drain=10s",
    "--set",
    "workload.verify_one_in=1",
    "--set",
    "workload.work=2",
    "--set",
    "rules.errors_max_ratio=0",
];

fn has_begun(bundle: &Path) -> bool {
    let journal = std::fs::read_to_string(bundle.join("journal.jsonl")).unwrap_or_default();
    journal.contains("point_started")
}

#[test]
fn every_flipped_bit_of_a_checksum_is_counted_as_corrupt_and_told() {
    let run = FaultRun::run(Trick::Checksum, 25);
    assert_eq!(*run.errors(), json!({"corrupt": 25}), "{:?}", run.ended);
    run.check_reported("checksum 0x", "corrupt");
    assert_eq!(run.point()["clients_participating"], 4);
}

#[test]
fn every_flipped_bit_of_a_payload_is_counted_as_corrupt_and_told() {
    let run = FaultRun::run(Trick::Payload, 25);
    assert_eq!(*run.errors(), json!({"corrupt": 25}), "{:?}", run.ended);
    run.check_reported("of the reply differs", "corrupt");
    assert_eq!(run.point()["clients_participating"], 4);
}

#[test]
fn a_connection_cut_in_a_reply_costs_one_op_and_is_opened_again() {
    let run = FaultRun::run(Trick::Cut, 2);
    assert_eq!(*run.errors(), json!({"truncated": 2}), "{:?}", run.ended);
    run.check_reported("in the reply", "errors");
    assert_eq!(run.point()["clients_participating"], 4);
    assert!(run.went_on > 100, "{} replies after the cut", run.went_on);
}

#[test]
fn a_client_that_is_cut_off_for_good_leaves_the_others_their_load() {
    let run = FaultRun::run(Trick::CutForGood, 1);
    let errors = run.errors().as_object().unwrap();
    let count = |class: &str| errors.get(class).map_or(0, |count| count.as_u64().unwrap());
    let tries = count("transport");
    // Ten a second for the three seconds at most that are left; a loop without pauses would make
    // thousands.
    assert!((1..=100).contains(&tries), "{errors:?}");
    assert_eq!((errors.len(), count("truncated")), (2, 1), "{errors:?}");
    run.check_reported("in the reply", "errors");
    assert!(run.went_on > 100, "{} replies after the cut", run.went_on);
}
