//! When the host stood still: what it alone can have decided is left open.

use plimsoll_model::certificate::Statistic;
use plimsoll_model::event::Times;
use plimsoll_model::units::Nanos;

/// A pause of the host that is no ordinary wakeup.
const PAUSE_MIN: Nanos = Nanos::from_micros(500);
/// With more of the ops than this delayed by pauses, backlogs decide how many are done when.
const PAUSED_MAX_RATIO: f64 = 0.1;

/// With fewer of the ops than this delayed by pauses, a load is offered all the same.
const TOLD_MIN_RATIO: f64 = 0.01;

/// When the host stood still for client or server, as both saw it in this very run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    /// The longest.
    longest: Nanos,
    /// Share of the ops that one of them delayed.
    share: f64,
    /// How much longer its effect lasts, the queue that it leaves having to drain.
    drain: f64,
}

impl Pauses {
    /// Of delays by cause, at this utilisation of the server.
    pub(crate) fn of(delays: &[&Times], utilisation: f64) -> Self {
        let mut pauses = Self { drain: 1.0 / (1.0 - utilisation.min(0.95)), ..Self::default() };
        for times in delays {
            let paused = times.len() - times.count_between(0, PAUSE_MIN.0).min(times.len());
            if paused > 0 {
                pauses.longest = pauses.longest.max(Nanos(times.max()));
                pauses.share += paused as f64 / times.len() as f64;
            }
        }
        pauses
    }

    /// The longest, in words.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "the host took generator or server off their cores for up to {}, which delayed {:.1} % \
             of the ops",
            self.longest,
            self.share.min(1.0) * 100.0
        )
    }

    /// Ops at a rate that the longest may push over the edge of a window.
    pub(crate) fn ops(&self, rate_ops_per_s: f64) -> f64 {
        self.longest.as_secs_f64() * rate_ops_per_s
    }

    /// Are there enough to keep a load of a few clients from being offered?
    pub(crate) fn are_told(&self) -> bool {
        self.share > TOLD_MIN_RATIO
    }

    /// Are there so many that backlogs decide how many ops are done when?
    pub(crate) fn decide_counts(&self) -> bool {
        self.share > PAUSED_MAX_RATIO
    }

    /// Share of the ops that they may have delayed, those in the queues that they left included.
    pub(crate) fn touched(&self) -> f64 {
        self.share * self.drain * 2.0
    }

    /// May they alone have moved a statistic by so much?
    pub(crate) fn decide(&self, statistic: Statistic, excess: Nanos) -> bool {
        let touched = self.touched();
        // On a host that hardly ever runs them nothing is decided by anybody else.
        if self.decide_counts() {
            return true;
        }
        match statistic.share() {
            None => excess.as_secs_f64() <= touched * self.longest.as_secs_f64(),
            Some(share) => {
                let queued_s = self.longest.as_secs_f64() * self.drain;
                touched * 2.0 >= 1.0 - share && excess.as_secs_f64() <= queued_s
            }
        }
    }
}

#[cfg(test)]
pub(crate) fn lags(samples: &[(u64, u32)]) -> Times {
    let mut times = plimsoll_model::event::new_times();
    for (lag_us, count) in samples {
        times.record_n(lag_us * 1_000, *count).unwrap();
    }
    times
}
