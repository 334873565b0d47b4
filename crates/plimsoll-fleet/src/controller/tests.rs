mod fleet;

use plimsoll_model::outcome::ErrorSample;
use proptest::prelude::*;

use super::*;
use crate::frame::FrameError;
use crate::message::{FromAgent, Greeting, PointReport};
use crate::testing::assignment;
use fleet::{Fleet, HOUR_NS, hello, plan};

fn finished(started_ns: u64) -> FromAgent {
    FromAgent::Finished(Box::new(PointReport { started_ns, ..PointReport::default() }))
}

fn refused() -> FromAgent {
    FromAgent::Refused { reason: "no".to_owned() }
}

#[test]
fn a_run_begins_when_all_have_greeted_and_their_clocks_are_known() {
    let mut fleet = Fleet::new(2, 2);
    fleet.receive(1, hello("1.2.3"));
    assert!(fleet.take_news().iter().all(|news| !matches!(news, News::Gathered)));
    fleet.receive(0, hello("1.2.3"));
    let news = fleet.take_news();
    let [News::Greeted(AgentId(0), _), News::Clock(AgentId(0), reading), News::Gathered] =
        &news[..]
    else {
        panic!("{news:?}")
    };
    assert_eq!((reading.offset_ns, reading.bound), (10_000, Nanos(20_000)));
    assert_eq!(fleet.sent_to(0), ["Hello"]);
    assert_eq!(fleet.controller.living(), [AgentId(0), AgentId(1)]);
}

#[test]
fn another_version_is_refused_with_both_named() {
    let mut fleet = Fleet::new(2, 1);
    fleet.receive(0, hello("1.3.0"));
    assert_eq!(fleet.ended, [AgentId(0)]);
    let lost = fleet.lost();
    assert!(lost[0].1.contains("runs Plimsoll 1.3.0, this is 1.2.3"), "{lost:?}");
    fleet.receive(1, hello("1.2.3"));
    assert!(matches!(fleet.take_news().last(), Some(News::Gathered)));
}

#[test]
fn an_agent_with_another_program_than_was_sent_is_refused() {
    let mut fleet = Fleet::new(2, 1);
    for agent in 0..2 {
        fleet.controller.expect_program(AgentId(agent), "0a");
    }
    let of = |sha256: &str| {
        let FromAgent::Hello(greeting) = hello("1.2.3") else { panic!() };
        let program_sha256 = sha256.to_owned();
        FromAgent::Hello(Box::new(Greeting { program_sha256, ..*greeting }))
    };
    fleet.receive(0, of("0b"));
    let lost = fleet.lost();
    assert!(lost[0].1.contains("SHA-256 0b, and --deploy has sent 0a"), "{lost:?}");
    fleet.receive(1, of("0a"));
    assert!(matches!(fleet.take_news().last(), Some(News::Gathered)));
}

#[test]
fn too_few_agents_end_the_run_with_the_reason_of_each() {
    let mut fleet = Fleet::new(3, 3);
    fleet.receive(0, hello("1.2.3"));
    let first = b"Welcome".to_vec();
    fleet.give(Input::Broken(AgentId(2), FrameError::NotAFrame { first, frames: 0 }));
    let news = fleet.take_news();
    let Some(News::TooFew(reasons)) = news.last() else { panic!("{news:?}") };
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].1.to_string().contains("Welcome"));
    assert_eq!(fleet.sent_to(0), ["Hello", "Goodbye"]);
    assert_eq!(fleet.ended, [AgentId(2), AgentId(1)], "whoever has not come is not waited for");
    fleet.receive(0, FromAgent::Goodbye);
    fleet.give(Input::Ended(AgentId(0), "exit status: 0".to_owned()));
    assert!(matches!(fleet.take_news()[..], [News::Finished]));
}

#[test]
fn after_the_wait_enough_agents_make_a_run() {
    let mut fleet = Fleet::new(3, 2);
    fleet.receive(0, hello("1.2.3"));
    fleet.receive(2, hello("1.2.3"));
    fleet.take_news();
    fleet.pass(Nanos::from_secs(61), &[]);
    let news = fleet.take_news();
    assert!(
        matches!(
            &news[..],
            [News::AgentLost { agent: AgentId(1), why: Loss::Absent(_) }, News::Gathered]
        ),
        "{news:?}"
    );
}

#[test]
fn a_plan_ends_when_everyone_has_answered_or_is_lost() {
    let mut fleet = Fleet::planned(3);
    fleet.take_news();
    fleet.give(Input::Command(plan()));
    fleet.receive(0, refused());
    fleet.give(Input::Ended(AgentId(1), "exit status: 137".to_owned()));
    assert_eq!(fleet.lost(), [(1, "exit status: 137".to_owned())]);
    fleet.give(Input::Command(plan()));
    assert!(matches!(fleet.take_news()[..], [News::Refused(_)]), "one command at a time");
    fleet.receive(2, FromAgent::Planned { routes: Vec::new() });
    let news = fleet.take_news();
    let [News::Routes(AgentId(2), _), News::PlanFailed(failed)] = &news[..] else {
        panic!("{news:?}")
    };
    let failed: Vec<String> = failed.iter().map(|(id, why)| format!("{} {why}", id.0)).collect();
    assert_eq!(failed, ["0 no", "1 exit status: 137"]);
}

#[test]
fn a_point_starts_at_one_instant_of_every_clock() {
    let mut fleet = Fleet::planned(3);
    fleet.take_news();
    fleet.begin(3);
    [2, 0].iter().for_each(|agent| fleet.receive(*agent, FromAgent::Ready { ordinal: 4 }));
    assert!(fleet.take_news().is_empty());
    fleet.receive(1, FromAgent::Ready { ordinal: 4 });
    let news = fleet.take_news();
    let [News::Ready, News::Started { at }] = news[..] else { panic!("{news:?}") };
    let starts: Vec<u64> = fleet
        .sent
        .iter()
        .filter_map(|(_, message)| match message {
            ToAgent::Start { at_ns } => Some(*at_ns),
            _ => None,
        })
        .collect();
    let expected: Vec<u64> = (0..3).map(|hours| at.0 + hours * HOUR_NS + 10_000).collect();
    assert_eq!(starts, expected);
    assert_eq!(at, fleet.now + Nanos::from_millis(300));
}

#[test]
fn a_point_finishes_with_all_reports_and_what_is_known_of_the_clocks() {
    let mut fleet = Fleet::running(2);
    fleet.take_news();
    fleet.receive(1, FromAgent::Second(Box::default()));
    fleet.receive(0, FromAgent::Slices(Vec::new()));
    fleet.receive(0, finished(1_000));
    assert!(matches!(fleet.take_news()[..], [News::Second(AgentId(1), _)]));
    fleet.receive(1, finished(HOUR_NS + 1_700));
    let news = fleet.take_news();
    let [News::PointFinished(reports)] = &news[..] else { panic!("{news:?}") };
    let agents: Vec<usize> = reports.iter().map(|report| report.agent.0).collect();
    assert_eq!(agents, [0, 1]);
    assert_eq!(reports[1].clock.offset_ns, HOUR_NS as i64 + 10_000);
    assert_eq!(reports[1].clock.bound, Nanos(40_000), "both were asked at once");
    assert_eq!((reports[0].start_skew, reports[1].start_skew), (Nanos(0), Nanos(700)));
    fleet.begin(2);
    assert_eq!(fleet.sent_to(0).last().unwrap(), "Point");
}

#[test]
fn a_point_without_one_of_its_agents_is_lost_and_the_others_can_begin_another() {
    let mut fleet = Fleet::running(3);
    fleet.receive(2, finished(0));
    fleet.take_news();
    (0..3).for_each(|agent| drop(fleet.sent_to(agent)));
    fleet.give(Input::Ended(AgentId(1), "exit status: 255".to_owned()));
    assert_eq!(fleet.lost(), [(1, "exit status: 255".to_owned())]);
    assert_eq!(fleet.sent_to(0), ["Stop"]);
    assert!(fleet.sent_to(2).is_empty(), "its part is over");
    fleet.receive(0, FromAgent::Second(Box::default()));
    assert!(fleet.take_news().is_empty(), "of a point that does not count");
    fleet.receive(0, finished(0));
    let news = fleet.take_news();
    assert!(matches!(news[..], [News::PointLost { agent: AgentId(1), .. }]), "{news:?}");
    fleet.begin(3);
    [0, 2].iter().for_each(|agent| fleet.receive(*agent, FromAgent::Ready { ordinal: 4 }));
    [0, 2].iter().for_each(|agent| fleet.receive(*agent, finished(7)));
    assert!(
        matches!(fleet.take_news().last(), Some(News::PointFinished(reports)) if reports.len() == 2)
    );
}

#[test]
fn an_agent_that_cannot_run_a_point_stays_for_the_next() {
    let mut fleet = Fleet::planned(2);
    fleet.begin(2);
    fleet.receive(0, FromAgent::Ready { ordinal: 4 });
    fleet.take_news();
    fleet.receive(1, refused());
    assert_eq!(fleet.sent_to(0).last().unwrap(), "Stop");
    assert!(fleet.take_news().is_empty());
    fleet.receive(0, FromAgent::Refused { reason: "stopped".to_owned() });
    let news = fleet.take_news();
    let [News::PointLost { agent, why }] = &news[..] else { panic!("{news:?}") };
    assert_eq!((agent.0, why), (1, &Failure::Refused("no".to_owned())));
    assert_eq!(fleet.controller.living().len(), 2);
}

#[test]
fn a_point_with_an_agent_that_is_gone_is_lost_at_once() {
    let mut fleet = Fleet::planned(2);
    fleet.give(Input::Ended(AgentId(1), "gone".to_owned()));
    fleet.take_news();
    let point = vec![(AgentId(0), assignment(1)), (AgentId(1), assignment(1))];
    fleet.give(Input::Command(Command::Point(point)));
    assert!(matches!(fleet.take_news()[..], [News::PointLost { agent: AgentId(1), .. }]));
    for agents in [vec![], vec![0, 0], vec![7]] {
        let point = agents.into_iter().map(|id| (AgentId(id), assignment(1))).collect();
        fleet.give(Input::Command(Command::Point(point)));
        assert!(matches!(fleet.take_news()[..], [News::Refused(_)]));
    }
    fleet.begin(2);
    assert_eq!(fleet.sent_to(0).last().unwrap(), "Point");
}

#[test]
fn three_seconds_of_silence_lose_an_agent_and_heartbeats_keep_the_others() {
    let mut fleet = Fleet::running(2);
    fleet.take_news();
    drop(fleet.sent_to(0));
    fleet.pass(Nanos::from_millis(2_900), &[1]);
    assert!(fleet.take_news().is_empty());
    fleet.pass(Nanos::from_millis(200), &[1]);
    let lost = fleet.lost();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].1.contains("for 3.00 s"), "{lost:?}");
    assert_eq!(fleet.sent_to(0), ["Alive", "Alive", "Alive", "Alive", "Alive", "Stop"]);
}

#[test]
fn a_controller_that_was_stopped_itself_first_reads_what_has_come() {
    let mut fleet = Fleet::running(2);
    fleet.take_news();
    fleet.now += Nanos::from_secs(20);
    fleet.give(Input::Tick);
    fleet.receive(0, FromAgent::Alive);
    assert!(fleet.take_news().is_empty());
    fleet.pass(Nanos::from_millis(300), &[1]);
    assert_eq!(fleet.lost().len(), 1, "the other one is gone");
}

#[test]
fn an_agent_that_lives_but_does_nothing_is_lost() {
    let mut fleet = Fleet::running(2);
    fleet.receive(0, finished(0));
    fleet.take_news();
    fleet.pass(Nanos::from_secs(123), &[]);
    assert!(fleet.take_news().is_empty());
    fleet.pass(Nanos::from_secs(3), &[]);
    let lost = fleet.lost();
    assert_eq!(lost[0].0, 1);
    assert!(lost[0].1.contains("did not finish the load point"), "{lost:?}");
}

#[test]
fn a_message_out_of_turn_loses_its_agent() {
    let cases: [(Fleet, FromAgent, &str); 6] = [
        (Fleet::planned(1), hello("1.2.3"), "Hello while it had no order"),
        (Fleet::planned(1), finished(0), "Finished while"),
        (Fleet::running(1), FromAgent::Ready { ordinal: 4 }, "Ready while running"),
        (Fleet::running(1), FromAgent::Clock { sent_ns: 1, at_ns: 1 }, "another question"),
        (Fleet::running(1), FromAgent::Goodbye, "left unasked"),
        (Fleet::new(1, 1), FromAgent::Alive, "Alive while it should greet"),
    ];
    for (mut fleet, message, why) in cases {
        fleet.take_news();
        fleet.receive(0, message);
        let lost = fleet.lost();
        assert!(lost.len() == 1 && lost[0].1.contains(why), "{lost:?}");
        assert_eq!(fleet.ended, [AgentId(0)]);
        fleet.receive(0, FromAgent::Alive);
        assert!(fleet.lost().is_empty(), "it is lost once");
    }
}

#[test]
fn a_stop_during_the_load_keeps_the_reports() {
    let mut fleet = Fleet::running(2);
    fleet.take_news();
    fleet.give(Input::Command(Command::Stop));
    fleet.give(Input::Command(Command::Stop));
    assert_eq!(fleet.sent_to(1).iter().filter(|word| *word == "Stop").count(), 1);
    fleet.receive(0, finished(0));
    fleet.receive(1, finished(0));
    assert!(matches!(fleet.take_news()[..], [News::PointFinished(_)]));
}

#[test]
fn a_stop_before_the_start_leaves_no_point() {
    let mut fleet = Fleet::planned(2);
    fleet.begin(2);
    fleet.receive(0, FromAgent::Ready { ordinal: 4 });
    fleet.take_news();
    fleet.give(Input::Command(Command::Stop));
    fleet.receive(0, refused());
    // Its answer and the order to stop crossed.
    fleet.receive(1, FromAgent::Ready { ordinal: 4 });
    assert!(fleet.take_news().is_empty());
    fleet.receive(1, refused());
    assert!(matches!(fleet.take_news()[..], [News::PointStopped]));
    fleet.begin(2);
    assert_eq!(fleet.sent_to(1).last().unwrap(), "Point");
}

#[test]
fn the_answer_to_a_question_of_a_lost_point_counts_in_the_next() {
    let mut fleet = Fleet::planned(2);
    fleet.deaf = vec![AgentId(0)];
    fleet.begin(2);
    (0..2).for_each(|agent| fleet.receive(agent, FromAgent::Ready { ordinal: 4 }));
    let question_ns = fleet.sent.iter().find_map(|(_, message)| match message {
        ToAgent::Clock { sent_ns } => Some(*sent_ns),
        _ => None,
    });
    fleet.give(Input::Ended(AgentId(1), "gone".to_owned()));
    fleet.receive(0, refused());
    fleet.take_news();
    fleet.deaf.clear();
    fleet.begin(1);
    fleet.receive(0, FromAgent::Ready { ordinal: 4 });
    let sent_ns = question_ns.unwrap();
    fleet.receive(0, FromAgent::Clock { sent_ns, at_ns: sent_ns });
    assert!(matches!(fleet.take_news()[..], [News::Ready, News::Started { .. }]));
}

#[test]
fn samples_beyond_what_a_point_can_have_are_counted() {
    let mut fleet = Fleet::running(1);
    fleet.take_news();
    let sample =
        ErrorSample { op: String::new(), class: String::new(), detail: String::new(), at_ns: 0 };
    (0..2_000).for_each(|_| fleet.receive(0, FromAgent::Sample(sample.clone())));
    (0..100).for_each(|_| fleet.receive(0, FromAgent::Second(Box::default())));
    let delivered = fleet.take_news().len();
    fleet.receive(0, finished(0));
    let news = fleet.take_news();
    let [News::PointFinished(reports)] = &news[..] else { panic!("{news:?}") };
    assert!(delivered < 1_100);
    assert_eq!(reports[0].dropped + delivered as u64, 2_100);
}

#[test]
fn a_run_finishes_also_without_those_that_do_not_say_goodbye() {
    let mut fleet = Fleet::running(2);
    fleet.take_news();
    fleet.give(Input::Command(Command::Finish));
    assert_eq!(fleet.sent_to(0).last().unwrap(), "Goodbye");
    fleet.receive(0, FromAgent::Second(Box::default()));
    fleet.receive(0, FromAgent::Goodbye);
    assert_eq!(fleet.ended, [AgentId(0)]);
    fleet.give(Input::Ended(AgentId(0), "exit status: 0".to_owned()));
    assert!(fleet.take_news().is_empty());
    fleet.pass(Nanos::from_secs(4), &[]);
    let news = fleet.take_news();
    assert!(
        matches!(news[..], [News::AgentLost { agent: AgentId(1), .. }, News::Finished]),
        "{news:?}"
    );
    assert_eq!(fleet.controller.next_deadline(), None);
}

#[test]
fn a_stream_that_ends_without_a_goodbye_is_a_loss() {
    let mut fleet = Fleet::planned(1);
    fleet.take_news();
    fleet.give(Input::Command(Command::Finish));
    fleet.give(Input::Ended(AgentId(0), "exit status: 0".to_owned()));
    assert!(matches!(fleet.take_news()[..], [News::AgentLost { .. }, News::Finished]));
}

fn any_message() -> impl Strategy<Value = FromAgent> {
    prop_oneof![
        Just(hello("1.2.3")),
        Just(FromAgent::Planned { routes: Vec::new() }),
        Just(FromAgent::Ready { ordinal: 4 }),
        Just(refused()),
        Just(FromAgent::Second(Box::default())),
        Just(FromAgent::Slices(Vec::new())),
        any::<u64>().prop_map(finished),
        Just(FromAgent::Alive),
        (0..3_u64, any::<u64>()).prop_map(|(sent_ns, at_ns)| FromAgent::Clock { sent_ns, at_ns }),
        Just(FromAgent::Goodbye),
    ]
}

#[derive(Clone, Debug)]
enum Happening {
    Message(usize, FromAgent),
    Ended(usize),
    Plan,
    Point,
    Stop,
    Finish,
    Time(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        24 => (0..4_usize, any_message()).prop_map(|(agent, message)| Happening::Message(agent, message)),
        1 => (0..4_usize).prop_map(Happening::Ended),
        3 => Just(Happening::Plan),
        3 => Just(Happening::Point),
        1 => Just(Happening::Stop),
        1 => Just(Happening::Finish),
        4 => (0..2_000_u64).prop_map(Happening::Time),
    ]
}

fn ends_a_point(news: &News) -> bool {
    matches!(news, News::PointFinished(_) | News::PointLost { .. } | News::PointStopped)
}

proptest! {
    #[test]
    fn whatever_agents_say_a_run_ends_and_a_point_ends_once(
        happenings in prop::collection::vec(happening(), 0..120),
    ) {
        let mut fleet = Fleet::new(3, 1);
        let mut points = 0_usize;
        for happening in happenings {
            match happening {
                Happening::Message(agent, message) => fleet.receive(agent, message),
                Happening::Ended(agent) => fleet.give(Input::Ended(AgentId(agent), String::new())),
                Happening::Plan => fleet.give(Input::Command(plan())),
                Happening::Point if !fleet.controller.living().is_empty() => {
                    points += 1;
                    fleet.begin(3);
                }
                Happening::Point => {}
                Happening::Stop => fleet.give(Input::Command(Command::Stop)),
                Happening::Finish => fleet.give(Input::Command(Command::Finish)),
                Happening::Time(millis) => {
                    fleet.now += Nanos::from_millis(millis);
                    fleet.give(Input::Tick);
                }
            }
            let ends = fleet.news.iter().filter(|news| ends_a_point(news));
            prop_assert!(ends.count() <= points);
        }
        fleet.give(Input::Command(Command::Finish));
        fleet.pass(Nanos::from_secs(5), &[]);
        prop_assert!(matches!(fleet.news.last(), Some(News::Finished)));
        prop_assert_eq!(fleet.controller.next_deadline(), None);
    }
}

#[test]
fn clocks_are_asked_a_few_at_a_time() {
    let mut fleet = Fleet::new(12, 1);
    fleet.deaf = (0..12).map(AgentId).collect();
    (0..12).for_each(|agent| fleet.receive(agent, hello("1.2.3")));
    let requested = |fleet: &mut Fleet| -> Vec<usize> {
        let sent = std::mem::take(&mut fleet.sent).into_iter();
        let clocks = sent.filter(|(_, message)| matches!(message, ToAgent::Clock { .. }));
        clocks.map(|(agent, _)| agent.0).collect()
    };
    assert_eq!(requested(&mut fleet), [0, 1, 2, 3, 4, 5, 6, 7]);
    fleet.give(Input::Ended(AgentId(3), "killed".to_owned()));
    assert_eq!(requested(&mut fleet), [8]);
}
