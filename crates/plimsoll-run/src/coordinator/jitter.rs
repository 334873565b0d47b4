//! Measures the jitter of the workers' cores once, before the first load point.

use std::sync::{Mutex, PoisonError};
use std::thread;

use plimsoll_engine::jitter::{CoreJitter, INTERRUPTION_NS_MIN, poll_core};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::suite::Profile;
use plimsoll_model::units::Nanos;

/// Longest time that each core is polled.
const POLLED_MAX: Nanos = Nanos::from_secs(1);
/// Measured time of a load point per polled time.
const MEASURED_PER_POLLED: u64 = 12;

/// The pauses of each core, for the disclosure. Each core is polled once per process; one that
/// cannot be polled has no setting.
pub(super) fn settings(cores: &[u32], profile: &Profile) -> Vec<Setting> {
    static POLLED: Mutex<Vec<(u32, CoreJitter)>> = Mutex::new(Vec::new());
    let span = POLLED_MAX.min(Nanos(profile.measure.0 / MEASURED_PER_POLLED));
    let mut polled = POLLED.lock().unwrap_or_else(PoisonError::into_inner);
    let new: Vec<u32> = cores
        .iter()
        .copied()
        .filter(|core| polled.iter().all(|(other, _)| other != core))
        .collect();
    polled.extend(poll(&new, span));
    let of = |core: &u32| Some(setting(*core, &polled.iter().find(|(other, _)| other == core)?.1));
    cores.iter().filter_map(of).collect()
}

/// Polls all cores at the same time.
fn poll(cores: &[u32], span: Nanos) -> Vec<(u32, CoreJitter)> {
    thread::scope(|scope| {
        let polling: Vec<_> =
            cores.iter().map(|&core| (core, scope.spawn(move || poll_core(core, span)))).collect();
        polling
            .into_iter()
            .filter_map(|(core, polled)| Some((core, polled.join().ok()?.ok()?)))
            .collect()
    })
}

fn setting(core: u32, jitter: &CoreJitter) -> Setting {
    let polled = Nanos(jitter.polled_ns);
    let text = match jitter.interruptions {
        0 => format!("none above {} in {polled} of polling", Nanos(INTERRUPTION_NS_MIN)),
        _ => format!(
            "{:.2} % of {polled} of polling, longest {}",
            jitter.ratio() * 100.0,
            Nanos(jitter.interruption_ns_max)
        ),
    };
    Setting::new(format!("core {core}'s own pauses"), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_of_a_core_are_told_as_a_share_and_the_longest() {
        let jitter = CoreJitter {
            polled_ns: 1_000_000_000,
            interruptions: 3,
            interrupted_ns: 2_100_000,
            interruption_ns_max: 1_300_000,
        };
        let disclosed = setting(4, &jitter);
        assert_eq!(disclosed.name, "core 4's own pauses");
        assert_eq!(disclosed.value, "0.21 % of 1.00 s of polling, longest 1.30 ms");
        let quiet = CoreJitter { polled_ns: 250_000_000, ..CoreJitter::default() };
        assert_eq!(setting(0, &quiet).value, "none above 100 µs in 250 ms of polling");
    }
}
