use super::*;
use crate::analyse;
use crate::testing::{PointBuilder, RunBuilder};
use proptest::prelude::*;

/// A server that finishes at most `capacity` ops/s, give or take the noise of each point.
struct Server {
    capacity: f64,
    /// What the closed probe reaches, as a share of the capacity.
    closed_ratio: f64,
    /// One factor a point, used in turn.
    noise: Vec<f64>,
    points: usize,
}

impl Server {
    fn exact(capacity: f64) -> Self {
        Self { capacity, closed_ratio: 1.0, noise: vec![1.0], points: 0 }
    }

    /// A load is held when 95 % of it is achieved.
    fn highest_held(&self) -> f64 {
        self.capacity / 0.95
    }

    fn run(&mut self, requested: f64, closed: bool) -> ProbeOutcome {
        let capacity = self.capacity * self.noise[self.points % self.noise.len()];
        self.points += 1;
        let achieved = if closed { capacity * self.closed_ratio } else { requested.min(capacity) };
        let held = closed || achieved >= 0.95 * requested;
        ProbeOutcome {
            requested,
            achieved,
            offered: (!closed).then_some(requested),
            held,
            generator_limited: false,
            why_not: (!held).then(|| "load not held".to_owned()),
        }
    }
}

#[test]
fn a_load_that_the_suite_would_not_count_is_not_held() {
    let mut run = RunBuilder::of([PointBuilder::open(1_000.0).response_ns(50_000_000)]);
    let outcome = |run: &RunBuilder| ProbeOutcome::of(&analyse(&run.raw()).points[0]);
    assert!(outcome(&run).held);
    run.suite.rules.response_cap_ms = Some(40.0);
    let above = outcome(&run);
    assert!(!above.held && !above.generator_limited);
    assert!(above.why_not.unwrap().contains("cap of 40 ms"));
}

/// Steps of a search that never ends would be more than this.
const STEPS_MAX: usize = 20;

fn search(server: &mut Server) -> SearchStep {
    search_with(|requested, closed| server.run(requested, closed))
}

fn search_with(mut run: impl FnMut(f64, bool) -> ProbeOutcome) -> SearchStep {
    let mut search = PeakSearch::new(PeakSearchConfig::default());
    for _ in 0..STEPS_MAX {
        let outcome = match search.next() {
            SearchStep::Saturate => run(64.0, true),
            SearchStep::Probe { load } | SearchStep::Verify { load } => run(load, false),
            ended => return ended,
        };
        search.report(&outcome);
    }
    panic!("no end after {STEPS_MAX} steps: {search:?}");
}

fn peak(step: SearchStep) -> (f64, String) {
    match step {
        SearchStep::Found { peak, how } => (peak, how),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_exact_server_is_found_within_three_percent() {
    for capacity in [20.0, 1_000.0, 33_333.0, 1e6] {
        let mut server = Server::exact(capacity);
        let (peak, how) = peak(search(&mut server));
        let limit = server.highest_held();
        assert!(peak <= limit && peak >= 0.97 * limit, "{peak} of {limit}");
        assert!(how.contains("was held twice"), "{how}");
        assert!(server.points <= 1 + 8 + 1, "{}", server.points);
    }
}

#[test]
fn a_search_begins_with_all_clients_and_then_at_19_twentieths_of_what_they_reached() {
    let mut search = PeakSearch::new(PeakSearchConfig::default());
    assert_eq!(search.next(), SearchStep::Saturate);
    search.report(&Server::exact(1_000.0).run(64.0, true));
    assert_eq!(search.next(), SearchStep::Probe { load: 950.0 });
    assert_eq!(search.next(), SearchStep::Probe { load: 950.0 }, "asking changes nothing");
}

#[test]
fn a_server_that_answers_nothing_is_given_up_at_once() {
    let step = search(&mut Server::exact(0.0));
    assert!(matches!(step, SearchStep::GaveUp { .. }), "{step:?}");
}

#[test]
fn a_server_that_never_holds_a_load_is_given_up_with_the_reason() {
    let step = search_with(|requested, closed| ProbeOutcome {
        held: closed,
        ..Server::exact(1_000.0).run(requested, closed)
    });
    let SearchStep::GaveUp { reason } = step else { panic!("{step:?}") };
    assert!(reason.contains("8 probes"), "{reason}");
    assert!(reason.contains("--points"), "{reason}");
}

#[test]
fn a_failed_verification_lowers_the_claim() {
    let mut opens = 0;
    let mut first_claim = None;
    let step = {
        let mut search = PeakSearch::new(PeakSearchConfig::default());
        loop {
            let outcome = match search.next() {
                SearchStep::Saturate => Server::exact(1_000.0).run(64.0, true),
                SearchStep::Probe { load } => Server::exact(1_000.0).run(load, false),
                SearchStep::Verify { load } => {
                    opens += 1;
                    first_claim.get_or_insert(load);
                    ProbeOutcome { held: opens > 2, ..Server::exact(1e9).run(load, false) }
                }
                ended => break ended,
            };
            search.report(&outcome);
        }
    };
    let (peak, how) = peak(step);
    let expected = first_claim.unwrap() * 0.95 * 0.95;
    assert!((peak / expected - 1.0).abs() < 1e-9, "{peak} {expected}");
    assert!(how.contains("3 verifications"), "{how}");
}

#[test]
fn a_limit_of_the_generator_is_said_to_be_one() {
    let (_, how) = peak(search_with(|requested, closed| {
        let outcome = Server::exact(1_000.0).run(requested, closed);
        ProbeOutcome { generator_limited: !outcome.held, ..outcome }
    }));
    assert!(how.contains("too much for the generator, not the server"), "{how}");
}

#[test]
fn outcomes_follow_the_rules_of_the_points() {
    let points = [
        PointBuilder::open(1_000.0),
        PointBuilder::open(2_000.0).achieved(1_000),
        PointBuilder::open(3_000.0).worker_busy(0.95),
    ];
    let result = analyse(&RunBuilder::of(points).raw());
    let outcomes: Vec<ProbeOutcome> = result.points.iter().map(ProbeOutcome::of).collect();
    assert_eq!(outcomes.iter().map(|o| o.held).collect::<Vec<_>>(), [true, false, false]);
    let limited: Vec<bool> = outcomes.iter().map(|o| o.generator_limited).collect();
    assert_eq!(limited, [false, false, true]);
    assert!(outcomes[1].why_not.as_ref().unwrap().starts_with("load not held"));
}

proptest! {
    #[test]
    fn every_search_ends_and_a_noisy_server_is_found_within_its_noise(
        capacity in 10.0f64..1e6,
        closed_ratio in 0.6f64..1.2,
        noise in prop::collection::vec(0.95f64..1.05, 20),
    ) {
        let mut server = Server { capacity, closed_ratio, noise, points: 0 };
        let (peak, _) = peak(search(&mut server));
        let limit = server.highest_held();
        prop_assert!(peak <= limit * 1.05 + 1e-9, "{peak} of {limit}");
        prop_assert!(peak >= limit * 0.80, "{peak} of {limit}");
    }

    #[test]
    fn whatever_happens_a_search_ends_within_its_bounds(
        outcomes in prop::collection::vec((0.0f64..1e6, any::<bool>()), 20),
    ) {
        let mut steps = 0;
        search_with(|requested, _| {
            let (achieved, held) = outcomes[steps];
            steps += 1;
            ProbeOutcome {
                requested, achieved, offered: None, held, generator_limited: false, why_not: None,
            }
        });
        prop_assert!(steps <= 1 + 8 + 6);
    }
}
