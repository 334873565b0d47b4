//! Several channels at work on one server, and one place that hears how far they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::net::{GoOn, SetupError};

/// How often the caller is asked whether to go on.
const TICK: Duration = Duration::from_millis(50);

/// Opens a channel, which ends what it does soon after the flag is raised.
pub type Open<'a, C> = &'a (dyn Fn(&Arc<AtomicBool>) -> Result<C, SetupError> + Sync);

/// Channels to one server.
pub struct ChannelPool<'a, C> {
    /// Opens one.
    pub open: Open<'a, C>,
    /// How many, at most one per job.
    pub channels: usize,
}

/// What the one place does with results.
pub trait Overseer<R> {
    /// Job `at` has ended.
    fn on_done(&mut self, at: usize, result: R) -> Result<(), SetupError>;
    /// Called several times a second.
    fn tick(&mut self) -> GoOn;
}

impl<C> ChannelPool<'_, C> {
    /// Does all jobs, each on one channel, in about their order. The first failure, or a stop,
    /// ends all within a tenth of a second.
    pub fn work<J: Sync, R: Send>(
        &self,
        jobs: &[J],
        each: impl Fn(&mut C, &J) -> Result<R, SetupError> + Sync,
        overseer: &mut impl Overseer<R>,
    ) -> Result<(), SetupError> {
        let stop = Arc::new(AtomicBool::new(false));
        let bench = Bench { jobs, next: AtomicUsize::new(0), each, stop: &stop };
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..self.channels.clamp(1, jobs.len().max(1)) {
                let (bench, sender) = (&bench, sender.clone());
                scope.spawn(move || {
                    if let Err(error) = self.one_channel(bench, &sender) {
                        bench.stop.store(true, Ordering::Relaxed);
                        // Nobody listens only when all has ended.
                        let _ = sender.send(Err(error));
                    }
                });
            }
            drop(sender);
            oversee(&receiver, &stop, overseer)
        })
    }

    fn one_channel<J, R, F: Fn(&mut C, &J) -> Result<R, SetupError>>(
        &self,
        bench: &Bench<'_, J, F>,
        sender: &Sender<Result<(usize, R), SetupError>>,
    ) -> Result<(), SetupError> {
        let mut channel = (self.open)(bench.stop)?;
        loop {
            if bench.stop.load(Ordering::Relaxed) {
                return Err(SetupError::Stopped);
            }
            let at = bench.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = bench.jobs.get(at) else { return Ok(()) };
            let result = (bench.each)(&mut channel, job)?;
            if sender.send(Ok((at, result))).is_err() {
                return Ok(());
            }
        }
    }
}

/// What lies before all channels.
struct Bench<'b, J, F> {
    jobs: &'b [J],
    next: AtomicUsize,
    each: F,
    stop: &'b Arc<AtomicBool>,
}

fn oversee<R>(
    receiver: &Receiver<Result<(usize, R), SetupError>>,
    stop: &AtomicBool,
    overseer: &mut impl Overseer<R>,
) -> Result<(), SetupError> {
    let mut failure = None;
    loop {
        let ended = match receiver.recv_timeout(TICK) {
            Ok(Ok((at, result))) if failure.is_none() => overseer.on_done(at, result),
            // A channel that was told to stop says so, perhaps before the one that made it stop
            // has said why.
            Ok(Ok(_) | Err(SetupError::Stopped)) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Disconnected) => return failure.map_or(Ok(()), Err),
        };
        let ended = match ended {
            Ok(()) if failure.is_none() && overseer.tick() == GoOn::No => Err(SetupError::Stopped),
            other => other,
        };
        if let Err(error) = ended {
            stop.store(true, Ordering::Relaxed);
            // What follows the first failure follows from it.
            failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Patient;

    impl Overseer<()> for Patient {
        fn on_done(&mut self, _: usize, (): ()) -> Result<(), SetupError> {
            Ok(())
        }

        fn tick(&mut self) -> GoOn {
            GoOn::Yes
        }
    }

    #[test]
    fn the_reason_is_told_also_when_a_channel_that_heard_of_it_speaks_first() {
        let (sender, receiver) = mpsc::channel();
        sender.send(Err(SetupError::Stopped)).unwrap();
        sender.send(Err(SetupError::Unusable("disk full".to_owned()))).unwrap();
        sender.send(Err(SetupError::Stopped)).unwrap();
        drop(sender);
        let stop = AtomicBool::new(false);
        let ended = oversee(&receiver, &stop, &mut Patient);
        assert!(
            matches!(&ended, Err(SetupError::Unusable(why)) if why == "disk full"),
            "{ended:?}"
        );
        assert!(stop.into_inner());
    }
}
