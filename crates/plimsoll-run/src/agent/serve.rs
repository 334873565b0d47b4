//! `plimsoll agent`: the agent's state machine between its input and output and its load.

use std::io::{Read, Write};
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
use plimsoll_protocol::net::Dial as _;
use plimsoll_servers::cores;
use rustix::process::{Resource, getrlimit};

use super::load::{Job, Loader};
use crate::dial::SystemDial;
use crate::failure::Failure;
use crate::host_inventory::{boot_id, network, own_sha256};
use crate::signals::Signals;

/// Bytes that one read takes.
const READ_BYTES: usize = 256 * 1_024;
/// How long sent bytes may take to leave at the end.
const FLUSH_WAIT: Nanos = Nanos::from_millis(500);
/// Longest wait for an event.
const LOOK_UP: Duration = Duration::from_millis(200);

/// What the threads of an agent report to its state machine.
enum Event {
    /// Bytes from the controller, and when they came.
    Bytes(Vec<u8>, Nanos),
    /// The controller's stream has ended.
    End,
    Load(LoadEvent),
}

/// The greeting of this process, with what it knows of its host.
pub fn greeting(signals: &Signals) -> Greeting {
    let system = rustix::system::uname();
    let (release, machine) = (system.release().to_string_lossy(), system.machine());
    Greeting {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program_sha256: own_sha256().unwrap_or_default(),
        host: system.nodename().to_string_lossy().into_owned(),
        boot_id: boot_id(),
        network: network(),
        system: format!("{release} {}", machine.to_string_lossy()),
        cores: cores::available().unwrap_or_default(),
        open_files_max: getrlimit(Resource::Nofile).maximum,
        reserves_ports: SystemDial::new(signals.clone()).caller().may_reserve_ports,
        inventory: plimsoll_monitor::inventory(&[]),
    }
}

/// Serves the controller at the other end of input and output until it leaves.
pub fn serve(
    greeting: Greeting,
    allowed: Allowance,
    signals: &Signals,
    (input, output): (impl Read + Send + 'static, impl Write + Send + 'static),
) -> Result<AgentEnd, Failure> {
    let (events, heard) = channel();
    let unusable = |e: std::io::Error| Failure::unusable(format!("cannot start a thread: {e}"));
    let to_input = events.clone();
    thread::Builder::new()
        .name("plimsoll-input".into())
        .spawn(move || read_input(input, &to_input))
        .map_err(unusable)?;
    let (frames, to_write) = channel();
    let output = thread::Builder::new()
        .name("plimsoll-output".into())
        .spawn(move || write_output(output, &to_write))
        .map_err(unusable)?;
    let notify = move |event| {
        let _ = events.send(Event::Load(event));
    };
    let allowed = Arc::new(allowed);
    let for_load = (greeting.cores.clone(), Arc::clone(&allowed));
    let loader = Loader::start(signals, for_load, notify)?;
    let machine = Agent::new(greeting, Pulse::default(), clock::monotonic());
    let driver = Driver { machine, decoder: Decoder::default(), frames, loader, allowed };
    let end = driver.run(&heard, signals);
    // The queue is closed with the driver. Sent bytes leave, unless nobody reads.
    let written = clock::monotonic() + FLUSH_WAIT;
    while !output.is_finished() && clock::monotonic() < written {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(end)
}

fn read_input(mut input: impl Read, events: &Sender<Event>) {
    let mut buffer = vec![0; READ_BYTES];
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

fn write_output(mut output: impl Write, frames: &Receiver<Vec<u8>>) {
    for frame in frames {
        if output.write_all(&frame).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

/// The state machine with the threads and streams it uses.
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
            if signals.is_stop_requested() {
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
                Ok(Some(message)) => Input::Message(message),
                Ok(None) => Input::Heard,
                Err(error) => Input::Broken(error),
            };
            let more = matches!(input, Input::Message(_));
            self.machine.handle(at, input);
            if !more {
                return;
            }
        }
    }

    /// Executes the machine's actions; returns how it ended.
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
        // Without its thread nothing is answered, and the controller gives up on the agent.
        let _ = self.loader.jobs.send(job);
    }
}
