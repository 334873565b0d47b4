//! Who had a worker's core when the worker wanted it: the worker itself, another thread of this
//! program, another process, or the hypervisor.

use plimsoll_model::event::{CoreUser, CoreUserKind};
use plimsoll_model::result::Finding;
use plimsoll_model::units::Nanos;

use super::host::mean;
use super::{Evidence, finding, percent};
use crate::health::{busy_ratio_max, gaps, run_delay_ratio_max};

/// A hundredth of the time lost is enough to make one op in a hundred late.
const TAKEN_MIN_RATIO: f64 = 0.01;
/// Below it a worker has time to spare.
const BUSY_RATIO: f64 = 0.5;

/// What to do about a generator that is slow or late, by who had its core.
pub(super) fn remedy(e: &Evidence<'_>) -> String {
    if let Some(who) = taken_by(e) {
        return who;
    }
    match busy_ratio_max(e.view.record).is_some_and(|busy| busy < BUSY_RATIO) {
        true => "the worker had its core and was not busy: it woke late; use --pacing spin, or a \
                 host that sleeps less deeply"
            .to_owned(),
        false => "add a worker or a core, or lower the load".to_owned(),
    }
}

/// A worker's core was taken for more than a tenth of the time: worth saying even where every
/// figure carries what came of it.
pub(super) fn core_taken(e: &Evidence<'_>) -> Option<Finding> {
    const SAID_MIN_RATIO: f64 = 0.1;
    run_delay_ratio_max(e.view.record).filter(|ratio| *ratio >= SAID_MIN_RATIO)?;
    let who = taken_by(e)?;
    finding("core_taken", format!("{who}; what it delayed is in the intervals of the figures"))
}

fn taken_by(e: &Evidence<'_>) -> Option<String> {
    let record = e.view.record;
    let delayed = run_delay_ratio_max(record).filter(|ratio| *ratio >= TAKEN_MIN_RATIO);
    if let Some(ratio) = delayed {
        return Some(by_a_thread(e, ratio));
    }
    if let Some(stolen) = mean(e, "host.cpu_steal").filter(|ratio| *ratio >= TAKEN_MIN_RATIO) {
        return Some(format!(
            "the hypervisor kept {} of the processors' time: measure on a host that has its own",
            percent(stolen)
        ));
    }
    let (ratio, longest) = gaps(record).filter(|(ratio, _)| *ratio >= TAKEN_MIN_RATIO)?;
    Some(format!(
        "the worker's core was paused below the system for {} of the time, {} at the longest, as \
         a hypervisor does: measure on a host of your own",
        percent(ratio),
        Nanos(longest),
    ))
}

fn by_a_thread(e: &Evidence<'_>, delayed_ratio: f64) -> String {
    let window_ns = e.view.record.measured_ns.0.max(1) as f64;
    let users = e.view.record.core_users.as_deref().unwrap_or_default();
    let largest = users.iter().max_by_key(|user| user.cpu_ns);
    let share = |cpu_ns: u64| cpu_ns as f64 / window_ns;
    // The kernel counts in ticks: over a short window that says nothing.
    let largest = largest.filter(|_| !e.window_is_short());
    match largest.filter(|user| share(user.cpu_ns) >= TAKEN_MIN_RATIO / 2.0) {
        Some(user) => by_this(user, &percent(share(user.cpu_ns))),
        None => format!(
            "other programs had a worker's core for {} of the time: end them or keep them off it",
            percent(delayed_ratio)
        ),
    }
}

/// Who it was, and what can be done about one of that kind.
fn by_this(user: &CoreUser, share: &str) -> String {
    let CoreUser { name, pid, .. } = user;
    let had = format!("had a worker's core for {share} of the time");
    match user.kind() {
        CoreUserKind::Own => {
            format!("other threads of this program {had}: give it another core")
        }
        CoreUserKind::Server => format!(
            "the server itself ({name}, process {pid}) {had}: give them different cores (taskset) \
             or hosts, or lower the load"
        ),
        CoreUserKind::Kernel => format!(
            "{name}, a thread of the kernel, {had}. It cannot be ended. Move interrupts to another \
             core (/proc/irq/*/smp_affinity, irqbalance), or start Plimsoll on other cores \
             (taskset)"
        ),
        CoreUserKind::Other => {
            format!("{name} (process {pid}) {had}: end it or keep it off that core")
        }
    }
}
