//! Controller and agent with arbitrary bytes from the other side.

use plimsoll_fleet::agent::{self, Agent, LoadEvent};
use plimsoll_fleet::controller::{self, AgentId, Command, Controller, Settings};
use plimsoll_fleet::frame::{Decoder, encode};
use plimsoll_fleet::message::{FromAgent, Greeting, ToAgent};
use plimsoll_fleet::pulse::Pulse;
use plimsoll_model::units::Nanos;

/// Between two messages: long enough for heartbeats.
const PAUSE: Nanos = Nanos::from_millis(200);
/// A run has ended this long after its last command.
const END: Nanos = Nanos::from_secs(5);

/// Feeds a controller the bytes of a hostile agent, or an agent those of a hostile controller. The
/// first byte chooses which, the second the length of the pieces; the rest is the data.
pub fn fleet(data: &[u8]) {
    let [choice, piece, input @ ..] = data else { return };
    let pieces = input.chunks(usize::from(*piece) + 1);
    match choice & 1 {
        0 => from_agent(pieces),
        _ => to_agent(pieces),
    }
}

fn from_agent<'a>(pieces: impl Iterator<Item = &'a [u8]>) {
    let settings = Settings::new("", 1);
    let mut controller = Controller::new(1, settings, Nanos::ZERO);
    let (mut decoder, mut now) = (Decoder::default(), Nanos::ZERO);
    for piece in pieces {
        decoder.push(piece);
        loop {
            now += PAUSE;
            let input = match decoder.next::<FromAgent>() {
                Ok(Some(message)) => controller::Input::Message(AgentId(0), message),
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    controller.handle(now, controller::Input::Broken(AgentId(0), error));
                    break;
                }
            };
            controller.handle(now, input);
            while let Some(action) = controller.next_action() {
                if let controller::Action::Send(_, message) = action {
                    encode(&message).expect("an answer is short");
                }
            }
        }
    }
    controller.handle(now, controller::Input::Command(Command::Finish));
    controller.handle(now + END, controller::Input::Tick);
    controller.handle(now + END + PAUSE + PAUSE, controller::Input::Tick);
    assert_eq!(controller.next_deadline(), None, "the run has not ended");
}

fn to_agent<'a>(pieces: impl Iterator<Item = &'a [u8]>) {
    let mut agent = Agent::new(Greeting::default(), Pulse::default(), Nanos::ZERO);
    let (mut decoder, mut now) = (Decoder::default(), Nanos::ZERO);
    for piece in pieces {
        decoder.push(piece);
        loop {
            now += PAUSE;
            match decoder.next::<ToAgent>() {
                Ok(Some(message)) => agent.handle(now, agent::Input::Message(message)),
                Ok(None) => break,
                Err(error) => {
                    agent.handle(now, agent::Input::Broken(error));
                    break;
                }
            }
            answer(&mut agent, now);
        }
    }
    agent.handle(now, agent::Input::InputEnded);
    assert_eq!(agent.next_deadline(), None, "the agent has not ended");
}

/// The load fulfils its requests at once.
fn answer(agent: &mut Agent, now: Nanos) {
    while let Some(action) = agent.next_action() {
        let event = match action {
            agent::Action::Send(message) => {
                encode(&message).expect("an answer is short");
                continue;
            }
            agent::Action::Plan(_) => LoadEvent::Planned(Ok(Vec::new())),
            agent::Action::Prepare(_) => LoadEvent::Ready(Ok(())),
            agent::Action::StopLoad => LoadEvent::Finished(Box::default()),
            agent::Action::Start { .. } | agent::Action::Exit(_) => continue,
        };
        agent.handle(now, agent::Input::Load(event));
    }
}
