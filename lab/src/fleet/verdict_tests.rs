use super::*;

const SECOND: u64 = 1_000_000_000;

fn agent(number: u8) -> IpAddr {
    [127, 0, 0, number].into()
}

/// Each load point has a start at its second and half, a window of one second, two agents, an op of
/// each.
fn attempt(ordinal: u32, second: u64, is_counted: bool) -> Attempt {
    let started_ns = second * SECOND + SECOND / 2;
    let agents = vec![agent(1), agent(2)];
    let load = CountedLoad { started_ns, end_ns: started_ns + SECOND, ops: 2, agents };
    Attempt { ordinal, at_ns: second * SECOND, load: is_counted.then_some(load) }
}

fn request(tenths: u64, from: u8) -> Request {
    Request { at_ns: tenths * SECOND / 10, from: agent(from) }
}

/// Agent 2 fails at 13.0 s, in the second load point, which is made again at 16 s.
fn verdict_of(fault: Fault, requests: &[Request], change: impl FnOnce(&mut Story)) -> Verdict {
    let again = Attempt { at_ns: 16 * SECOND, ..attempt(2, 16, true) };
    let attempts = [attempt(1, 10, true), attempt(2, 12, false), again];
    let standings = BTreeMap::from([(1, PointState::Clean), (2, PointState::Clean)]);
    let first = (1, 10 * SECOND + SECOND / 2);
    let requests =
        [&[request(108, 1), request(108, 2), request(168, 1), request(168, 2)], requests];
    let requests = requests.concat();
    let mut story = Story {
        fault,
        agent: Some(agent(2)),
        at_ns: 13 * SECOND,
        continued_ns: None,
        resumed_ns: None,
        counted: vec![first],
        in_the_end: vec![first, (2, 16 * SECOND + SECOND / 2)],
        attempts: attempts.to_vec(),
        standings,
        requests,
    };
    change(&mut story);
    story.evaluate()
}

const GOOD: Verdict =
    Verdict { hit: 1, again: 1, lost: 0, wrongly_valid: 0, miscounted: 0, late_requests: 0 };

#[test]
fn a_load_point_that_is_made_again_is_as_it_must_be() {
    // Of the dead agent there would be no requests in it.
    let of_the_other = |story: &mut Story| story.agent = None;
    let during = [request(132, 1), request(139, 1)];
    assert_eq!(verdict_of(Fault::Kill, &during, of_the_other), GOOD);
    assert_eq!(verdict_of(Fault::Controller, &during, of_the_other), GOOD);
}

#[test]
fn load_that_goes_on_is_counted_from_the_end_of_the_grace_to_the_next_start() {
    let of_the_other = |story: &mut Story| story.agent = None;
    let during = [request(139, 1), request(141, 1), request(159, 1)];
    let late = |fault| verdict_of(fault, &during, of_the_other).late_requests;
    assert_eq!((late(Fault::Kill), late(Fault::Controller), late(Fault::Cut)), (2, 2, 0));
    let resumed = |story: &mut Story| {
        (story.agent, story.resumed_ns) = (None, Some(15 * SECOND));
    };
    assert_eq!(verdict_of(Fault::Controller, &during, resumed).late_requests, 1);
}

#[test]
fn an_agent_that_failed_makes_no_load_in_what_follows() {
    let nothing = |_: &mut Story| {};
    assert_eq!(verdict_of(Fault::Kill, &[], nothing).late_requests, 1);
    // At 16.8 s, by the fourth second.
    assert_eq!(verdict_of(Fault::Cut, &[], nothing).late_requests, 0);
    let continued = |at_ns| move |story: &mut Story| story.continued_ns = Some(at_ns);
    assert_eq!(verdict_of(Fault::Stop, &[], continued(14 * SECOND)).late_requests, 1);
    assert_eq!(verdict_of(Fault::Stop, &[], continued(16 * SECOND)).late_requests, 0);
}

#[test]
fn a_load_point_in_which_an_agent_failed_may_not_be_valid() {
    let attempts = [attempt(1, 10, true), attempt(2, 12, true)];
    let stopped = |story: &mut Story| {
        (story.attempts, story.continued_ns) = (attempts.to_vec(), Some(13 * SECOND + 1));
    };
    let verdict = verdict_of(Fault::Stop, &[request(131, 1), request(131, 2)], stopped);
    // The requests at 16.8 s are those of another load point.
    let expected = Verdict { again: 0, wrongly_valid: 1, miscounted: 1, ..GOOD };
    assert_eq!(verdict, expected);
    let wrongly_valid = |fault, state| {
        let change = |story: &mut Story| {
            story.attempts = attempts.to_vec();
            story.standings.insert(2, state);
        };
        verdict_of(fault, &[], change).wrongly_valid
    };
    assert_eq!(wrongly_valid(Fault::Stop, PointState::Warned), 0);
    assert_eq!(wrongly_valid(Fault::Kill, PointState::Warned), 1);
    assert_eq!(wrongly_valid(Fault::Kill, PointState::Out), 0);
}

#[test]
fn a_counted_load_point_that_is_gone_or_there_twice_is_lost() {
    let first = (1, 10 * SECOND + SECOND / 2);
    let lost = |in_the_end: &[Counted]| {
        let change = |story: &mut Story| {
            (story.agent, story.in_the_end) = (None, in_the_end.to_vec());
        };
        verdict_of(Fault::Controller, &[], change).lost
    };
    assert_eq!([lost(&[first]), lost(&[]), lost(&[first, first]), lost(&[(1, 7)])], [0, 1, 1, 1]);
    let change = |story: &mut Story| story.standings.clear();
    assert_eq!(verdict_of(Fault::Controller, &[], change).lost, 1);
}

#[test]
fn a_failure_between_load_points_hits_none() {
    let change = |story: &mut Story| story.at_ns = 11 * SECOND + SECOND / 2 + 1;
    let verdict = verdict_of(Fault::Stop, &[], change);
    assert_eq!((verdict.hit, verdict.again, verdict.late_requests), (0, 0, 0));
}
