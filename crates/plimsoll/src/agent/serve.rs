//! `plimsoll agent`: the agent's state machine between its standard input and output and its load.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use plimsoll_engine::clock;
use plimsoll_fleet::agent::{Action, Agent, AgentEnd, Input, LoadEvent};
use plimsoll_fleet::frame::{Decoder, encode};
use plimsoll_fleet::launcher::allow::Allowance;
use plimsoll_fleet::message::Greeting;
use plimsoll_fleet::pulse::Pulse;
use plimsoll_model::units::Nanos;

use super::load::{Job, Loader};
use crate::exit::Failure;
use crate::signals::Signals;

/// Bytes that one read takes.
const READ_BYTES: usize = 256 * 1_024;
/// How long what was sent may take to leave at the end.
const LAST_WORDS: Nanos = Nanos::from_millis(500);
/// Longest wait for something to happen.
const LOOK_UP: Duration = Duration::from_millis(200);

/// What the threads of an agent tell its state machine.
enum Event {
    /// Bytes of the controller, and when they came.
    Bytes(Vec<u8>, Nanos),
    /// The controller's stream has ended.
    End,
    Load(LoadEvent),
}

/// Serves a controller until it goes.
pub(crate) fn serve(
    greeting: Greeting,
    allowed: Allowance,
    signals: &Signals,
) -> Result<AgentEnd, Failure> {
    let (events, heard) = channel();
    let unusable = |e: std::io::Error| Failure::unusable(format!("cannot start a thread: {e}"));
    let to_input = events.clone();
    thread::Builder::new()
        .name("plimsoll-input".into())
        .spawn(move || read_input(&to_input))
        .map_err(unusable)?;
    let (frames, to_write) = channel();
    let output = thread::Builder::new()
        .name("plimsoll-output".into())
        .spawn(move || write_output(&to_write))
        .map_err(unusable)?;
    let say = move |event| {
        let _ = events.send(Event::Load(event));
    };
    let allowed = Arc::new(allowed);
    let for_load = (greeting.cores.clone(), Arc::clone(&allowed));
    let loader = Loader::start(signals, for_load, say)?;
    let machine = Agent::new(greeting, Pulse::default(), clock::monotonic());
    let driver = Driver { machine, decoder: Decoder::default(), frames, loader, allowed };
    let end = driver.run(&heard, signals);
    // The queue is closed with the driver: what was sent leaves, unless nobody reads.
    let written = clock::monotonic() + LAST_WORDS;
    while !output.is_finished() && clock::monotonic() < written {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(end)
}

fn read_input(events: &Sender<Event>) {
    let mut buffer = vec![0; READ_BYTES];
    let mut input = std::io::stdin().lock();
    loop {
        let event = match input.read(&mut buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Event::End,
            Ok(length) => Event::Bytes(buffer[..length].to_vec(), clock::monotonic()),
        };
        let ended = matches!(event, Event::End);
        if events.send(event).is_err() || ended {
            return;
        }
    }
}

fn write_output(frames: &Receiver<Vec<u8>>) {
    let mut output = std::io::stdout().lock();
    for frame in frames {
        if output.write_all(&frame).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// The state machine with what it acts on.
struct Driver {
    machine: Agent,
    decoder: Decoder,
    frames: Sender<Vec<u8>>,
    loader: Loader,
    allowed: Arc<Allowance>,
}

impl Driver {
    fn run(mut self, heard: &Receiver<Event>, signals: &Signals) -> AgentEnd {
        loop {
            if let Some(end) = self.act() {
                return end;
            }
            if signals.is_asked() {
                self.machine.handle(clock::monotonic(), Input::InputEnded);
                continue;
            }
            let now = clock::monotonic();
            let until = self.machine.next_deadline().map(|at| at.saturating_sub(now));
            let wait = until.map_or(LOOK_UP, |until| Duration::from_nanos(until.0).min(LOOK_UP));
            match heard.recv_timeout(wait) {
                Ok(Event::Bytes(bytes, at)) => self.read(&bytes, at),
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => {
                    self.machine.handle(clock::monotonic(), Input::InputEnded);
                }
                Ok(Event::Load(event)) => {
                    self.machine.handle(clock::monotonic(), Input::Load(event));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.machine.handle(clock::monotonic(), Input::Tick);
                }
            }
        }
    }

    fn read(&mut self, bytes: &[u8], at: Nanos) {
        self.decoder.push(bytes);
        loop {
            let input = match self.decoder.next() {
                Ok(Some(message)) => Input::Said(message),
                Ok(None) => Input::Heard,
                Err(error) => Input::Broken(error),
            };
            let more = matches!(input, Input::Said(_));
            self.machine.handle(at, input);
            if !more {
                return;
            }
        }
    }

    /// Does what the machine wants; answers with how it ends.
    fn act(&mut self) -> Option<AgentEnd> {
        while let Some(action) = self.machine.next_action() {
            match action {
                Action::Send(message) => match encode(&message) {
                    Ok(frame) => drop(self.frames.send(frame)),
                    Err(error) => return Some(AgentEnd::Unreadable(error)),
                },
                Action::Plan(order) => self.ask(Job::Plan(order)),
                Action::Prepare(assignment) => match self.allowed.check(&assignment) {
                    Ok(()) => self.ask(Job::Prepare(assignment)),
                    Err(refused) => {
                        let event = LoadEvent::Ready(Err(refused.to_string()));
                        self.machine.handle(clock::monotonic(), Input::Load(event));
                    }
                },
                Action::Start { at } => self.ask(Job::Start(at)),
                Action::StopLoad => self.loader.stop.store(true, Ordering::Relaxed),
                Action::Exit(end) => return Some(end),
            }
        }
        None
    }

    fn ask(&self, job: Job) {
        // Without its thread nothing is answered, and the controller gives the agent up.
        let _ = self.loader.jobs.send(job);
    }
}
