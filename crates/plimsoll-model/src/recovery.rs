//! Whether a server recovers from a pulse: the request, and what was observed. A server that stays
//! slow after a pulse has ended has a metastable failure: its own retries or queues keep it there.

use serde::{Deserialize, Serialize};

use crate::load_shape::{LoadShape, ShapeError};
use crate::named::named;
use crate::units::{Nanos, span_text};

/// The load is as before when it was so for this long, or as long as the pulse if that is longer.
const SPAN_MIN: Nanos = Nanos::from_secs(10);
/// A pulse is watched this many times as long as a healthy queue needs …
const WATCH_DRAINS: f64 = 3.0;
/// … and at least this long …
const WATCH_MIN: Nanos = Nanos::from_secs(30);
/// … or this many times as long as the pulse …
const WATCH_PULSES: u64 = 3;
/// … but not longer.
const WATCH_MAX: Nanos = Nanos::from_secs(600);

/// How long the figures must be as before for a pulse of this length.
pub fn span_of(pulse: Nanos) -> Nanos {
    pulse.max(SPAN_MIN)
}

/// How long a queue that loses nothing needs after a pulse of `pulse` × `ratio` × capacity before
/// it is empty again: what came too much, by what capacity is left over. `None` where none is left
/// over.
pub fn healthy_drain(ratio: f64, pulse: f64, length: Nanos) -> Option<Nanos> {
    let excess = (pulse * ratio - 1.0).max(0.0) * length.as_secs_f64();
    (ratio < 1.0).then(|| Nanos::from_secs_f64(excess / (1.0 - ratio)))
}

/// A load around a pulse, relative to the highest that the server sustains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoverRequest {
    /// The load before and after the pulse.
    pub at: RecoverLoad,
    /// How many times that load the pulse is.
    pub pulse: f64,
    /// Length of the pulse.
    pub pulse_for_ns: Nanos,
    /// Length of the load before the pulse.
    pub before_ns: Nanos,
    /// Length of the load after it; absent for what follows from the time a healthy queue needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_ns: Option<Nanos>,
}

/// A load in ops/s or sessions/s, or a share of the highest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoverLoad {
    /// This part of the peak.
    Ratio(f64),
    /// As many per second.
    PerSecond(f64),
}

impl RecoverRequest {
    /// The shape of the load on a server with this peak, if that is known.
    ///
    /// # Errors
    /// If a load or a length is out of bounds, or depends on a peak that is not known.
    pub fn shape(&self, peak: Option<f64>) -> Result<LoadShape, ShapeError> {
        let load = match self.at {
            RecoverLoad::Ratio(ratio) => ratio * peak.unwrap_or_default(),
            RecoverLoad::PerSecond(load) => load,
        };
        // Fractions of an op are noise where there are hundreds.
        let load = if load >= 100.0 { load.floor() } else { (load * 100.0).floor() / 100.0 };
        let drain = match peak {
            Some(peak) => {
                healthy_drain(load / peak, self.pulse, self.pulse_for_ns).unwrap_or(WATCH_MAX)
            }
            None => Nanos::ZERO,
        };
        let watch = self.watch_ns.unwrap_or_else(|| {
            let drains = drain.as_secs_f64() * WATCH_DRAINS;
            let pulses = Nanos(self.pulse_for_ns.0.saturating_mul(WATCH_PULSES));
            // In whole seconds, the resolution of the figures.
            Nanos::from_secs(drains.ceil() as u64).max(WATCH_MIN).max(pulses).min(WATCH_MAX)
        });
        let [before, pulse_for, watch] = [self.before_ns, self.pulse_for_ns, watch].map(span_text);
        let text = format!(
            "hold {load} for {before}, pulse {}x for {pulse_for}, hold {watch}",
            self.pulse
        );
        LoadShape::parse(&text, None)
    }
}

named! {
    /// What became of the server after a pulse.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum RecoveryOutcome {
        /// Goodput and response times were as before again.
        Recovered = "recovered",
        /// They were not, for as long as it was watched.
        NotRecovered = "not_recovered",
        /// No hold comes before the pulse, or it is too short to compare with.
        NoHoldBefore = "no_hold_before",
        /// The load after the pulse is not that before, or not for long enough.
        NoHoldAfter = "no_hold_after",
        /// The server did not sustain the load before the pulse.
        NotSustainedBefore = "not_sustained_before",
    }
}

impl RecoveryOutcome {
    /// The server did not come back, or it is not known.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Recovered)
    }
}

/// Figures of a time before, in or after a pulse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoverySpan {
    /// Ops that ended well, per second.
    pub goodput_ops_per_s: f64,
    /// The percentile of the response time; absent where too few ops ended.
    pub response_ns: Option<f64>,
}

/// What a pulse did, and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Position of the pulse among the load points.
    pub pulse: u32,
    /// What became of the server.
    pub outcome: RecoveryOutcome,
    /// From the end of the pulse to the first instant from which on goodput and response times were
    /// as before for `span_ns`; absent if that was not observed.
    pub recovered_after_ns: Option<Nanos>,
    /// How long the load before the pulse was requested after it.
    pub watched_ns: Nanos,
    /// How long figures must be as before.
    pub span_ns: Nanos,
    /// How long a healthy queue needs; absent where the server's capacity is not known.
    pub healthy_drain_ns: Option<Nanos>,
    /// Load before and after the pulse, on the axis.
    pub load: f64,
    /// Load of the pulse.
    pub pulse_load: f64,
    /// Length of the pulse.
    pub pulse_ns: Nanos,
    /// Which percentile of the response time is compared: `p99`, or a lower one where a span has
    /// too few ops.
    pub percentile: String,
    /// Lowest goodput that counts as before.
    pub goodput_low_ops_per_s: f64,
    /// Highest response time that counts as before.
    pub response_high_ns: Option<f64>,
    /// In the hold before the pulse.
    pub before: RecoverySpan,
    /// In the pulse.
    pub during: RecoverySpan,
    /// In the last span that was watched.
    pub after: RecoverySpan,
    /// Most ops that were due and had not ended at the end of a second, from the begin of the
    /// pulse.
    pub outstanding_ops_max: Option<u64>,
    /// What resources of the server did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<RecoveryResource>,
    /// For a person.
    #[serde(default)]
    pub text: String,
}

/// Mean use of a resource of the server, around a pulse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecoveryResource {
    /// As among the resources of a load point.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// In the hold before the pulse.
    pub before: f64,
    /// In the pulse.
    pub during: Option<f64>,
    /// In the load point after it.
    pub after: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_queue_needs_what_came_too_much_over_what_is_left() {
        let seconds = |ratio, pulse| {
            healthy_drain(ratio, pulse, Nanos::from_secs(10)).map(|it| it.as_secs_f64().round())
        };
        assert_eq!(seconds(0.8, 2.0), Some(30.0));
        assert_eq!(seconds(0.3, 2.0), Some(0.0), "the pulse is below capacity");
        assert_eq!(seconds(1.0, 2.0), None);
    }

    #[test]
    fn a_pulse_is_watched_three_times_as_long_as_a_healthy_queue_needs() {
        let request = RecoverRequest {
            at: RecoverLoad::Ratio(0.8),
            pulse: 2.0,
            pulse_for_ns: Nanos::from_secs(10),
            before_ns: Nanos::from_secs(30),
            watch_ns: None,
        };
        let lengths = |request: RecoverRequest| {
            let shape = request.shape(Some(1_000.0)).unwrap();
            let phases = shape.phases.iter();
            phases.map(|it| (it.mean as u32, it.length_ns.0 / 1_000_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(lengths(request), [(800, 30), (1_600, 10), (800, 90)]);
        let low = RecoverRequest { at: RecoverLoad::PerSecond(100.0), ..request };
        assert_eq!(lengths(low)[2], (100, 30));
        assert_eq!(low.shape(None).unwrap().phases[2].length_ns, Nanos::from_secs(30));
        assert!(request.shape(None).is_err());
        let high = RecoverRequest { at: RecoverLoad::Ratio(0.99), ..request };
        assert_eq!(lengths(high)[2], (990, 600), "ten minutes at most");
    }
}
