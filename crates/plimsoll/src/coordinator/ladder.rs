//! Which load points a run has.

use plimsoll_analysis::search::{PeakSearchConfig, SearchStep};
use plimsoll_model::assignment::{Load, Phases, Purpose};
use plimsoll_model::suite::{
    Ladder, LoadSpec, Profile, ProfileName, Suite, Think, ThinkDistribution,
};
use plimsoll_model::units::{Nanos, OpsPerSec, grouped};

/// Timings of a search step: long enough to tell held from not held, short enough to take many.
const PROBE_WARM_UP_MAX: Nanos = Nanos::from_secs(2);
const PROBE_MEASURE_MAX: Nanos = Nanos::from_secs(8);
/// A verification carries the claim that the ladder's last point is held: it lasts as long as that
/// one, short of the methods' own minutes.
const VERIFY_WARM_UP_MAX: Nanos = Nanos::from_secs(30);
const VERIFY_MEASURE_MAX: Nanos = Nanos::from_secs(120);
/// A demo has 15 s in all: its search begins lower, is shorter, and gives way in larger steps.
const DEMO_FIRST_RATIO: f64 = 0.7;
const DEMO_PROBES_MAX: u32 = 2;
const DEMO_VERIFY_STEP_RATIO: f64 = 0.2;
const DEMO_VERIFIES_MAX: u32 = 2;
/// Search and ladder together: a demo has 15 s a suite, a quick run two minutes, both with what it
/// takes to start the servers and to write the report.
const DEMO_TIME: Nanos = Nanos::from_secs(13);
const QUICK_TIME: Nanos = Nanos::from_secs(105);

/// A quick run is not asked for more, whatever time there is.
const QUICK_PROBES_MAX: u32 = 6;
const QUICK_VERIFIES_MAX: u32 = 4;

/// How the loads of a ladder come about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LadderPlan {
    /// They are known.
    Fixed(Vec<f64>),
    /// The peak is searched first.
    Search {
        /// Points of the ladder.
        steps: u32,
        /// Share of the peak the last one asks for.
        headroom: f64,
    },
    /// There is none: the highest load within limits is searched.
    Capacity,
}

impl LadderPlan {
    /// Of a suite.
    pub(crate) fn of(ladder: &Ladder) -> Self {
        match ladder {
            Ladder::Points { points } => Self::Fixed(points.clone()),
            Ladder::Peak { peak, steps } => Self::Fixed(Ladder::evenly(*peak, *steps)),
            Ladder::Think { thinks, .. } => {
                Self::Fixed(thinks.iter().map(|think| think.as_secs_f64()).collect())
            }
            Ladder::Auto { steps, headroom } => Self::Search { steps: *steps, headroom: *headroom },
        }
    }

    /// The loads, when they are known.
    pub(crate) fn known(&self) -> Option<&[f64]> {
        match self {
            Self::Fixed(loads) => Some(loads),
            Self::Search { .. } | Self::Capacity => None,
        }
    }
}

/// Time for search and ladder together; `None` where nobody waits for the end.
pub(crate) const fn search_time(profile: ProfileName) -> Option<Nanos> {
    match profile {
        ProfileName::Demo => Some(DEMO_TIME),
        ProfileName::Quick => Some(QUICK_TIME),
        ProfileName::Standard | ProfileName::Full => None,
    }
}

/// Bounds of the search for the peak.
pub(crate) fn search_config(suite: &Suite, profile: ProfileName) -> PeakSearchConfig {
    let config = PeakSearchConfig {
        spare_ratio: suite.rules.rate_tolerance_ratio / 2.0,
        ..PeakSearchConfig::default()
    };
    match profile {
        ProfileName::Demo => PeakSearchConfig {
            first_ratio: DEMO_FIRST_RATIO,
            probes_max: DEMO_PROBES_MAX,
            verify_step_ratio: DEMO_VERIFY_STEP_RATIO,
            verifies_max: DEMO_VERIFIES_MAX,
            ..config
        },
        ProfileName::Quick => PeakSearchConfig {
            probes_max: QUICK_PROBES_MAX,
            verifies_max: QUICK_VERIFIES_MAX,
            ..config
        },
        ProfileName::Standard | ProfileName::Full => config,
    }
}

/// The load of a ladder point.
pub(crate) fn load_at(suite: &Suite, profile: &Profile, requested: f64) -> Load {
    match &suite.load {
        LoadSpec::Open { arrivals, gaps, clients, backlog_ops_max } => Load::Open {
            rate_ops_per_s: OpsPerSec::new(requested).unwrap_or_default(),
            arrivals: *arrivals,
            gaps: *gaps,
            clients: *clients,
            backlog_ops_max: *backlog_ops_max,
        },
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
                start_delay_ns: scaled(*start_delay, profile.think_scale),
                axis_think_ns,
            }
        }
    }
}

/// All clients at once, no pause: what the server gives when asked for everything.
pub(crate) fn saturating_load(suite: &Suite) -> Load {
    let clients = match &suite.load {
        LoadSpec::Open { clients, .. } => *clients,
        LoadSpec::Closed { .. } => 1,
    };
    Load::Closed {
        clients,
        think: Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant },
        start_delay_ns: Nanos::ZERO,
        axis_think_ns: None,
    }
}

fn scaled(span: Nanos, scale: f64) -> Nanos {
    Nanos::from_secs_f64(span.as_secs_f64() * scale)
}

/// Timings of a point.
pub(crate) fn phases(profile: &Profile, purpose: Purpose) -> Phases {
    let (warm_up_max, measure_max) = match purpose {
        Purpose::Ladder => (Nanos::MAX, Nanos::MAX),
        Purpose::Probe => (PROBE_WARM_UP_MAX, PROBE_MEASURE_MAX),
        Purpose::Verify => (VERIFY_WARM_UP_MAX, VERIFY_MEASURE_MAX),
    };
    Phases {
        warm_up_ns: profile.warm_up.min(warm_up_max),
        measure_ns: profile.measure.min(measure_max),
        ramp_down_ns: match purpose {
            Purpose::Ladder => profile.ramp_down,
            Purpose::Probe | Purpose::Verify => Nanos::ZERO,
        },
        drain_ns: profile.drain,
        ops: profile.ops.filter(|_| purpose == Purpose::Ladder),
    }
}

/// Load and purpose of a search step; `None` when the search has ended.
pub(crate) fn step_load(
    suite: &Suite,
    profile: &Profile,
    step: &SearchStep,
) -> Option<(Load, Purpose)> {
    match step {
        SearchStep::Saturate => Some((saturating_load(suite), Purpose::Probe)),
        SearchStep::Probe { load } => Some((load_at(suite, profile, *load), Purpose::Probe)),
        SearchStep::Verify { load } => Some((load_at(suite, profile, *load), Purpose::Verify)),
        SearchStep::Found(_) | SearchStep::GaveUp { .. } => None,
    }
}

const TOML_CAN_SAY_IT: &str = "the parts of a suite hold only what TOML can say";
/// `source` of a suite that follows no method; nothing departs from one then.
const NO_METHOD: &str = "no published method";

/// Everything of the suite and its profile that departs from the method: timings, scale, rules,
/// ladder. `method` is the suite as published.
pub(crate) fn suite_departures(suite: &Suite, name: ProfileName, method: &Suite) -> Vec<String> {
    let published = method.source != NO_METHOD;
    let whose = if published { "the method" } else { "the full profile" };
    let (own, full) = (suite.profiles.get(name), &method.profiles.full);
    let mut departures = Vec::new();
    if let Some(ops) = own.ops.filter(|_| own.ops != full.ops) {
        let ops = grouped(ops as f64);
        departures
            .push(format!("measurement of {ops} ops per load point; {whose} has {}", full.measure));
    }
    let spans = [
        ("warm-up", own.warm_up, full.warm_up),
        ("measurement", own.measure, full.measure),
        ("ramp-down", own.ramp_down, full.ramp_down),
    ];
    for (what, span, full) in spans {
        let said = what == "measurement" && own.ops.is_some();
        if span != full && !said {
            departures.push(format!("{what} {span} per load point; {whose} has {full}"));
        }
    }
    let scales = [
        ("workload", own.workload_scale, full.workload_scale),
        ("think time and start delay", own.think_scale, full.think_scale),
    ];
    for (what, own, full) in scales {
        let matters = what == "workload" || matches!(suite.load, LoadSpec::Closed { .. });
        if own != full && matters {
            departures.push(format!("{what} scaled to {own}; {whose} has {full}"));
        }
    }
    if let (Ladder::Think { clients, .. }, Ladder::Think { clients: full_clients, .. }) =
        (&suite.ladder, &method.ladder)
        && suite.ladder == method.ladder
        && own.clients_used(*clients) != full.clients_used(*full_clients)
    {
        let (own, full) = (own.clients_used(*clients), full.clients_used(*full_clients));
        departures.push(format!("{own} clients; {whose} has {full}"));
    }
    if suite.op_timeout != method.op_timeout {
        let (own, full) = (suite.op_timeout, method.op_timeout);
        departures.push(format!("op_timeout {own}; {whose} has {full}"));
    }
    let is_closed = |suite: &Suite| matches!(suite.load, LoadSpec::Closed { .. });
    match (is_closed(suite), is_closed(method)) {
        (false, true) => departures.push(format!("an open load; {whose} has a closed one")),
        (true, false) if published => {
            departures.push(format!("a closed load; {whose} has an open one"));
        }
        _ => departures.extend(table_departures(
            &closed_load(suite),
            &closed_load(method),
            "load",
            whose,
        )),
    }
    departures.extend(table_departures(&rules(suite), &rules(method), "rule", whose));
    departures.extend(table_departures(&score(suite), &score(method), "score", whose));
    if published && !is_ladder_of(&suite.ladder, &method.ladder) {
        let (own, full) = (ladder_text(&suite.ladder), ladder_text(&method.ladder));
        departures.push(format!("{own}; the method has {full}"));
    }
    departures
}

/// What a closed load asks of its clients. Of an open one the plan of its protocol tells.
fn closed_load(suite: &Suite) -> toml::Table {
    let LoadSpec::Closed { .. } = suite.load else { return toml::Table::new() };
    let mut load = toml::Table::try_from(&suite.load).expect(TOML_CAN_SAY_IT);
    if let (Ladder::Think { .. }, Some(think)) = (&suite.ladder, load.get_mut("think")) {
        // The ladder sweeps it.
        think.as_table_mut().map(|think| think.remove("mean"));
    }
    load
}

fn rules(suite: &Suite) -> toml::Table {
    toml::Table::try_from(&suite.rules).expect(TOML_CAN_SAY_IT)
}

fn score(suite: &Suite) -> toml::Table {
    let score = suite.score.as_ref();
    score.map(|score| toml::Table::try_from(score).expect(TOML_CAN_SAY_IT)).unwrap_or_default()
}

fn table_departures(own: &toml::Table, full: &toml::Table, what: &str, whose: &str) -> Vec<String> {
    let added = full.keys().filter(|key| !own.contains_key(*key));
    let said = |table: &toml::Table, key: &str| {
        table.get(key).map_or("none".to_owned(), |value| value.to_string().replace(" = ", " "))
    };
    own.keys()
        .chain(added)
        .filter(|key| own.get(*key) != full.get(*key))
        .map(|key| format!("{what} {key} = {}; {whose} has {}", said(own, key), said(full, key)))
        .collect()
}

/// A peak that the user names instead of the search leaves the ladder the method's.
fn is_ladder_of(own: &Ladder, method: &Ladder) -> bool {
    match (own, method) {
        (
            Ladder::Peak { steps, .. },
            Ladder::Peak { steps: wanted, .. } | Ladder::Auto { steps: wanted, .. },
        ) => steps == wanted,
        _ => own == method,
    }
}

fn ladder_text(ladder: &Ladder) -> String {
    match ladder {
        Ladder::Think { clients, thinks } => {
            let (clients, points) = (grouped(f64::from(*clients)), thinks.len());
            match points {
                1 => format!("one think time with {clients} clients"),
                _ => format!("{points} think times with {clients} clients"),
            }
        }
        Ladder::Points { points } if points.len() == 1 => "one named load point".to_owned(),
        Ladder::Points { points } => format!("{} named load points", points.len()),
        Ladder::Peak { peak, steps } => {
            format!("{steps} even load points up to {}", grouped(*peak))
        }
        Ladder::Auto { steps, headroom } => match *headroom == 1.0 {
            true => format!("{steps} even load points up to the peak"),
            false => format!("{steps} even load points up to {headroom} of the peak"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_ladder_of_think_times_keeps_the_methods_place_beside_the_scaled_pause() {
        let suite = sweep();
        assert_eq!(LadderPlan::of(&suite.ladder).known(), Some(&[15.0, 25.0][..]));
        let load = load_at(&suite, &suite.profiles.quick, 25.0);
        assert_eq!((load.requested(), load.clients()), (25.0, 974));
        let Load::Closed { think, start_delay_ns, axis_think_ns, .. } = load else { panic!() };
        assert_eq!(think.mean, Nanos::from_millis(500));
        assert_eq!(start_delay_ns, Nanos::from_millis(300));
        assert_eq!(axis_think_ns, Some(Nanos::from_secs(25)));
    }

    #[test]
    fn what_a_closed_load_asks_of_its_clients_is_compared_with_the_method() {
        let (mut own, method) = (sweep(), sweep());
        assert!(suite_departures(&own, ProfileName::Full, &method).is_empty());
        let LoadSpec::Closed { think, on_client_failure, .. } = &mut own.load else { panic!() };
        think.mean = Nanos::from_secs(9);
        *on_client_failure = plimsoll_model::suite::OnClientFailure::Abort;
        own.ladder = Ladder::Think { clients: 10, thinks: vec![Nanos::from_secs(15)] };
        let said = suite_departures(&own, ProfileName::Full, &method).join("\n");
        let ladder =
            "one think time with 10 clients; the method has 2 think times with 974 clients";
        for part in ["load on_client_failure = \"abort\"; the method has \"drop\"", ladder] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        assert!(!said.contains("mean"), "the ladder sets it: {said}");
    }

    #[test]
    fn the_ramp_down_belongs_to_the_points_of_the_ladder() {
        let suite = sweep();
        let full = &suite.profiles.full;
        assert_eq!(phases(full, Purpose::Ladder).ramp_down_ns, Nanos::from_secs(30));
        assert_eq!(phases(full, Purpose::Probe).ramp_down_ns, Nanos::ZERO);
        let said = suite_departures(&suite, ProfileName::Quick, &suite).join("\n");
        assert!(said.contains("ramp-down 0 s per load point; the method has 30.0 s"), "{said}");
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
    fn the_full_profile_departs_from_nothing_and_quick_says_what_it_changed() {
        assert!(suite_departures(&suite(), ProfileName::Full, &suite()).is_empty());
        let quick = suite_departures(&suite(), ProfileName::Quick, &suite()).join("\n");
        for part in ["warm-up 1.00 s", "the method has 300 s", "workload scaled to 0.1"] {
            assert!(quick.contains(part), "{part:?} in {quick}");
        }
    }

    #[test]
    fn what_was_overridden_is_compared_with_the_method_and_not_with_itself() {
        let (mut own, method) = (suite(), suite());
        own.profiles.full.measure = Nanos::from_secs(5);
        own.op_timeout = Nanos::from_secs(77);
        own.rules.errors_max_ratio = 0.5;
        own.rules.response_cap_ms = Some(8.0);
        own.ladder = Ladder::Points { points: vec![1.0, 2.0] };
        let said = suite_departures(&own, ProfileName::Full, &method).join("\n");
        for part in [
            "measurement 5.00 s per load point; the method has 600 s",
            "op_timeout 77.0 s; the method has",
            "rule errors_max_ratio = 0.5; the method has",
            "rule response_cap_ms = 8.0; the method has none",
            "2 named load points; the method has",
        ] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
    }

    #[test]
    fn a_named_peak_keeps_the_methods_ladder_and_another_number_of_points_does_not() {
        let method = Ladder::Auto { steps: 10, headroom: 1.0 };
        assert!(is_ladder_of(&Ladder::Peak { peak: 5.0, steps: 10 }, &method));
        assert!(!is_ladder_of(&Ladder::Peak { peak: 5.0, steps: 4 }, &method));
        assert!(!is_ladder_of(&Ladder::Auto { steps: 4, headroom: 1.0 }, &method));
        assert!(!is_ladder_of(&Ladder::Auto { steps: 10, headroom: 0.95 }, &method));
    }

    #[test]
    fn without_a_method_nothing_departs_from_one() {
        let (mut own, mut method) = (suite(), suite());
        method.source = NO_METHOD.to_owned();
        own.ladder = Ladder::Points { points: vec![1.0] };
        let said = suite_departures(&own, ProfileName::Quick, &method).join("\n");
        assert!(said.contains("the full profile has") && !said.contains("method"), "{said}");
        assert!(!said.contains("named"), "{said}");
    }

    #[test]
    fn saturating_asks_with_every_client_and_no_pause() {
        assert!(matches!(saturating_load(&suite()), Load::Closed { clients: 7, .. }));
    }
}
