//! Clocks of hosts: monotonic ones that began at different times and drift, wall clocks that step.

use plimsoll_model::units::Nanos;

use super::random::Random;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
const HOURS: u64 = 3_600 * SECOND;
const DRIFT_PPB_MAX: u64 = 200_000;

/// True time is in nanoseconds from the start of the simulation.
pub struct Clock {
    boot_ns: u64,
    drift_ppb: i64,
    /// True instants and by how much the wall clock steps.
    steps: Vec<(u64, i64)>,
}

impl Clock {
    pub fn any(random: &mut Random) -> Self {
        let step = |random: &mut Random| {
            let by = random.between(0, 4 * HOURS) as i64 - 2 * HOURS as i64;
            (random.between(0, 120 * SECOND), by)
        };
        let steps = (0..random.between(0, 2)).map(|_| step(random)).collect();
        Self {
            boot_ns: random.between(0, 9 * HOURS),
            drift_ppb: random.between(0, 2 * DRIFT_PPB_MAX) as i64 - DRIFT_PPB_MAX as i64,
            steps,
        }
    }

    /// The monotonic clock.
    pub fn shows(&self, at: u64) -> Nanos {
        let drift = i128::from(at) * i128::from(self.drift_ppb) / 1_000_000_000;
        Nanos((i128::from(self.boot_ns) + i128::from(at) + drift) as u64)
    }

    /// The first instant at which the monotonic clock shows `time` or later.
    pub fn when(&self, time: Nanos) -> u64 {
        let since = i128::from(time.0.saturating_sub(self.boot_ns));
        let guess = since * 1_000_000_000 / (1_000_000_000 + i128::from(self.drift_ppb));
        let mut at = (guess as u64).saturating_sub(2);
        while self.shows(at) < time {
            at += 1;
        }
        at
    }

    /// By how much the wall clock moved against the monotonic one.
    pub fn stepped_ns(&self, from: u64, to: u64) -> i64 {
        let within = self.steps.iter().filter(|(at, _)| (from..to).contains(at));
        within.map(|(_, by)| by).sum()
    }
}
