//! Queues to a collector, and the thread that empties them, load points first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_monitor::{Post, PostTls};
use plimsoll_servers::cores;
use prost::Message as _;

use super::address::{ExportUrl, tls_of_environment};
use super::wire::ExportMetricsServiceResponse;
use crate::failure::Failure;

/// Load points that may wait for a slow collector; each takes some kilobytes per op.
const QUEUE_POINTS_MAX: usize = 8;
/// Seconds that may wait for it: three exchanges of the longest duration. Each takes a kilobyte.
const QUEUE_SECONDS_MAX: usize = 16;
/// Collectors accept 20 MiB. A load point of 256 ops whose buckets are all full would have 14 MB.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest exchange with a collector, without DNS.
const POST_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for the queue at the end of a run.
const END_WAIT: Duration = Duration::from_secs(2);
/// Length of a collector's message.
const MESSAGE_CHARS_MAX: usize = 200;

/// Content of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Point,
    Second,
}

pub(super) struct Delivery {
    points: Queue,
    seconds: Queue,
    /// One signal for each message in a queue.
    bell: Sender<()>,
    /// Carries nothing: it closes when the thread ends.
    ended: Receiver<()>,
    tally: Arc<Tally>,
    /// Why the last dropped message did not fit.
    dropped: Option<String>,
}

/// Waiting messages of one kind.
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
    /// Error of the last failed delivery.
    failed: Option<String>,
}

impl Tally {
    fn record(&self, kind: Kind, outcome: Result<(), String>) {
        let mut totals = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match (outcome, kind) {
            (Ok(()), Kind::Point) => totals.points_delivered += 1,
            (Ok(()), Kind::Second) => totals.seconds_delivered += 1,
            (Err(why), _) => totals.failed = Some(why),
        }
    }
}

impl Delivery {
    /// Contacts nobody yet: an absent collector must not prevent a run.
    pub(super) fn start(url: ExportUrl, fields: Vec<(String, String)>) -> Result<Self, Failure> {
        let (points, points_queued) = Queue::new(QUEUE_POINTS_MAX);
        let (seconds, seconds_queued) = Queue::new(QUEUE_SECONDS_MAX);
        let tls = url.secure.then(tls_of_environment).transpose()?;
        let (bell, rung) = channel();
        let (end, ended) = channel();
        let tally = Arc::<Tally>::default();
        let teller = Arc::clone(&tally);
        let next = move || {
            let point = points_queued.try_recv().map(|message| (Kind::Point, message));
            point.or_else(|_| seconds_queued.try_recv().map(|message| (Kind::Second, message)))
        };
        let work = move || {
            // Without permission it still delivers.
            let _ = cores::lower_priority();
            for () in rung {
                if teller.given_up.load(Ordering::Relaxed) {
                    break;
                }
                if let Ok((kind, message)) = next() {
                    teller.record(kind, deliver(&url, tls.as_ref(), &fields, &message));
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

    /// Never blocks, whatever the collector does.
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
            // If the thread has ended, it panicked; undelivered messages are counted.
            let _ = self.bell.send(());
        }
    }

    /// Waits a moment for queued messages; reports what was not delivered, and why.
    pub(super) fn end(self) -> Option<String> {
        let Self { points, seconds, bell, ended, tally, dropped } = self;
        drop(bell);
        let in_time = ended.recv_timeout(END_WAIT) != Err(RecvTimeoutError::Timeout);
        tally.given_up.store(true, Ordering::Relaxed);
        let totals = tally.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let late = (!in_time)
            .then(|| format!("no answer within {} s of the end of the run", END_WAIT.as_secs()));
        let why = totals.failed.or(late).or(dropped).unwrap_or_default();
        let missing = [
            missing(points.offered, totals.points_delivered, "load points"),
            missing(seconds.offered, totals.seconds_delivered, "seconds"),
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

fn deliver(
    url: &ExportUrl,
    tls: Option<&PostTls>,
    fields: &[(String, String)],
    message: &[u8],
) -> Result<(), String> {
    let post = Post {
        host: &url.host,
        port: url.port,
        tls,
        path: &url.path,
        fields,
        content_type: "application/x-protobuf",
        body: message,
    };
    let reply = post.send(POST_WAIT).map_err(|lost| lost.to_string())?;
    // An unreadable reply is ignored: the status was good.
    let reply = ExportMetricsServiceResponse::decode(&*reply).unwrap_or_default();
    match reply.partial_success {
        Some(partial) if partial.rejected_data_points > 0 => {
            let reason = partial.error_message.chars().filter(|c| !c.is_control());
            let reason: String = reason.take(MESSAGE_CHARS_MAX).collect();
            Err(format!("it refused {} of its figures: {reason}", partial.rejected_data_points))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
