//! Which load points a run has.

use plimsoll_analysis::climb::Step;
use plimsoll_analysis::search::PeakSearchConfig;
use plimsoll_model::assignment::{Load, Phases, Purpose};
use plimsoll_model::suite::{
    Ladder, LoadSpec, Profile, ProfileName, StartDelay, Suite, Think, ThinkDistribution,
};
use plimsoll_model::units::{NANOS_PER_SECOND, Nanos, OpsPerSec};

/// Timings of a search step: long enough to tell whether a load is sustained, short enough to take
/// many.
const PROBE_WARM_UP_MAX: Nanos = Nanos::from_secs(2);
const PROBE_MEASURE_MAX: Nanos = Nanos::from_secs(8);
/// A verification supports the claim that the ladder's last point is sustained. It lasts as long as
/// that point, but shorter than the minutes that published methods use.
const VERIFY_WARM_UP_MAX: Nanos = Nanos::from_secs(30);
const VERIFY_MEASURE_MAX: Nanos = Nanos::from_secs(120);
/// A profile needs some hundred samples of what matters; it begins a moment late.
const PROFILE_MEASURE_MAX: Nanos = Nanos::from_secs(10);
const PROFILE_MARGIN: Nanos = Nanos::from_secs(1);
/// A demo has 15 s in all: its search begins lower, is shorter, and backs off in larger steps.
const DEMO_FIRST_RATIO: f64 = 0.7;
const DEMO_PROBES_MAX: u32 = 2;
const DEMO_VERIFY_STEP_RATIO: f64 = 0.2;
const DEMO_VERIFIES_MAX: u32 = 2;
/// Search and ladder together: a demo has 15 s a suite, a quick run two minutes, both with what it
/// takes to start the servers and to write the report.
const DEMO_TIME: Nanos = Nanos::from_secs(13);
const QUICK_TIME: Nanos = Nanos::from_secs(105);

/// Limits of a quick run, whatever time there is.
const QUICK_PROBES_MAX: u32 = 6;
const QUICK_VERIFIES_MAX: u32 = 4;

/// Where the loads of a ladder come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LadderPlan {
    /// They are fixed.
    Fixed(Vec<f64>),
    /// The peak is searched first.
    Search {
        /// Points of the ladder.
        steps: u32,
        /// Load of the last point as a share of the peak.
        headroom: f64,
    },
    /// No ladder: the highest load within limits is searched.
    Capacity,
}

impl LadderPlan {
    /// From a suite's ladder.
    pub(crate) fn from_ladder(ladder: &Ladder) -> Self {
        match ladder {
            Ladder::Points { points } => Self::Fixed(points.clone()),
            Ladder::Peak { peak, steps } => Self::Fixed(Ladder::evenly(*peak, *steps)),
            Ladder::Think { thinks, .. } => {
                Self::Fixed(thinks.iter().map(|think| think.as_secs_f64()).collect())
            }
            Ladder::Auto { steps, headroom } => Self::Search { steps: *steps, headroom: *headroom },
        }
    }

    /// The loads, if they are fixed.
    pub(crate) fn fixed_loads(&self) -> Option<&[f64]> {
        match self {
            Self::Fixed(loads) => Some(loads),
            Self::Search { .. } | Self::Capacity => None,
        }
    }
}

/// Time for search and ladder together; `None` if unlimited.
pub(crate) const fn search_time(profile: ProfileName) -> Option<Nanos> {
    match profile {
        ProfileName::Demo => Some(DEMO_TIME),
        ProfileName::Quick => Some(QUICK_TIME),
        ProfileName::Standard | ProfileName::Full => None,
    }
}

/// Bounds of the search for the peak.
pub(crate) fn search_config(suite: &Suite, profile: ProfileName) -> PeakSearchConfig {
    let mut config = PeakSearchConfig {
        spare_ratio: suite.rules.rate_tolerance_ratio / 2.0,
        ..PeakSearchConfig::default()
    };
    let climb = &mut config.climb;
    match profile {
        ProfileName::Demo => {
            climb.first = DEMO_FIRST_RATIO;
            climb.loads_max = DEMO_PROBES_MAX;
            climb.claims_max = DEMO_VERIFIES_MAX;
            config.verify_step_ratio = DEMO_VERIFY_STEP_RATIO;
        }
        ProfileName::Quick => {
            climb.loads_max = QUICK_PROBES_MAX;
            climb.claims_max = QUICK_VERIFIES_MAX;
        }
        ProfileName::Standard | ProfileName::Full => {}
    }
    config
}

/// How long perf samples in a window of these phases.
pub(crate) fn profile_seconds(phases: &Phases) -> u32 {
    let seconds = phases.measure_ns.0.saturating_sub(PROFILE_MARGIN.0) / NANOS_PER_SECOND;
    seconds.max(1) as u32
}

/// The load of a ladder point.
pub fn load_at(suite: &Suite, profile: &Profile, requested: f64) -> Load {
    match &suite.load {
        LoadSpec::Open { arrivals, gaps: inter_arrival, clients, backlog_ops_max, .. } => {
            Load::Open {
                rate_ops_per_s: OpsPerSec::new(requested).unwrap_or_default(),
                arrivals: *arrivals,
                gaps: *inter_arrival,
                clients: *clients,
                backlog_ops_max: *backlog_ops_max,
            }
        }
        LoadSpec::Closed { think, start_delay, .. } => {
            let (clients, mean, axis_think_ns) = match &suite.ladder {
                Ladder::Think { clients, .. } => {
                    let mean = Nanos::from_secs_f64(requested);
                    (profile.clients_used(*clients), mean, Some(mean))
                }
                _ => (requested as u32, think.mean, None),
            };
            Load::Closed {
                clients,
                think: Think {
                    mean: scaled(mean, profile.think_scale),
                    distribution: think.distribution,
                },
                start_delay_ns: scaled(start_delay.span(), profile.think_scale),
                starts_thinking: false,
                axis_think_ns,
            }
        }
    }
}

/// All clients at once, without think time: measures the server's maximum throughput.
pub(crate) fn saturating_load(suite: &Suite) -> Load {
    let clients = match &suite.load {
        LoadSpec::Open { clients, .. } => *clients,
        LoadSpec::Closed { .. } => 1,
    };
    Load::Closed {
        clients,
        think: Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant },
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    }
}

/// The load with its clients out of step from the start, if the suite requests it. A window of n
/// ops begins with its first op, so its clients start together.
pub(crate) fn out_of_step(load: Load, suite: &Suite, phases: &Phases) -> Load {
    match (load, &suite.load) {
        (
            Load::Closed { clients, think, axis_think_ns, .. },
            LoadSpec::Closed { start_delay: StartDelay::Auto, .. },
        ) if phases.ops.is_none() => {
            let starts_thinking = think.mean > Nanos::ZERO;
            let start_delay_ns = match starts_thinking {
                true => Nanos::ZERO,
                false => Nanos(phases.warm_up_ns.0 / 2),
            };
            Load::Closed { clients, think, start_delay_ns, starts_thinking, axis_think_ns }
        }
        (load, _) => load,
    }
}

fn scaled(span: Nanos, scale: f64) -> Nanos {
    Nanos::from_secs_f64(span.as_secs_f64() * scale)
}

/// Timings of a point.
pub(crate) fn phases(profile: &Profile, purpose: Purpose) -> Phases {
    let (warm_up_max, measure_max) = match purpose {
        Purpose::Ladder | Purpose::Pilot => (Nanos::MAX, Nanos::MAX),
        Purpose::Probe => (PROBE_WARM_UP_MAX, PROBE_MEASURE_MAX),
        Purpose::Verify => (VERIFY_WARM_UP_MAX, VERIFY_MEASURE_MAX),
        Purpose::Profile => (VERIFY_WARM_UP_MAX, PROFILE_MEASURE_MAX),
    };
    Phases {
        warm_up_ns: profile.warm_up.min(warm_up_max),
        measure_ns: match purpose {
            Purpose::Profile => profile.measure.min(measure_max) + PROFILE_MARGIN,
            _ => profile.measure.min(measure_max),
        },
        ramp_down_ns: match purpose {
            Purpose::Ladder => profile.ramp_down,
            _ => Nanos::ZERO,
        },
        drain_ns: profile.drain,
        ops: profile.ops.filter(|_| purpose == Purpose::Ladder),
    }
}

/// Load and purpose of a search step; `None` when the search has ended.
pub(crate) fn step_load<A>(
    suite: &Suite,
    profile: &Profile,
    step: &Step<A>,
) -> Option<(Load, Purpose)> {
    match step {
        Step::Saturate => Some((saturating_load(suite), Purpose::Probe)),
        Step::Probe { load } => Some((load_at(suite, profile, *load), Purpose::Probe)),
        Step::Verify { load, .. } => Some((load_at(suite, profile, *load), Purpose::Verify)),
        Step::Answer(_) | Step::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::Override;

    use super::*;
    use crate::protocols::{parse_suite, shipped};

    const SUITE: &str = "format = 1\nname = \"s\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
        [load]\nmode = \"open\"\nclients = 7\n[profiles.full]\nwarm_up = \"300s\"\nmeasure = \"600s\"\n";

    fn suite() -> Suite {
        Suite::parse("s.toml", SUITE, &[], &|_, _| Ok(toml::Table::new())).unwrap()
    }

    const SWEEP: &str = "format = 1\nname = \"s\"\ntitle = \"t\"\nprotocol = \"echo\"\n\
        source = \"a report\"\n[load]\nmode = \"closed\"\nstart_delay = \"15s\"\n\
        [ladder]\nkind = \"think\"\nclients = 974\nthinks = [\"15s\", \"25s\"]\n\
        [profiles.full]\nramp_down = \"30s\"\n[profiles.quick]\nthink_scale = 0.02\n";

    fn sweep() -> Suite {
        Suite::parse("s.toml", SWEEP, &[], &|_, _| Ok(toml::Table::new())).unwrap()
    }

    /// Start of the clients: the span, and whether they begin by thinking.
    fn start(suite: &str, set: &[&str], ops: Option<u64>) -> (Nanos, bool) {
        let set: Vec<_> = set.iter().map(|set| Override::parse(set).unwrap()).collect();
        let suite = parse_suite(suite, shipped(suite).unwrap(), &set).unwrap();
        let profile = suite.profiles.get(ProfileName::Standard);
        let phases = Phases { ops, ..phases(profile, Purpose::Ladder) };
        let load = out_of_step(load_at(&suite, profile, 8.0), &suite, &phases);
        let Load::Closed { start_delay_ns, starts_thinking, .. } = load else { panic!("{load:?}") };
        (start_delay_ns, starts_thinking)
    }

    #[test]
    fn clients_start_out_of_step_where_the_suite_has_them_so() {
        let think = "load.think.mean=5s";
        assert_eq!(start("web-url", &[], None), (Nanos::from_millis(2_500), false));
        assert_eq!(start("web-url", &[think], None), (Nanos::ZERO, true));
        assert_eq!(start("llm-chat", &[], None), (Nanos::from_secs(5), false));
        let together = (Nanos::ZERO, false);
        assert_eq!(start("web-url", &[think], Some(1_000)), together, "-n");
        assert_eq!(start("web-url", &["load.start_delay=0s"], None), together);
        for (suite, delay_s) in [("disk-mix", 5), ("llm-conversation", 5), ("llm-endpoints", 0)] {
            assert_eq!(start(suite, &[], None), (Nanos::from_secs(delay_s), false), "{suite}");
        }
    }

    #[test]
    fn a_ladder_of_think_times_keeps_the_methods_place_beside_the_scaled_pause() {
        let suite = sweep();
        assert_eq!(LadderPlan::from_ladder(&suite.ladder).fixed_loads(), Some(&[15.0, 25.0][..]));
        let load = load_at(&suite, &suite.profiles.quick, 25.0);
        assert_eq!((load.requested(), load.clients()), (25.0, 974));
        let Load::Closed { think, start_delay_ns, axis_think_ns, .. } = load else { panic!() };
        assert_eq!(think.mean, Nanos::from_millis(500));
        assert_eq!(start_delay_ns, Nanos::from_millis(300));
        assert_eq!(axis_think_ns, Some(Nanos::from_secs(25)));
    }

    #[test]
    fn the_ramp_down_belongs_to_the_points_of_the_ladder() {
        let suite = sweep();
        let full = &suite.profiles.full;
        assert_eq!(phases(full, Purpose::Ladder).ramp_down_ns, Nanos::from_secs(30));
        assert_eq!(phases(full, Purpose::Probe).ramp_down_ns, Nanos::ZERO);
    }

    #[test]
    fn probes_are_short_and_ladder_points_as_long_as_the_profile_says() {
        let full = suite().profiles.full;
        assert_eq!(phases(&full, Purpose::Ladder).measure_ns, Nanos::from_secs(600));
        assert_eq!(phases(&full, Purpose::Probe).measure_ns, PROBE_MEASURE_MAX);
        let demo = suite().profiles.demo;
        assert_eq!(phases(&demo, Purpose::Probe).measure_ns, demo.measure);
        for short in [suite().profiles.quick, suite().profiles.standard] {
            let (verify, ladder) =
                (phases(&short, Purpose::Verify), phases(&short, Purpose::Ladder));
            assert_eq!(verify.load_end(), ladder.load_end(), "as long as the point it stands for");
        }
    }

    #[test]
    fn saturating_asks_with_every_client_and_no_pause() {
        assert!(matches!(saturating_load(&suite()), Load::Closed { clients: 7, .. }));
    }
}
