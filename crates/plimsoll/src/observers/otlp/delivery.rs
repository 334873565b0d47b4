//! Queues to a collector, and the thread that empties them, load points first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
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
/// Seconds that may wait for it: three exchanges that take as long as they may. One has a kilobyte.
const QUEUE_SECONDS_MAX: usize = 16;
/// Collectors take 20 MiB. A load point of 256 ops whose buckets are all full would have 14 MB.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest exchange with a collector, but for DNS.
const POST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for the queue at the end of a run.
const END_WAIT: Duration = Duration::from_secs(2);
/// Of a collector's own words.
const WORDS_MAX: usize = 200;

/// What a message is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Point,
    Second,
}

pub(super) struct Delivery {
    points: Queue,
    seconds: Queue,
    /// Rung once for each message that is in a queue.
    bell: Sender<()>,
    /// Nothing is sent through it: it closes when the thread ends.
    ended: Receiver<()>,
    tally: Arc<Tally>,
    /// Why the last one did not enter a queue.
    dropped: Option<String>,
}

/// Messages of one kind that wait.
struct Queue {
    sender: SyncSender<Vec<u8>>,
    messages_max: usize,
    offered: u64,
}

impl Queue {
    fn new(messages_max: usize) -> (Self, Receiver<Vec<u8>>) {
        let (sender, queued) = sync_channel(messages_max);
        (Self { sender, messages_max, offered: 0 }, queued)
    }
}

#[derive(Default)]
struct Tally {
    given_up: AtomicBool,
    outcome: Mutex<Outcome>,
}

#[derive(Clone, Default)]
struct Outcome {
    points_delivered: u64,
    seconds_delivered: u64,
    /// Why the last one that failed did.
    failed: Option<String>,
}

impl Tally {
    fn tell(&self, kind: Kind, outcome: Result<(), String>) {
        let mut told = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match (outcome, kind) {
            (Ok(()), Kind::Point) => told.points_delivered += 1,
            (Ok(()), Kind::Second) => told.seconds_delivered += 1,
            (Err(why), _) => told.failed = Some(why),
        }
    }
}

impl Delivery {
    /// Asks nobody yet: a collector that is away must not keep a run from beginning.
    pub(super) fn start(url: ExportUrl, fields: Vec<(String, String)>) -> Result<Self, Failure> {
        let (points, points_queued) = Queue::new(QUEUE_POINTS_MAX);
        let (seconds, seconds_queued) = Queue::new(QUEUE_SECONDS_MAX);
        let (bell, rung) = channel();
        let (end, ended) = channel();
        let tally = Arc::<Tally>::default();
        let teller = Arc::clone(&tally);
        let next = move || {
            let point = points_queued.try_recv().map(|message| (Kind::Point, message));
            point.or_else(|_| seconds_queued.try_recv().map(|message| (Kind::Second, message)))
        };
        let work = move || {
            // Where that is not permitted it delivers all the same.
            let _ = cores::lower_priority();
            for () in rung {
                if teller.given_up.load(Ordering::Relaxed) {
                    break;
                }
                if let Ok((kind, message)) = next() {
                    teller.tell(kind, deliver(&url, &fields, &message));
                }
            }
            drop(end);
        };
        thread::Builder::new()
            .name("plimsoll-export".into())
            .spawn(work)
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))?;
        Ok(Self { points, seconds, bell, ended, tally, dropped: None })
    }

    /// Takes no time, whatever the collector does.
    pub(super) fn offer(&mut self, kind: Kind, message: Vec<u8>) {
        let queue = match kind {
            Kind::Point => &mut self.points,
            Kind::Second => &mut self.seconds,
        };
        queue.offered += 1;
        if message.len() > MESSAGE_BYTES_MAX {
            self.dropped =
                Some(format!("it has {} bytes (limit {MESSAGE_BYTES_MAX})", message.len()));
        } else if queue.sender.try_send(message).is_err() {
            self.dropped = Some(format!(
                "{} others waited already for a collector that is slow or hangs",
                queue.messages_max
            ));
        } else {
            // The thread has ended only if it died; what it did not deliver is counted.
            let _ = self.bell.send(());
        }
    }

    /// Waits a moment for what is still under way; says what was not delivered, and why.
    pub(super) fn end(self) -> Option<String> {
        let Self { points, seconds, bell, ended, tally, dropped } = self;
        drop(bell);
        let in_time = ended.recv_timeout(END_WAIT) != Err(RecvTimeoutError::Timeout);
        tally.given_up.store(true, Ordering::Relaxed);
        let told = tally.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let late = (!in_time)
            .then(|| format!("no answer within {} s of the end of the run", END_WAIT.as_secs()));
        let why = told.failed.or(late).or(dropped).unwrap_or_default();
        let missing = [
            missing(points.offered, told.points_delivered, "load points"),
            missing(seconds.offered, told.seconds_delivered, "seconds"),
        ];
        let missing: Vec<String> = missing.into_iter().flatten().collect();
        (!missing.is_empty())
            .then(|| format!("{} were not delivered: {why}", missing.join(" and ")))
    }
}

fn missing(offered: u64, delivered: u64, what: &str) -> Option<String> {
    let missing = offered.saturating_sub(delivered);
    (missing > 0).then(|| format!("{missing} of {offered} {what}"))
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
mod tests;
