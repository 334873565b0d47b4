use plimsoll_model::bundle::{IntervalSlice, SlicePacker};
use plimsoll_model::event::{OpTimes, Phase};
use plimsoll_model::suite::ProfileName;
use proptest::prelude::*;

use super::*;
use crate::testing::assignment;

fn at_millis(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn greeting() -> Greeting {
    Greeting { version: "1.2.3".to_owned(), ..Greeting::default() }
}

fn hello() -> Input {
    Input::Message(ToAgent::Hello { version: "1.2.3".to_owned() })
}

fn plan() -> ToAgent {
    ToAgent::Plan(Box::new(PlanOrder {
        suite: String::new(),
        profile: ProfileName::Quick,
        seed: 1,
        highest_ops_per_s: None,
        targets: Vec::new(),
        run_urls: Vec::new(),
        sources: Vec::new(),
        file_set: None,
        files: Vec::new(),
        load_file: None,
        learnt: None,
        password: None,
        user: (0, 0),
    }))
}

fn point() -> ToAgent {
    ToAgent::Point(Box::new(assignment(4)))
}

/// Gives an event, and returns what the agent does, as text.
fn give(agent: &mut Agent, now: Nanos, input: Input) -> Vec<String> {
    agent.handle(now, input);
    std::iter::from_fn(|| agent.next_action()).map(|action| describe(&action)).collect()
}

fn describe(action: &Action) -> String {
    match action {
        Action::Send(FromAgent::Refused { reason }) => format!("says Refused: {reason}"),
        Action::Send(FromAgent::Ready { ordinal }) => format!("says Ready {ordinal}"),
        Action::Send(FromAgent::Clock { sent_ns, at_ns }) => format!("says {sent_ns} {at_ns}"),
        Action::Send(FromAgent::Slices(slices)) => format!("says {} slices", slices.len()),
        Action::Send(message) => {
            let text = format!("{message:?}");
            format!("says {}", text.split([' ', '(']).next().unwrap_or_default())
        }
        Action::Exit(end) => format!("ends: {end}"),
        Action::Start { at } => format!("starts at {}", at.0),
        Action::Plan(_) => "plans".to_owned(),
        Action::Prepare(assignment) => format!("prepares {}", assignment.point.ordinal),
        Action::StopLoad => "stops".to_owned(),
    }
}

/// An agent after these inputs at its start; what it did is left out.
fn after(inputs: Vec<Input>) -> Agent {
    let mut agent = Agent::new(greeting(), Pulse::default(), at_millis(0));
    for input in inputs {
        give(&mut agent, at_millis(0), input);
    }
    agent
}

fn idle() -> Vec<Input> {
    vec![hello(), Input::Message(plan()), Input::Load(LoadEvent::Planned(Ok(Vec::new())))]
}

fn preparing() -> Vec<Input> {
    idle().into_iter().chain([Input::Message(point())]).collect()
}

fn ready() -> Vec<Input> {
    preparing().into_iter().chain([Input::Load(LoadEvent::Ready(Ok(())))]).collect()
}

fn running() -> Vec<Input> {
    ready().into_iter().chain([Input::Message(ToAgent::Start { at_ns: 99 })]).collect()
}

#[test]
fn an_agent_greets_unasked_and_runs_a_point() {
    let mut agent = Agent::new(greeting(), Pulse::default(), at_millis(0));
    let finished = || Input::Load(LoadEvent::Finished(Box::default()));
    let steps = [
        (Input::Tick, vec!["says Hello"]),
        (hello(), vec![]),
        (Input::Message(plan()), vec!["plans"]),
        (Input::Load(LoadEvent::Planned(Ok(Vec::new()))), vec!["says Planned"]),
        (Input::Message(point()), vec!["prepares 4"]),
        (Input::Load(LoadEvent::Ready(Ok(()))), vec!["says Ready 4"]),
        (Input::Message(ToAgent::Clock { sent_ns: 5 }), vec!["says 5 1000000"]),
        (Input::Message(ToAgent::Start { at_ns: 99 }), vec!["starts at 99"]),
        (Input::Load(LoadEvent::Second(Box::default())), vec!["says Second"]),
        (Input::Load(LoadEvent::Slices(Vec::new())), vec![]),
        (finished(), vec!["says Finished"]),
        (finished(), vec![]),
        (
            Input::Message(ToAgent::Goodbye),
            vec!["says Goodbye", "ends: the controller said goodbye"],
        ),
        (hello(), vec![]),
    ];
    for (input, does) in steps {
        assert_eq!(give(&mut agent, at_millis(1), input), does);
    }
    assert_eq!(agent.next_deadline(), None);
}

#[test]
fn a_controller_of_another_version_ends_the_agent() {
    let hello = ToAgent::Hello { version: "1.3.0".to_owned() };
    let does = give(&mut after(vec![]), at_millis(1), Input::Message(hello));
    assert!(does[1].contains("runs Plimsoll 1.3.0, this is 1.2.3"), "{does:?}");
}

#[test]
fn every_point_that_is_stopped_ends_with_one_answer() {
    let stop = || Input::Message(ToAgent::Stop);
    assert!(give(&mut after(idle()), at_millis(1), stop()).is_empty());
    let mut agent = after(preparing());
    assert_eq!(give(&mut agent, at_millis(1), stop()), ["stops"]);
    let does = give(&mut agent, at_millis(1), Input::Load(LoadEvent::Ready(Ok(()))));
    assert_eq!(does, ["says Refused: stopped before its start"]);
    let mut agent = after(ready());
    let does = give(&mut agent, at_millis(1), stop());
    assert_eq!(does, ["stops", "says Refused: stopped before its start"]);
    assert_eq!(give(&mut agent, at_millis(1), Input::Message(point())), ["prepares 4"]);
    let mut agent = after(running());
    assert_eq!(give(&mut agent, at_millis(1), stop()), ["stops"]);
    let finished = Input::Load(LoadEvent::Finished(Box::default()));
    assert_eq!(give(&mut agent, at_millis(1), finished), ["says Finished"]);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let no = || "no".to_owned();
    let mut agent = after(vec![hello(), Input::Message(plan())]);
    let planned = Input::Load(LoadEvent::Planned(Err(no())));
    assert_eq!(give(&mut agent, at_millis(1), planned), ["says Refused: no"]);
    assert_eq!(
        give(&mut agent, at_millis(1), Input::Message(point())),
        ["says Refused: it has no plan"]
    );
    let mut agent = after(preparing());
    let ready = Input::Load(LoadEvent::Ready(Err(no())));
    assert_eq!(give(&mut agent, at_millis(1), ready), ["says Refused: no"]);
    let mut agent = after(running());
    let failed = Input::Load(LoadEvent::Failed(no()));
    assert_eq!(give(&mut agent, at_millis(1), failed), ["says Refused: no"]);
    assert_eq!(give(&mut agent, at_millis(1), Input::Message(point())), ["prepares 4"]);
}

#[test]
fn without_a_controller_the_load_ends() {
    let broken = || Input::Broken(FrameError::Cut);
    for (input, why) in [(Input::InputEnded, "without a goodbye"), (broken(), "within a message")] {
        let does = give(&mut after(running()), at_millis(1), input);
        assert_eq!(does[0], "stops");
        assert!(does[1].contains(why), "{does:?}");
    }
    let goodbye = Input::Message(ToAgent::Goodbye);
    let does = give(&mut after(running()), at_millis(1), goodbye);
    assert_eq!(does, ["stops", "says Goodbye", "ends: the controller said goodbye"]);
}

#[test]
fn three_seconds_of_silence_end_the_load_and_heartbeats_go_out_meanwhile() {
    let mut agent = after(running());
    let mut actions = Vec::new();
    while let Some(deadline) = agent.next_deadline() {
        let does = give(&mut agent, deadline, Input::Tick);
        assert!(!does.is_empty(), "woken for nothing at {deadline}");
        actions.extend(does.into_iter().map(|what| (deadline, what)));
    }
    let alive: Vec<Nanos> = (1..6).map(|n| at_millis(500 * n)).collect();
    let beats: Vec<Nanos> = actions[..5].iter().map(|(at, _)| *at).collect();
    assert_eq!(beats, alive);
    assert_eq!(actions[5], (at_millis(3_000), "stops".to_owned()));
    assert!(actions[6].1.contains("for 3.00 s"), "{actions:?}");
}

#[test]
fn bytes_of_a_long_message_are_no_silence() {
    let mut agent = after(running());
    (1..20).for_each(|n| drop(give(&mut agent, at_millis(400 * n), Input::Heard)));
    assert_eq!(agent.state, AgentState::Running);
}

#[test]
fn an_agent_that_was_stopped_itself_first_reads_what_has_come() {
    let mut agent = after(running());
    assert_eq!(give(&mut agent, at_millis(3_400), Input::Tick), ["says Alive"]);
    give(&mut agent, at_millis(3_410), Input::Message(ToAgent::Alive));
    assert_eq!(give(&mut agent, at_millis(3_900), Input::Tick), ["says Alive"]);
    let mut agent = after(running());
    give(&mut agent, at_millis(3_400), Input::Tick);
    assert_eq!(agent.next_deadline(), Some(at_millis(3_650)));
    assert_eq!(give(&mut agent, at_millis(3_650), Input::Tick)[0], "stops");
}

#[test]
fn an_agent_that_nobody_greets_ends() {
    let mut agent = after(vec![]);
    assert_eq!(agent.next_deadline(), Some(HELLO_WAIT));
    assert_eq!(give(&mut agent, at_millis(1), Input::Tick), ["says Hello"]);
    assert!(
        give(&mut agent, at_millis(5_000), Input::Tick).is_empty(),
        "it does not repeat itself"
    );
    let unexpected = give(&mut after(vec![]), at_millis(1), Input::Message(ToAgent::Alive));
    assert!(unexpected[1].contains("Alive out of turn"), "{unexpected:?}");
}

#[test]
fn slices_travel_in_messages_of_a_mebibyte() {
    let mut times = OpTimes::new();
    (1..60_000).for_each(|n| times.response.record(n * n).unwrap());
    let slice = IntervalSlice {
        second: 0,
        start: Nanos::ZERO,
        length: Nanos::from_secs(1),
        phase: Phase::Measure,
        ops: vec![times; 20],
    };
    let slice = SlicePacker::default().pack(&slice).unwrap();
    let bytes = slice.memory_bytes();
    let sizes: Vec<usize> = chunks(vec![slice; 100]).iter().map(Vec::len).collect();
    let full = (SLICES_BYTES_MAX / bytes).max(1);
    assert!(sizes[..sizes.len() - 1].iter().all(|n| *n == full), "{bytes} bytes: {sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 100);
    assert!(chunks(Vec::new()).is_empty());
}

fn any_input() -> impl Strategy<Value = Input> {
    let received =
        |message: ToAgent| Just(message).prop_map(Input::Message as fn(ToAgent) -> Input);
    let load = |event: fn() -> LoadEvent| Just(()).prop_map(move |()| Input::Load(event()));
    prop_oneof![
        Just(()).prop_map(|()| hello()),
        received(plan()),
        received(point()),
        received(ToAgent::Stop),
        received(ToAgent::Alive),
        any::<u64>().prop_map(|sent_ns| Input::Message(ToAgent::Clock { sent_ns })),
        any::<u64>().prop_map(|at_ns| Input::Message(ToAgent::Start { at_ns })),
        load(|| LoadEvent::Planned(Ok(Vec::new()))),
        load(|| LoadEvent::Ready(Ok(()))),
        load(|| LoadEvent::Second(Box::default())),
        load(|| LoadEvent::Finished(Box::default())),
        load(|| LoadEvent::Failed(String::new())),
        Just(()).prop_map(|()| Input::Tick),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_load_runs_only_between_start_and_end(
        inputs in prop::collection::vec((0_u64..1_000, any_input()), 0..60),
    ) {
        let mut agent = Agent::new(greeting(), Pulse::default(), at_millis(0));
        let (mut now, mut open) = (0, 0_i32);
        for (pause, input) in inputs {
            now += pause;
            agent.handle(at_millis(now), input);
            while let Some(action) = agent.next_action() {
                match action {
                    Action::Prepare(_) => open += 1,
                    Action::Send(FromAgent::Finished(_) | FromAgent::Refused { .. }) => {
                        open = (open - 1).max(0);
                    }
                    Action::Exit(_) => open = 0,
                    _ => {}
                }
            }
            let busy = matches!(
                agent.state,
                AgentState::Preparing { .. } | AgentState::Ready | AgentState::Running
            );
            prop_assert_eq!(open, i32::from(busy), "a load point is answered for once");
        }
    }
}
