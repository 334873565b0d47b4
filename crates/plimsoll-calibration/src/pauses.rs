//! Pauses of the host. A judgement that they alone can have broken is left open.

use plimsoll_model::event::Times;
use plimsoll_model::units::Nanos;

/// Shorter delays are ordinary wakeups.
const PAUSE_MIN: Nanos = Nanos::from_micros(500);

/// Pauses of the host, as client and server recorded them in the same run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    longest: Nanos,
    /// Share of the ops that one of them delayed.
    share: f64,
    /// How many times as long its effect lasts: the queue behind it has to drain.
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

    /// Ops of a load that the longest pause can move out of the window.
    pub(crate) fn ops(&self, rate_ops_per_s: f64) -> f64 {
        self.longest.as_secs_f64() * rate_ops_per_s
    }

    /// Share of the ops that they can have delayed, with those in the queues behind them.
    pub(crate) fn touched(&self) -> f64 {
        self.share * self.drain * 2.0
    }

    /// How much longer they can have made an op, with the queue behind them.
    pub(crate) fn longest_s(&self) -> f64 {
        self.longest.as_secs_f64() * self.drain
    }

    /// How much longer they can have made the mean of all ops.
    pub(crate) fn mean_s(&self) -> f64 {
        self.touched() * self.longest.as_secs_f64()
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
