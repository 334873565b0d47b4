//! A delay law for the reference servers: each reply waits until the instant at which a queue of
//! known law would have served its request. The queue is that of the calibrated server, in virtual
//! time; the work of the server itself comes before the wait and is hidden by it.
//!
//! An HTTP and an SMB server hold their replies in [`DelayLaw::hold`], the NFS server in a thread
//! of its own. Whoever waits is awake for the last two milliseconds, so that a reply leaves within
//! some 20 µs of its instant where the server has a core of its own, and later where it has not:
//! the log says how late each was.
//!
//! [`Work`] makes a server slower by a known amount of processor time for each request, so that a
//! generator on the same host finds where its line ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

use crate::ServerError;
use crate::clock::monotonic_ns;
use crate::log::{Log, ROWS_MAX, Row};
pub use crate::station::Passage;
use crate::station::Station;

/// The runtime's timers have steps of a millisecond, and may be one late.
const AWAKE_NS: u64 = 2_000_000;
/// A server that had a request within this time looks for the next without sleeping.
const IDLE_NS: u64 = 1_000_000_000;
/// How often a server without requests sees whether one has come.
const IDLE_LOOK: Duration = Duration::from_millis(1);

/// What to be, beside what the server is.
#[derive(Clone, Debug)]
pub struct DelayConfig {
    /// The queue to be.
    pub spec: CalibratedSpec,
    /// Where to write what happened to each request, at the end; the file is replaced.
    pub log: Option<PathBuf>,
}

/// The queue, shared by all connections of a server.
pub struct DelayLaw {
    config: DelayConfig,
    state: Mutex<State>,
}

struct State {
    station: Station,
    log: Option<Log>,
    last_arrival_ns: u64,
}

impl DelayLaw {
    /// One where a law was asked for.
    pub fn asked(
        spec: Option<&CalibratedSpec>,
        log: Option<&PathBuf>,
    ) -> Result<Option<Arc<Self>>, ServerError> {
        let config = spec.map(|spec| DelayConfig { spec: spec.clone(), log: log.cloned() });
        config.map(|config| Self::new(&config)).transpose()
    }

    /// An empty queue. That the log cannot be written is found out now and not at the end.
    pub fn new(config: &DelayConfig) -> Result<Arc<Self>, ServerError> {
        if let Some(path) = &config.log {
            std::fs::File::create(path)
                .map_err(|source| ServerError::Log { path: path.clone(), source })?;
        }
        let state = State {
            station: Station::new(&config.spec),
            log: config.log.as_ref().map(|_| Log::new(ROWS_MAX)),
            last_arrival_ns: 0,
        };
        Ok(Arc::new(Self { config: config.clone(), state: Mutex::new(state) }))
    }

    /// A request has arrived, now: when its reply leaves.
    pub fn arrive(&self) -> Passage {
        let mut state = self.state();
        // Read under the lock, so that arrivals are in order.
        let now_ns = monotonic_ns();
        state.last_arrival_ns = now_ns;
        state.station.arrive(now_ns)
    }

    /// The reply has been handed to the kernel, or to what does that, at `sent_ns`.
    pub fn sent(&self, passage: Passage, sent_ns: u64) {
        let Passage { arrival_ns, departure_ns } = passage;
        if let Some(log) = &mut self.state().log {
            log.add(Row { arrival_ns, departure_ns, sent_ns, key: None });
        }
    }

    /// Waits until the reply leaves; others have their turn meanwhile.
    pub async fn hold(&self, passage: Passage) {
        loop {
            let left_ns = passage.departure_ns.saturating_sub(monotonic_ns());
            match left_ns {
                0 => return,
                1..=AWAKE_NS => tokio::task::yield_now().await,
                _ => tokio::time::sleep(Duration::from_nanos(left_ns - AWAKE_NS)).await,
            }
        }
    }

    /// Keeps the thread of a runtime awake while requests come, so that none is stamped late
    /// because somebody had to wake up. For servers on cores of their own. Never ends.
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

    /// Writes the log, if one is wanted.
    pub fn write_log(&self) -> Result<(), ServerError> {
        let Some(path) = &self.config.log else { return Ok(()) };
        let state = self.state();
        let Some(log) = &state.log else { return Ok(()) };
        log.write(path, &self.config.spec, state.station.stall())
            .map_err(|source| ServerError::Log { path: path.clone(), source })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for DelayLaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DelayLaw").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Now, on the clock of the log.
pub fn now_ns() -> u64 {
    monotonic_ns()
}

/// Processor time for each request, besides what the server needs for it.
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
    async fn a_reply_is_held_until_its_instant_and_the_log_says_how_late_it_was() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log.csv");
        let spec = "service=const:3ms,servers=1".parse().unwrap();
        let law = DelayLaw::new(&DelayConfig { spec, log: Some(path.clone()) }).unwrap();
        for _ in 0..3 {
            let passage = law.arrive();
            assert_eq!(passage.departure_ns - passage.arrival_ns, 3_000_000);
            law.hold(passage).await;
            let now_ns = now_ns();
            assert!(now_ns >= passage.departure_ns);
            law.sent(passage, now_ns);
        }
        law.write_log().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| !line.starts_with(['#', 'a'])).count(), 3, "{text}");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_refused_at_the_start() {
        let spec = "service=const:1ms".parse().unwrap();
        let config = DelayConfig { spec, log: Some("/nowhere/log.csv".into()) };
        assert!(matches!(DelayLaw::new(&config), Err(ServerError::Log { .. })));
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
