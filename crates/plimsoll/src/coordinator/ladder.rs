//! Which load points a run has.

use plimsoll_analysis::search::{PeakSearchConfig, SearchStep};
use plimsoll_model::assignment::{Load, Phases, Purpose};
use plimsoll_model::suite::{
    Ladder, LoadSpec, Profile, ProfileName, Suite, Think, ThinkDistribution,
};
use plimsoll_model::units::{Nanos, OpsPerSec};

/// Timings of a search step: long enough to tell held from not held, short enough to take many.
const PROBE_WARM_UP_MAX: Nanos = Nanos::from_secs(2);
const PROBE_MEASURE_MAX: Nanos = Nanos::from_secs(8);
/// A verification is held longer: it carries the claim.
const VERIFY_MEASURE_MAX: Nanos = Nanos::from_secs(30);
/// A demo has 15 s in all: its search begins lower, is shorter, and gives way in larger steps.
const DEMO_FIRST_RATIO: f64 = 0.7;
const DEMO_PROBES_MAX: u32 = 2;
const DEMO_VERIFY_STEP_RATIO: f64 = 0.2;
const DEMO_VERIFIES_MAX: u32 = 2;

/// How the loads of a ladder come about.
#[derive(Clone, Debug, PartialEq)]
pub enum LadderPlan {
    /// They are known.
    Fixed(Vec<f64>),
    /// The peak is searched first.
    Search {
        /// Points of the ladder.
        steps: u32,
        /// Share of the peak the last one asks for.
        headroom: f64,
    },
}

impl LadderPlan {
    /// Of a suite.
    pub fn of(ladder: &Ladder) -> Self {
        match ladder {
            Ladder::Points { points } => Self::Fixed(points.clone()),
            Ladder::Peak { peak, steps } => Self::Fixed(Ladder::evenly(*peak, *steps)),
            Ladder::Auto { steps, headroom } => Self::Search { steps: *steps, headroom: *headroom },
        }
    }

    /// The loads, when they are known.
    pub fn known(&self) -> Option<&[f64]> {
        match self {
            Self::Fixed(loads) => Some(loads),
            Self::Search { .. } => None,
        }
    }
}

/// Bounds of the search for the peak.
pub fn search_config(profile: ProfileName) -> PeakSearchConfig {
    match profile {
        ProfileName::Demo => PeakSearchConfig {
            first_ratio: DEMO_FIRST_RATIO,
            probes_max: DEMO_PROBES_MAX,
            verify_step_ratio: DEMO_VERIFY_STEP_RATIO,
            verifies_max: DEMO_VERIFIES_MAX,
            ..PeakSearchConfig::default()
        },
        _ => PeakSearchConfig::default(),
    }
}

/// The load of a ladder point.
pub fn load_at(suite: &Suite, profile: &Profile, requested: f64) -> Load {
    match &suite.load {
        LoadSpec::Open { arrivals, gaps, clients, backlog_ops_max } => Load::Open {
            rate_ops_per_s: OpsPerSec::new(requested).unwrap_or_default(),
            arrivals: *arrivals,
            gaps: *gaps,
            clients: *clients,
            backlog_ops_max: *backlog_ops_max,
        },
        LoadSpec::Closed { think, start_delay } => Load::Closed {
            clients: requested as u32,
            think: Think {
                mean: scaled(think.mean, profile.think_scale),
                distribution: think.distribution,
            },
            start_delay_ns: scaled(*start_delay, profile.think_scale),
        },
    }
}

/// All clients at once, no pause: what the server gives when asked for everything.
pub fn saturating_load(suite: &Suite) -> Load {
    let clients = match &suite.load {
        LoadSpec::Open { clients, .. } => *clients,
        LoadSpec::Closed { .. } => 1,
    };
    Load::Closed {
        clients,
        think: Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant },
        start_delay_ns: Nanos::ZERO,
    }
}

fn scaled(span: Nanos, scale: f64) -> Nanos {
    Nanos::from_secs_f64(span.as_secs_f64() * scale)
}

/// Timings of a point.
pub fn phases(profile: &Profile, purpose: Purpose) -> Phases {
    let (warm_up_max, measure_max) = match purpose {
        Purpose::Ladder => (Nanos::MAX, Nanos::MAX),
        Purpose::Probe => (PROBE_WARM_UP_MAX, PROBE_MEASURE_MAX),
        Purpose::Verify => (PROBE_WARM_UP_MAX, VERIFY_MEASURE_MAX),
    };
    Phases {
        warm_up_ns: profile.warm_up.min(warm_up_max),
        measure_ns: profile.measure.min(measure_max),
        drain_ns: profile.drain,
    }
}

/// Load and purpose of a search step; `None` when the search has ended.
pub fn step_load(suite: &Suite, profile: &Profile, step: &SearchStep) -> Option<(Load, Purpose)> {
    match step {
        SearchStep::Saturate => Some((saturating_load(suite), Purpose::Probe)),
        SearchStep::Probe { load } => Some((load_at(suite, profile, *load), Purpose::Probe)),
        SearchStep::Verify { load } => Some((load_at(suite, profile, *load), Purpose::Verify)),
        SearchStep::Found { .. } | SearchStep::GaveUp { .. } => None,
    }
}

/// Every timing or scale of the profile that departs from the published one.
pub fn profile_departures(suite: &Suite, name: ProfileName) -> Vec<String> {
    let (own, full) = (suite.profiles.get(name), &suite.profiles.full);
    let mut departures = Vec::new();
    let spans =
        [("warm-up", own.warm_up, full.warm_up), ("measurement", own.measure, full.measure)];
    for (what, own, full) in spans {
        if own != full {
            departures.push(format!("{what} {own} per load point; the method has {full}"));
        }
    }
    let scales = [
        ("workload", own.workload_scale, full.workload_scale),
        ("think time and start delay", own.think_scale, full.think_scale),
    ];
    for (what, own, full) in scales {
        let matters = what == "workload" || matches!(suite.load, LoadSpec::Closed { .. });
        if own != full && matters {
            departures.push(format!("{what} scaled to {own} of the method's ({full})"));
        }
    }
    departures
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUITE: &str = "format = 1\nname = \"s\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
        [load]\nmode = \"open\"\nclients = 7\n[profiles.full]\nwarm_up = \"300s\"\nmeasure = \"600s\"\n";

    fn suite() -> Suite {
        Suite::parse("s.toml", SUITE, &[], &|_, _| Ok(toml::Table::new())).unwrap()
    }

    #[test]
    fn probes_are_short_and_ladder_points_as_long_as_the_profile_says() {
        let full = suite().profiles.full;
        assert_eq!(phases(&full, Purpose::Ladder).measure_ns, Nanos::from_secs(600));
        assert_eq!(phases(&full, Purpose::Probe).measure_ns, PROBE_MEASURE_MAX);
        let demo = suite().profiles.demo;
        assert_eq!(phases(&demo, Purpose::Probe).measure_ns, demo.measure);
    }

    #[test]
    fn the_full_profile_departs_from_nothing_and_quick_says_what_it_changed() {
        assert!(profile_departures(&suite(), ProfileName::Full).is_empty());
        let quick = profile_departures(&suite(), ProfileName::Quick).join("\n");
        for part in ["warm-up 1.00 s", "the method has 300 s", "workload scaled to 0.1"] {
            assert!(quick.contains(part), "{part:?} in {quick}");
        }
    }

    #[test]
    fn saturating_asks_with_every_client_and_no_pause() {
        assert!(matches!(saturating_load(&suite()), Load::Closed { clients: 7, .. }));
    }
}
