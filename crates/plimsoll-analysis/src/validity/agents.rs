//! Rules on the generator where many agents make the load: each agent is judged by itself.

use plimsoll_model::event::{AgentPoint, PointRecord};
use plimsoll_model::finding::Rule;
use plimsoll_model::units::Nanos;

use super::load::chance_of_share;
use super::{Check, Evidence};
use crate::agents::part_of;
use crate::raw::PointView;

/// An agent's clock may be uncertain by this much …
const CLOCK_BOUND_MAX: Nanos = Nanos::from_millis(1);
/// … or by this part of the window, if that is less.
const CLOCK_BOUND_OF_WINDOW_RATIO: f64 = 0.01;

/// What a rule finds of this program, or of the first of its agents that breaks it.
pub(super) fn of_each(e: &Evidence<'_>, check: Check) -> Option<Rule> {
    if e.view.record.agents.is_empty() {
        return check(e);
    }
    let found = e.view.record.agents.iter().enumerate().filter_map(|(index, agent)| {
        let record = part_of(e.view.record, index);
        let view = PointView { record: &record, samples: e.view.samples, lost: e.view.lost };
        Some((agent, check(&Evidence { view: &view, ..*e })?))
    });
    named(found)
}

/// The start of an agent's load is known to less than it must be.
pub(super) fn clock(e: &Evidence<'_>) -> Option<Rule> {
    let agents = e.view.record.agents.iter();
    named(agents.filter_map(|agent| Some((agent, clock_of(e.view.record, agent)?))))
}

fn clock_of(record: &PointRecord, agent: &AgentPoint) -> Option<Rule> {
    let of_window = Nanos((record.measured_ns.0 as f64 * CLOCK_BOUND_OF_WINDOW_RATIO) as u64);
    let limit_ns = CLOCK_BOUND_MAX.min(of_window);
    let (bound_ns, drift_ns) = (agent.clock.bound, agent.clock.drift_ns);
    (bound_ns > limit_ns).then_some(Rule::AgentClock { bound_ns, limit_ns, drift_ns })
}

/// Each agent's ops against the part that its workers are of all. Where the load is to be spread
/// evenly over networks, agents are on these networks, and their shares follow their workers.
pub(super) fn shares(e: &Evidence<'_>) -> Option<Rule> {
    let limit_ratio = e.suite.rules.target_share_max_ratio?;
    let agents = &e.view.record.agents;
    let workers: u32 = agents.iter().map(|agent| agent.workers).sum();
    let done: u64 = agents.iter().map(|agent| agent.done).sum();
    let uneven = |agent: &AgentPoint| {
        let share = f64::from(agent.workers) / f64::from(workers);
        let part = share * done as f64;
        let off_ratio = (agent.done as f64 - part).abs() / part;
        (off_ratio > limit_ratio.max(chance_of_share(share, done))).then(|| Rule::AgentShares {
            ops: agent.done,
            part_ops: part.round() as u64,
            off_ratio,
            limit_ratio,
        })
    };
    let working = agents.iter().filter(|agent| agent.workers > 0 && done > 0);
    named(working.filter_map(|agent| Some((agent, uneven(agent)?))))
}

/// The first finding, with its agent and the number of the others.
fn named<'a>(mut found: impl Iterator<Item = (&'a AgentPoint, Rule)>) -> Option<Rule> {
    let (agent, rule) = found.next()?;
    Some(Rule::OfAgent {
        agent: agent.name.clone(),
        host: agent.host.clone(),
        others: found.count() as u32,
        rule: Box::new(rule),
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::ClockOffset;

    use super::*;
    use crate::testing::{PointBuilder, TestPoint};

    fn of_two() -> TestPoint {
        let mut point = PointBuilder::open(1_000.0).build();
        let worker = point.record.workers[0].clone();
        point.record.workers.push(worker);
        point.record.agents = ["ssh://a", "ssh://b"]
            .map(|name| AgentPoint {
                name: name.to_owned(),
                host: "host".to_owned(),
                workers: 1,
                ..AgentPoint::default()
            })
            .into();
        point
    }

    #[test]
    fn the_agent_whose_worker_is_starved_is_named() {
        let mut point = of_two();
        assert!(point.verdict().valid, "{:?}", point.verdict());
        for health in &mut point.record.workers[1] {
            health.cpu_ns = health.wall_ns;
        }
        let verdict = point.verdict();
        let rule = &verdict.reasons[0].rule;
        let text = rule.to_string();
        assert_eq!(rule.name(), "generator_cpu");
        assert!(text.starts_with("agent ssh://b on host: "), "{text}");
    }

    #[test]
    fn agents_share_the_load_by_their_workers_where_the_suite_wants_it() {
        let point = |first: u64, workers: [u32; 2]| {
            let mut point = of_two();
            point.suite.rules.target_share_max_ratio = Some(0.05);
            for (agent, (done, workers)) in
                point.record.agents.iter_mut().zip([first, 30_000 - first].into_iter().zip(workers))
            {
                (agent.done, agent.workers) = (done, workers);
            }
            point
        };
        let uneven = |point: TestPoint| {
            let reasons = point.verdict().reasons;
            let found = reasons.iter().find(|found| found.rule.name() == "agent_shares");
            found.map(|found| found.rule.to_string())
        };
        // A twentieth of 15,000 ops is 750.
        assert_eq!(uneven(point(14_260, [1, 1])), None);
        let text = uneven(point(14_240, [1, 1])).unwrap();
        assert!(text.starts_with("agent ssh://a on host (and one more agent): did"), "{text}");
        assert!(text.contains("14,240 ops where its part is 15,000: 5.1 % off (limit 5"), "{text}");
        assert_eq!(uneven(point(10_000, [1, 2])), None);
        assert!(uneven(point(15_000, [1, 2])).is_some());
        let mut unasked = point(1_000, [1, 1]);
        unasked.suite.rules.target_share_max_ratio = None;
        assert_eq!(uneven(unasked), None);
    }

    #[test]
    fn a_clock_that_is_known_too_little_is_a_warning() {
        let mut point = of_two();
        point.record.agents[0].clock =
            ClockOffset { offset_ns: 5, bound: Nanos::from_millis(2), drift_ns: 1_000 };
        let verdict = point.verdict();
        let text = verdict.warnings[0].rule.to_string();
        assert!(verdict.valid && verdict.warnings[0].rule.name() == "agent_clock");
        assert!(text.contains("within 2.00 ms only (limit 1.00 ms)"), "{text}");
    }
}
