//! A delay law for the reference servers: each reply waits until the instant at which a queue of
//! known law would have served its request. The queue is that of the calibrated server, in virtual
//! time; the work of the server itself comes before the wait and is hidden by it.
//!
//! An HTTP and an SMB server hold their replies in [`DelayLaw::hold`], the NFS server in a thread
//! of its own. A waiting thread spins for the last two milliseconds, so that a reply leaves within
//! some 20 µs of its instant if the server has its own core, and later otherwise: the log has how
//! late each was.
//!
//! [`Work`] makes a server slower by a known amount of processor time for each request, so that a
//! generator on the same host can find that server's capacity.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

use crate::ServerError;
use crate::clock::monotonic_ns;
use crate::log::{self, Log, ROWS_MAX, Row};
pub use crate::queue::Passage;
use crate::queue::ServiceQueue;

/// The runtime's timers have steps of a millisecond, and may be one late.
const AWAKE_NS: u64 = 2_000_000;
/// A server that had a request within this time looks for the next without sleeping.
const IDLE_NS: u64 = 1_000_000_000;
/// How often an idle server checks for requests.
const IDLE_LOOK: Duration = Duration::from_millis(1);

/// The queue, shared by all connections of a server.
pub struct DelayLaw {
    spec: CalibratedSpec,
    /// Where to write what happened to each request, at the end; the file is replaced.
    log: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    queue: ServiceQueue,
    log: Option<Log>,
    last_arrival_ns: u64,
}

impl DelayLaw {
    /// From the law, if one was requested.
    pub fn from_spec(
        spec: Option<&CalibratedSpec>,
        log: Option<&PathBuf>,
    ) -> Result<Option<Arc<Self>>, ServerError> {
        spec.map(|spec| Self::new(spec.clone(), log.cloned())).transpose()
    }

    /// An empty queue. Opens the log now, so that an unwritable one fails early.
    pub fn new(spec: CalibratedSpec, log: Option<PathBuf>) -> Result<Arc<Self>, ServerError> {
        log::create(log.as_deref())?;
        let state = State {
            queue: ServiceQueue::new(&spec),
            log: log.as_ref().map(|_| Log::new(ROWS_MAX)),
            last_arrival_ns: 0,
        };
        Ok(Arc::new(Self { spec, log, state: Mutex::new(state) }))
    }

    /// A request has arrived, now: when its reply leaves.
    pub fn arrive(&self) -> Passage {
        let mut state = self.state();
        // Read under the lock, so that arrivals are in order.
        let now_ns = monotonic_ns();
        state.last_arrival_ns = now_ns;
        state.queue.arrive(now_ns)
    }

    /// The reply has been handed to the kernel, or to what does that, at `sent_ns`.
    pub fn sent(&self, passage: Passage, sent_ns: u64) {
        let Passage { arrival_ns, completion_ns } = passage;
        if let Some(log) = &mut self.state().log {
            log.add(Row { arrival_ns, completion_ns, sent_ns, key: None });
        }
    }

    /// Waits until the reply leaves; other tasks run meanwhile.
    pub async fn hold(&self, passage: Passage) {
        loop {
            let left_ns = passage.completion_ns.saturating_sub(monotonic_ns());
            match left_ns {
                0 => return,
                1..=AWAKE_NS => tokio::task::yield_now().await,
                _ => tokio::time::sleep(Duration::from_nanos(left_ns - AWAKE_NS)).await,
            }
        }
    }

    /// Keeps the thread of a runtime awake while requests come, so that no stamp is late because of
    /// a wakeup. For servers on cores of their own. Never ends.
    pub async fn keep_awake(&self) {
        loop {
            let idle_ns = monotonic_ns().saturating_sub(self.state().last_arrival_ns);
            if idle_ns > IDLE_NS {
                tokio::time::sleep(IDLE_LOOK).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Writes the log, if one is configured.
    pub fn write_log(&self) -> Result<(), ServerError> {
        let Some(path) = &self.log else { return Ok(()) };
        let state = self.state();
        let Some(log) = &state.log else { return Ok(()) };
        log.write(path, &self.spec, state.queue.stall())
            .map_err(|source| ServerError::Log { path: path.clone(), source })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for DelayLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DelayLaw").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Now, on the clock of the log.
pub fn now_ns() -> u64 {
    monotonic_ns()
}

/// Extra processor time for each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work(pub Nanos);

impl Work {
    /// Keeps the calling thread at work for so long; a pause of the thread does not count.
    pub fn spend(self) {
        let end = match self.0 {
            Nanos::ZERO => return,
            time => thread_cpu() + time,
        };
        while thread_cpu() < end {
            std::hint::spin_loop();
        }
    }
}

fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos::from_secs(time.tv_sec as u64) + Nanos(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reply_waits_until_its_instant_and_the_log_shows_how_late_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let spec = "service=const:3ms,servers=1".parse().unwrap();
        let law = DelayLaw::new(spec, Some(path.clone())).unwrap();
        for _ in 0..3 {
            let passage = law.arrive();
            assert_eq!(passage.completion_ns - passage.arrival_ns, 3_000_000);
            law.hold(passage).await;
            let now_ns = now_ns();
            assert!(now_ns >= passage.completion_ns);
            law.sent(passage, now_ns);
        }
        law.write_log().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| !line.starts_with(['#', 'a'])).count(), 3, "{text}");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_refused_at_the_start() {
        let spec = "service=const:1ms".parse().unwrap();
        let log = Some("/nowhere/log.csv".into());
        assert!(matches!(DelayLaw::new(spec, log), Err(ServerError::Log { .. })));
    }

    #[test]
    fn so_much_processor_time_is_spent_and_hardly_more() {
        let before = thread_cpu();
        (0..10).for_each(|_| Work(Nanos::from_millis(1)).spend());
        let spent = thread_cpu().saturating_sub(before);
        assert!(spent >= Nanos::from_millis(10) && spent < Nanos::from_millis(15), "{spent}");
        Work::default().spend();
    }
}
