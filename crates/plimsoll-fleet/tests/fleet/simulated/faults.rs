//! What goes wrong in a run, and when.

use super::clock::{MS, SECOND};
use super::fleet::{ControllerInput, Event, Fleet, VERSION};
use super::random::Random;

/// Something that goes wrong.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// An agent's process is gone; the launcher reports it or not.
    Kill { agent: usize, is_reported: bool },
    /// An agent's process is stopped for a while, its load too.
    Stop { agent: usize, until: u64 },
    /// The link to an agent is silently cut.
    Cut { agent: usize },
    /// Nothing arrives over the link to an agent for a while.
    Freeze { agent: usize, until: u64 },
    /// The controller's process is stopped for a while.
    StopController { until: u64 },
    /// The controller's process is gone; the agents see the end of the stream or not.
    KillController { closes_streams: bool },
    /// Ctrl-C.
    Interrupt,
}

/// Agents of a run without faults start.
pub fn launch_all(fleet: &mut Fleet<'_>) {
    for agent in 0..fleet.hosts().len() {
        let at = fleet.random().between(0, 3 * SECOND);
        fleet.schedule(at, Event::Launch(agent, VERSION));
    }
}

/// Agents start or do not, and things go wrong while they run.
pub fn launch_some(fleet: &mut Fleet<'_>) {
    // Some runs are quiet, some a storm.
    let percent = *[0, 5, 20, 60].get(fleet.random().between(0, 3) as usize).unwrap_or(&0);
    let until = fleet.random().between(SECOND, 40 * SECOND);
    for agent in 0..fleet.hosts().len() {
        launch(fleet, agent);
        let (random, refuses) = (fleet.random(), percent / 10);
        let fault = random.percent(percent).then(|| any_fault(random, agent, until));
        fleet.hosts()[agent].refuses_percent = refuses;
        fault.into_iter().for_each(|(at, fault)| fleet.schedule(at, Event::Fault(fault)));
    }
    let random = fleet.random();
    let mut faults = Vec::new();
    if random.percent(20) {
        let at = random.between(0, until);
        let until = at + random.between(100 * MS, 6 * SECOND);
        faults.push((at, Fault::StopController { until }));
    }
    if random.percent(15) {
        let closes_streams = random.percent(60);
        faults.push((random.between(0, until), Fault::KillController { closes_streams }));
    }
    if random.percent(10) {
        faults.push((random.between(0, until), Fault::Interrupt));
    }
    faults.into_iter().for_each(|(at, fault)| fleet.schedule(at, Event::Fault(fault)));
}

fn launch(fleet: &mut Fleet<'_>, agent: usize) {
    let random = fleet.random();
    let at = random.between(0, 3 * SECOND);
    let event = match random.between(0, 99) {
        // It never sends anything.
        0..2 => return,
        2..4 => Event::ToController(ControllerInput::Ended(agent, "exit status: 255".to_owned())),
        4..5 => Event::ToController(ControllerInput::Broken(agent)),
        5..6 => Event::Launch(agent, "1.3.0"),
        _ => Event::Launch(agent, VERSION),
    };
    fleet.schedule(at, event);
}

fn any_fault(random: &mut Random, agent: usize, until: u64) -> (u64, Fault) {
    let at = random.between(0, until);
    let until = at + random.between(100 * MS, 8 * SECOND);
    let fault = match random.between(0, 4) {
        0 => Fault::Kill { agent, is_reported: true },
        1 => Fault::Kill { agent, is_reported: false },
        2 => Fault::Stop { agent, until },
        3 => Fault::Cut { agent },
        _ => Fault::Freeze { agent, until },
    };
    (at, fault)
}
