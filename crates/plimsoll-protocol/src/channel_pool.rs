//! Several channels at work on one server, with one report of their progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use plimsoll_model::units::Bytes;

use crate::net::{GoOn, OnProgress, SetupError, SetupProgress};

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

/// Progress of all jobs, for the caller.
#[derive(Debug, Default)]
pub struct Tally {
    /// Steps done.
    pub done: AtomicU64,
    /// Bytes written.
    pub bytes: AtomicU64,
}

impl Tally {
    /// One step more.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// What the caller hears while jobs are done.
pub struct Report<'a, 'p> {
    /// Who counts.
    pub tally: &'a Tally,
    /// In two or three words.
    pub doing: &'static str,
    /// Steps in all.
    pub total: u64,
    /// Who hears it.
    pub progress: &'a mut OnProgress<'p>,
}

impl Report<'_, '_> {
    fn notify(&mut self) -> GoOn {
        (self.progress)(SetupProgress {
            doing: self.doing,
            done: self.tally.done.load(Ordering::Relaxed),
            total: self.total,
            bytes: Bytes(self.tally.bytes.load(Ordering::Relaxed)),
        })
    }
}

impl<C> ChannelPool<'_, C> {
    /// Does all jobs and answers with their results in the order of the jobs.
    pub fn collect<J: Sync, R: Send>(
        &self,
        jobs: &[J],
        each: impl Fn(&mut C, &J) -> Result<R, SetupError> + Sync,
        report: Report<'_, '_>,
    ) -> Result<Vec<R>, SetupError> {
        let mut results: Vec<Option<R>> = jobs.iter().map(|_| None).collect();
        let on_done = |at: usize, result| {
            results[at] = Some(result);
            Ok(())
        };
        self.work(jobs, each, on_done, report)?;
        Ok(results.into_iter().flatten().collect())
    }

    /// Does all jobs, each on one channel, in about their order; `on_done` hears which has ended
    /// with what. The first failure, or a stop, ends all within a tenth of a second.
    pub fn work<J: Sync, R: Send>(
        &self,
        jobs: &[J],
        each: impl Fn(&mut C, &J) -> Result<R, SetupError> + Sync,
        mut on_done: impl FnMut(usize, R) -> Result<(), SetupError>,
        mut report: Report<'_, '_>,
    ) -> Result<(), SetupError> {
        let stop = Arc::new(AtomicBool::new(false));
        let bench = Bench { jobs, next: AtomicUsize::new(0), each, stop: &stop };
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..self.channels.max(1).min(jobs.len()) {
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
            oversee(&receiver, &stop, &mut on_done, &mut report)
        })?;
        // Reports the last figures; the caller's answer no longer matters.
        let _: GoOn = report.notify();
        Ok(())
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
    on_done: &mut impl FnMut(usize, R) -> Result<(), SetupError>,
    report: &mut Report<'_, '_>,
) -> Result<(), SetupError> {
    let mut failure = None;
    loop {
        let ended = match receiver.recv_timeout(TICK) {
            Ok(Ok((at, result))) if failure.is_none() => on_done(at, result),
            // A stopped channel may end before the channel whose failure stopped it.
            Ok(Ok(_) | Err(SetupError::Stopped)) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Disconnected) => return failure.map_or(Ok(()), Err),
        };
        let ended = match ended {
            Ok(()) if failure.is_none() && report.notify() == GoOn::No => Err(SetupError::Stopped),
            other => other,
        };
        if let Err(error) = ended {
            stop.store(true, Ordering::Relaxed);
            // Later failures follow from the first.
            failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_the_last_figures_are_told() {
        let tally = Tally::default();
        let mut last = None;
        let mut progress = |at| {
            last = Some(at);
            GoOn::Yes
        };
        let each = |(): &mut (), job: &u64| {
            tally.step();
            tally.bytes.fetch_add(*job, Ordering::Relaxed);
            Ok(job * 2)
        };
        let jobs: Vec<u64> = (0..100).collect();
        let pool = ChannelPool { open: &|_| Ok(()), channels: 3 };
        let report =
            Report { tally: &tally, doing: "doubling", total: 100, progress: &mut progress };
        let results = pool.collect(&jobs, each, report);
        assert_eq!(results.unwrap(), (0..100).map(|n| n * 2).collect::<Vec<_>>());
        let (done, bytes) = (100, Bytes(99 * 50));
        assert_eq!(last, Some(SetupProgress { doing: "doubling", done, total: 100, bytes }));
        let none = ChannelPool { open: &|_| panic!("for nothing"), channels: 3 };
        let progress = &mut |_| GoOn::No;
        let report = Report { tally: &tally, doing: "doubling", total: 0, progress };
        none.collect(&[], each, report).unwrap();
    }

    #[test]
    fn the_reason_is_told_also_when_a_channel_that_heard_of_it_speaks_first() {
        let (sender, receiver) = mpsc::channel();
        sender.send(Err(SetupError::Stopped)).unwrap();
        sender.send(Err(SetupError::Unusable("disk full".to_owned()))).unwrap();
        sender.send(Err(SetupError::Stopped)).unwrap();
        drop(sender);
        let stop = AtomicBool::new(false);
        let (tally, progress) = (&Tally::default(), &mut |_| GoOn::Yes);
        let mut report = Report { tally, doing: "waiting", total: 0, progress };
        let ended = oversee(&receiver, &stop, &mut |_, ()| Ok(()), &mut report);
        assert!(
            matches!(&ended, Err(SetupError::Unusable(why)) if why == "disk full"),
            "{ended:?}"
        );
        assert!(stop.into_inner());
    }
}
