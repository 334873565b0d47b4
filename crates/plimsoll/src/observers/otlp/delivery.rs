//! A queue to a collector, and the thread that empties it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_monitor::Post;
use plimsoll_servers::cores;
use prost::Message as _;

use super::address::ExportUrl;
use super::wire::ExportMetricsServiceResponse;
use crate::exit::Failure;

/// Load points that may wait for a slow collector; one has some kilobytes for each op.
const QUEUE_POINTS_MAX: usize = 8;
/// Collectors take 20 MiB. A load point of 256 ops whose buckets are all full would have 14 MB.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest exchange with a collector, but for DNS.
const POST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for the queue at the end of a run.
const END_WAIT: Duration = Duration::from_secs(2);
/// Of a collector's own words.
const WORDS_MAX: usize = 200;

/// The way to one collector.
pub(super) struct Delivery {
    queue: SyncSender<Vec<u8>>,
    /// Nothing is sent through it: it closes when the thread ends.
    ended: Receiver<()>,
    tally: Arc<Tally>,
    offered: u64,
    /// Why the last one did not enter the queue.
    dropped: Option<String>,
}

/// What the thread tells.
#[derive(Default)]
struct Tally {
    given_up: AtomicBool,
    outcome: Mutex<Outcome>,
}

#[derive(Clone, Default)]
struct Outcome {
    delivered: u64,
    /// Why the last one that failed did.
    failed: Option<String>,
}

impl Tally {
    fn tell(&self, outcome: Result<(), String>) {
        let mut told = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(()) => told.delivered += 1,
            Err(why) => told.failed = Some(why),
        }
    }
}

impl Delivery {
    /// Asks nobody yet: a collector that is away must not keep a run from beginning.
    pub(super) fn start(url: ExportUrl, fields: Vec<(String, String)>) -> Result<Self, Failure> {
        let (queue, queued) = sync_channel::<Vec<u8>>(QUEUE_POINTS_MAX);
        let (end, ended) = channel();
        let tally = Arc::<Tally>::default();
        let teller = Arc::clone(&tally);
        let work = move || {
            // Where that is not permitted it delivers all the same.
            let _ = cores::lower_priority();
            for message in queued {
                if teller.given_up.load(Ordering::Relaxed) {
                    break;
                }
                teller.tell(deliver(&url, &fields, &message));
            }
            drop(end);
        };
        thread::Builder::new()
            .name("plimsoll-export".into())
            .spawn(work)
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        Ok(Self { queue, ended, tally, offered: 0, dropped: None })
    }

    /// Takes no time, whatever the collector does.
    pub(super) fn offer(&mut self, message: Vec<u8>) {
        self.offered += 1;
        if message.len() > MESSAGE_BYTES_MAX {
            self.dropped =
                Some(format!("it has {} bytes (limit {MESSAGE_BYTES_MAX})", message.len()));
        } else if self.queue.try_send(message).is_err() {
            self.dropped = Some(format!(
                "{QUEUE_POINTS_MAX} others waited already for a collector that is slow or hangs"
            ));
        }
    }

    /// Waits a moment for what is still under way; says what was not delivered, and why.
    pub(super) fn end(self) -> Option<String> {
        let Self { queue, ended, tally, offered, dropped } = self;
        drop(queue);
        let in_time = ended.recv_timeout(END_WAIT) != Err(RecvTimeoutError::Timeout);
        tally.given_up.store(true, Ordering::Relaxed);
        let told = tally.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let late = (!in_time)
            .then(|| format!("no answer within {} s of the end of the run", END_WAIT.as_secs()));
        let why = told.failed.or(late).or(dropped).unwrap_or_default();
        let missing = offered.saturating_sub(told.delivered);
        (missing > 0)
            .then(|| format!("{missing} of {offered} load points were not delivered: {why}"))
    }
}

fn deliver(url: &ExportUrl, fields: &[(String, String)], message: &[u8]) -> Result<(), String> {
    let post = Post {
        host: &url.host,
        port: url.port,
        path: &url.path,
        fields,
        content_type: "application/x-protobuf",
        body: message,
    };
    let reply = post.send(POST_WAIT).map_err(|lost| lost.to_string())?;
    // What cannot be read says nothing; the status was a good one.
    let reply = ExportMetricsServiceResponse::decode(&*reply).unwrap_or_default();
    match reply.partial_success {
        Some(partial) if partial.rejected_data_points > 0 => {
            let words = partial.error_message.chars().filter(|c| !c.is_control());
            let words: String = words.take(WORDS_MAX).collect();
            Err(format!("it refused {} of its figures: {words}", partial.rejected_data_points))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A collector that listens and never answers.
    fn silent() -> (std::net::TcpListener, ExportUrl) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, ExportUrl { host: "127.0.0.1".into(), port, path: "/".into() })
    }

    #[test]
    fn a_collector_that_hangs_neither_holds_up_nor_fills_memory_and_is_told_once() {
        let (_listener, url) = silent();
        let mut delivery = Delivery::start(url, Vec::new()).unwrap();
        let began = crate::clock::Stopwatch::start();
        for _ in 0..100 {
            delivery.offer(vec![0; 1_000]);
        }
        assert!(began.elapsed() < Duration::from_secs(1));
        let said = delivery.end().unwrap();
        assert!(began.elapsed() < END_WAIT + Duration::from_secs(2));
        assert!(said.starts_with("100 of 100 load points were not delivered: no answer"), "{said}");
    }

    #[test]
    fn a_message_that_no_collector_takes_is_not_sent() {
        let (listener, url) = silent();
        let mut delivery = Delivery::start(url, Vec::new()).unwrap();
        delivery.offer(vec![0; MESSAGE_BYTES_MAX + 1]);
        let said = delivery.end().unwrap();
        assert!(said.starts_with("1 of 1 load points were not delivered: it has"), "{said}");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }

    #[test]
    fn nothing_to_deliver_is_nothing_to_tell() {
        let (_listener, url) = silent();
        assert_eq!(Delivery::start(url, Vec::new()).unwrap().end(), None);
    }
}
