//! Signs that point at a known cause ([`Hint`]). A sign needs the times and, where the kernel
//! counts what causes them, that its counter rose by as much. Strict: a hint that is wrong costs
//! its reader more than one that is missing.

mod pauses;
mod places;
#[cfg(test)]
mod tests;
mod timers;

use plimsoll_model::event::{OpTimes, PointRecord};
use plimsoll_model::hint::{Hint, RunHint};
use plimsoll_model::result::PointResult;

/// What the hints of one load point are told from.
pub(crate) struct Seen<'a> {
    pub(crate) record: &'a PointRecord,
    /// Of all ops due in the window.
    pub(crate) times: &'a OpTimes,
}

impl Seen<'_> {
    fn seconds(&self) -> f64 {
        self.record.measured_ns.as_secs_f64()
    }

    /// By how much a counter of the generator's host rose in the window; `None` where nobody read
    /// it.
    fn rose(&self, name: &str) -> Option<f64> {
        let resources = self.record.resources.iter();
        let mut own = resources.filter(|it| it.source.is_none() && it.name == name);
        own.next().map(|it| it.mean * self.seconds())
    }

    /// The same of the watched host on which it rose most.
    fn rose_anywhere(&self, name: &str) -> Option<u64> {
        let resources = self.record.resources.iter().filter(|it| it.name == name);
        let rates = resources.map(|it| it.mean);
        rates.reduce(f64::max).map(|rate| (rate * self.seconds()).round() as u64)
    }
}

/// The hints of one load point. One cause is told once.
pub(crate) fn hints_of_point(seen: &Seen<'_>) -> Vec<Hint> {
    let syn = timers::syn_retransmitted(seen);
    let connects = match syn {
        // Waits for the accept queue explain these as well.
        Some(_) => [syn, None],
        None => [timers::retransmitted(seen), places::slow_new_connections(seen)],
    };
    let others = [timers::delayed_ack(seen), places::slow_target(seen), pauses::even_pauses(seen)];
    connects.into_iter().chain(others).flatten().collect()
}

/// The hints of all points, each kind once, as the point shows it that shows it most.
pub(crate) fn hints_of_run(points: &[PointResult]) -> Vec<RunHint> {
    let mut all: Vec<RunHint> = Vec::new();
    for point in points {
        for hint in &point.hints {
            match all.iter_mut().find(|known| known.hint.is_same_kind(hint)) {
                Some(known) => {
                    known.points.push(point.position);
                    if hint.strength() > known.hint.strength() {
                        known.hint = hint.clone();
                    }
                }
                None => all.push(RunHint { points: vec![point.position], hint: hint.clone() }),
            }
        }
    }
    all
}
