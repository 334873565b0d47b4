//! Who had a worker's core when the worker wanted it: the worker itself, another thread of this
//! program, another process, or the hypervisor.

use plimsoll_model::event::CoreUser;
use plimsoll_model::finding::{Rule, WorkerCore};
use plimsoll_model::units::Nanos;

use super::Evidence;
use super::host::mean;
use crate::health::{busy_ratio_max, gaps, run_delay_ratio_max};

/// A hundredth of the time lost is enough to make one op in a hundred late.
const TAKEN_MIN_RATIO: f64 = 0.01;
/// A core that was taken for this part of the time is worth saying even where every figure carries
/// what came of it.
const SAID_MIN_RATIO: f64 = 0.1;
/// Below it a worker has time to spare.
const BUSY_RATIO: f64 = 0.5;

/// What became of the core of a worker that is slow or late.
pub(super) fn worker_core(e: &Evidence<'_>) -> WorkerCore {
    let idle = || busy_ratio_max(e.view.record).is_some_and(|busy| busy < BUSY_RATIO);
    match taken_by(e) {
        Some(core) => core,
        None if idle() => WorkerCore::Slept,
        None => WorkerCore::UsedUp,
    }
}

/// A worker's core was taken for more than a tenth of the time.
pub(super) fn core_taken(e: &Evidence<'_>) -> Option<Rule> {
    run_delay_ratio_max(e.view.record).filter(|ratio| *ratio >= SAID_MIN_RATIO)?;
    Some(Rule::CoreTaken { core: taken_by(e)? })
}

fn taken_by(e: &Evidence<'_>) -> Option<WorkerCore> {
    let record = e.view.record;
    let delayed = run_delay_ratio_max(record).filter(|ratio| *ratio >= TAKEN_MIN_RATIO);
    if let Some(ratio) = delayed {
        return Some(by_a_thread(e, ratio));
    }
    if let Some(ratio) = mean(e, "host.cpu_steal").filter(|ratio| *ratio >= TAKEN_MIN_RATIO) {
        return Some(WorkerCore::Stolen { ratio });
    }
    let (ratio, longest) = gaps(record).filter(|(ratio, _)| *ratio >= TAKEN_MIN_RATIO)?;
    Some(WorkerCore::Paused { ratio, longest_ns: Nanos(longest) })
}

fn by_a_thread(e: &Evidence<'_>, delayed_ratio: f64) -> WorkerCore {
    let window_ns = e.view.record.measured_ns.0.max(1) as f64;
    let users = e.view.record.core_users.as_deref().unwrap_or_default();
    let largest = users.iter().max_by_key(|user| user.cpu_ns);
    let share = |user: &CoreUser| user.cpu_ns as f64 / window_ns;
    // The kernel counts in ticks: over a short window that says nothing.
    let largest = largest.filter(|_| !e.window_is_short());
    match largest.filter(|user| share(user) >= TAKEN_MIN_RATIO / 2.0) {
        Some(user) => WorkerCore::Taken { ratio: share(user), user: user.clone() },
        None => WorkerCore::TakenByUnknown { ratio: delayed_ratio },
    }
}
