//! How long a try of the search for a capacity lasts.

use plimsoll_model::assignment::{Phases, Purpose};
use plimsoll_model::capacity::CapacityRequest;
use plimsoll_model::suite::{Profile, ProfileName};
use plimsoll_model::units::Nanos;

/// Probes of the longer profiles: long enough for a percentile, short enough to take many.
const PROBE_WARM_UP_MAX: Nanos = Nanos::from_secs(5);
const PROBE_MEASURE_MAX: Nanos = Nanos::from_secs(20);
/// Re-runs last as long as a point of the ladder, but shorter than the minutes that published
/// methods use.
const RERUN_WARM_UP_MAX: Nanos = Nanos::from_secs(30);
const RERUN_MEASURE_MAX: Nanos = Nanos::from_secs(120);
/// A quick re-run lasts this many quick windows: a percentile needs the blocks.
const QUICK_RERUN_WINDOWS: u64 = 2;
/// Limits of quick windows for suites whose ops take seconds. With their usual longer windows a
/// search would not end within four minutes: twenty steps must fit.
const QUICK_MEASURE_MAX: Nanos = Nanos::from_secs(4);
const QUICK_RERUN_MAX: Nanos = Nanos::from_secs(6);

/// Timings of a try. If a think time is given, the warm-up lasts at least that long.
pub(super) fn phases(
    name: ProfileName,
    profile: &Profile,
    capacity: &CapacityRequest,
    purpose: Purpose,
) -> Phases {
    let quick = matches!(name, ProfileName::Quick | ProfileName::Demo);
    let rerun = purpose == Purpose::Verify;
    let (warm_up, measure) = match (quick, rerun) {
        (true, false) => (profile.warm_up, profile.measure.min(QUICK_MEASURE_MAX)),
        (true, true) => {
            let windows = Nanos(profile.measure.0 * QUICK_RERUN_WINDOWS);
            (profile.warm_up, windows.min(QUICK_RERUN_MAX))
        }
        (false, false) => {
            (profile.warm_up.min(PROBE_WARM_UP_MAX), profile.measure.min(PROBE_MEASURE_MAX))
        }
        (false, true) => {
            (profile.warm_up.min(RERUN_WARM_UP_MAX), profile.measure.min(RERUN_MEASURE_MAX))
        }
    };
    Phases {
        warm_up_ns: warm_up.max(capacity.think.unwrap_or_default()),
        measure_ns: measure,
        ramp_down_ns: Nanos::ZERO,
        drain_ns: profile.drain,
        ops: None,
    }
}
