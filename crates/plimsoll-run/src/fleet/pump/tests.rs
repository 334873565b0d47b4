use std::path::Path;
use std::sync::mpsc::channel;

use plimsoll_fleet::controller::Settings;
use plimsoll_fleet::launcher::spec;
use plimsoll_fleet::message::Greeting;

use super::*;

fn pump(value: &str) -> (Pump, Receiver<Event>, Receiver<News>) {
    let nothing = |_: &Path| Err(std::io::Error::other("no file"));
    let specs = spec::parse(&[value.to_owned()], &nothing).unwrap().agents;
    let (events, heard) = channel();
    let (news_sender, news) = channel();
    let settings = Settings::new("1.0", specs.len());
    let pump = Pump {
        controller: Controller::new(specs.len(), settings, clock::monotonic()),
        links: specs.iter().map(Link::new).collect(),
        gate: StartGate::new(&specs),
        starting: VecDeque::new(),
        program: PathBuf::from("plimsoll"),
        events,
        news: news_sender,
        endings: Vec::new(),
        note: |_| {},
    };
    (pump, heard, news)
}

#[test]
fn that_an_agent_is_lost_is_known_before_what_follows_from_it() {
    let (pump, heard, news) = pump("exec:/nowhere/at/all");
    pump.run(&heard);
    let received: Vec<News> = news.iter().collect();
    let [News::AgentLost { .. }, News::TooFew(why), News::Finished] = &received[..] else {
        panic!("{received:?}");
    };
    assert!(why[0].1.to_string().contains("cannot run /nowhere/at/all"), "{why:?}");
}

/// A controller whose one agent has greeted.
fn idle() -> Controller {
    let now = clock::monotonic();
    let mut controller = Controller::new(1, Settings::new("1", 1), now);
    let greeting = Greeting { version: "1".into(), ..Greeting::default() };
    let mut messages = vec![FromAgent::Hello(Box::new(greeting))];
    while let Some(message) = messages.pop() {
        controller.handle(now, Input::Message(AgentId(0), message));
        while let Some(action) = controller.next_action() {
            if let Action::Send(_, ToAgent::Clock { sent_ns }) = action {
                messages.push(FromAgent::Clock { sent_ns, at_ns: sent_ns });
            }
        }
    }
    assert_eq!(controller.living(), [AgentId(0)]);
    controller
}

#[test]
fn a_command_for_agents_that_are_all_gone_is_answered() {
    let (pump, heard, news) = pump("exec:true");
    let events = pump.events.clone();
    let pump = Pump { controller: idle(), ..pump };
    let pump = thread::spawn(move || pump.run(&heard));
    assert!(matches!(news.recv().unwrap(), News::AgentLost { .. }));
    for (command, answer) in
        [(Command::Point(Vec::new()), "Refused"), (Command::Finish, "Finished")]
    {
        events.send(Event::Command(command)).unwrap();
        let text = format!("{:?}", news.recv().unwrap());
        assert!(text.starts_with(answer), "{text}");
    }
    pump.join().unwrap();
}

#[test]
fn an_agent_whose_greeting_had_to_wait_is_not_taken_for_silent() {
    let (mut pump, _heard, _news) = pump("exec:true");
    let now = clock::monotonic();
    let came = now.saturating_sub(Nanos::from_millis(2_900));
    pump.controller = Controller::new(1, Settings::new("1.0", 1), came);
    let greeting = Greeting { version: "1.0".into(), ..Greeting::default() };
    let frame = encode(&FromAgent::Hello(Box::new(greeting))).unwrap();
    pump.take(AgentId(0), came, ChildEvent::Bytes(frame));
    for millis in (0..=2_500).step_by(250) {
        pump.controller.handle(now + Nanos::from_millis(millis), Input::Tick);
    }
    assert_eq!(pump.controller.living(), [AgentId(0)]);
}
