//! A whole workload in memory: a driver whose connections are channels of a [`Dial`], to a server
//! of the test, on a clock that advances when there is nothing else to do.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use plimsoll_engine::driver::{Driver, Ready, Received, Route, Slot, Wait};
use plimsoll_engine::fresh::FreshTimes;
use plimsoll_engine::interface::{LinkError, LinkKind};
use plimsoll_engine::worker::{WorkerContext, WorkerDriver};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{
    Assignment, Endpoint, Load, Pacing, Phases, PointId, Priority, Purpose, WorkerGroup,
};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::suite::OnClientFailure;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::net::{Channel, ChannelError, Dial, SourcePort};

/// From a request to its reply.
const LATENCY: Nanos = Nanos::from_micros(100);
/// Cost of an empty poll.
const POLL_COST: Nanos = Nanos(1_000);
const REFUSED: LinkError = LinkError { class: ErrorClass::Transport, errno: 111 };

/// Channels instead of sockets.
pub struct DialDriver<'a> {
    dial: &'a dyn Dial,
    now: Nanos,
    connections: HashMap<Slot, Connection>,
    opened: usize,
    events: VecDeque<(Nanos, usize, Ready)>,
    /// Of each connection, in the order in which they were opened: whence, and what was sent.
    pub sent: Vec<(Option<IpAddr>, Vec<u8>)>,
}

struct Connection {
    number: usize,
    kind: LinkKind,
    channel: Box<dyn Channel>,
    inbox: VecDeque<Vec<u8>>,
    ended: bool,
}

impl Connection {
    /// A read of a stream takes all that there is.
    fn push(&mut self, message: Vec<u8>) {
        match self.inbox.back_mut().filter(|_| self.kind == LinkKind::Stream) {
            Some(stream) => stream.extend(message),
            None => self.inbox.push_back(message),
        }
    }
}

impl<'a> DialDriver<'a> {
    /// Time zero, nothing connected.
    pub fn new(dial: &'a dyn Dial) -> Self {
        let (connections, events) = (HashMap::new(), VecDeque::new());
        Self { dial, now: Nanos::ZERO, connections, opened: 0, events, sent: Vec::new() }
    }

    fn push_event(&mut self, at: Nanos, number: usize, ready: Ready) {
        self.events.push_back((at, number, ready));
    }
}

impl Driver for DialDriver<'_> {
    fn now(&mut self) -> Nanos {
        self.now
    }

    fn connect(&mut self, slot: Slot, kind: LinkKind, route: &Route) -> Result<(), LinkError> {
        let channel = self.dial.dial(route.to, kind, SourcePort::Any).map_err(|_| REFUSED)?;
        let (number, inbox) = (self.opened, VecDeque::new());
        self.opened += 1;
        self.sent.push((route.from, Vec::new()));
        self.connections.insert(slot, Connection { number, kind, channel, inbox, ended: false });
        let ready = Ready { slot, readable: false, writable: true, hung_up: false };
        self.push_event(self.now + LATENCY, number, ready);
        Ok(())
    }

    fn connected(&mut self, _: Slot) -> Result<(), LinkError> {
        Ok(())
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> Result<usize, LinkError> {
        let connection = self.connections.get_mut(&slot).unwrap();
        connection.channel.send(bytes).map_err(|_| REFUSED)?;
        let number = connection.number;
        self.sent[number].1.extend_from_slice(bytes);
        loop {
            let mut reply = Vec::new();
            match connection.channel.receive(&mut reply, Duration::ZERO) {
                Ok(()) => connection.push(reply),
                Err(ChannelError::Timeout) => break,
                Err(_) => {
                    connection.ended = true;
                    break;
                }
            }
        }
        let ready = Ready { slot, readable: true, writable: false, hung_up: connection.ended };
        if !connection.inbox.is_empty() || connection.ended {
            self.push_event(self.now + LATENCY, number, ready);
        }
        Ok(bytes.len())
    }

    fn recv(&mut self, slot: Slot, buffer: &mut [u8]) -> Result<Received, LinkError> {
        let connection = self.connections.get_mut(&slot).unwrap();
        let Some(mut message) = connection.inbox.pop_front() else {
            return Ok(if connection.ended { Received::Eof } else { Received::Nothing });
        };
        let length = message.len().min(buffer.len());
        buffer[..length].copy_from_slice(&message[..length]);
        if length < message.len() && connection.kind == LinkKind::Stream {
            connection.inbox.push_front(message.split_off(length));
        }
        Ok(Received::Bytes { length, arrived: None })
    }

    fn discard(&mut self, slot: Slot, limit: usize) -> Result<Received, LinkError> {
        self.recv(slot, &mut vec![0; limit.min(1 << 20)])
    }

    fn close(&mut self, slot: Slot) {
        self.connections.remove(&slot);
    }

    fn wait(&mut self, wait: Wait, ready: &mut Vec<Ready>) {
        let next = self.events.front().map(|(at, ..)| *at);
        self.now = match wait {
            Wait::Poll | Wait::Yield => self.now + POLL_COST,
            Wait::SleepUntil(until) => self.now.max(until),
            Wait::Until(until) => self.now.max(next.unwrap_or(until).min(until)),
        };
        while let Some((_, number, what)) = self.events.pop_front_if(|(at, ..)| *at <= self.now) {
            let is_open = |open: &Connection| open.number == number;
            if self.connections.get(&what.slot).is_some_and(is_open) {
                ready.push(what);
            }
        }
    }
}

/// A load point of a second, with a source address for each client to know it by.
pub fn assignment(load: Load) -> Assignment {
    let clients = load.clients();
    Assignment {
        point: PointId { ordinal: 1, purpose: Purpose::Ladder },
        load,
        phases: Phases {
            warm_up_ns: Nanos::from_millis(250),
            measure_ns: Nanos::from_millis(750),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::from_secs(1),
            ops: None,
        },
        seed: 11,
        workers: 1,
        crew: None,
        files: None,
        cores: Vec::new(),
        pacing: Pacing::Precise,
        own_cores: false,
        priority: Priority::Normal,
        op_timeout: Nanos::from_secs(10),
        endpoints: vec![Endpoint {
            target: "memory".to_owned(),
            address: (Ipv4Addr::LOCALHOST, 2_049).into(),
            unix: None,
        }],
        sources: (0..clients).map(source).collect(),
        reserved_ports: false,
        nonce: 5,
        on_client_failure: OnClientFailure::Drop,
        goodput: None,
        counts_clients: false,
        shape: None,
    }
}

/// Where that client of an [`assignment`] connects from.
pub fn source(client: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + client).into()
}

/// What the clients of a load point send, each connection's bytes apart: the workers of `members`,
/// one after the other, each on its own clock.
pub fn sent_by(
    workload: &dyn Workload,
    (assignment, group): (&Assignment, Option<WorkerGroup>),
    dial: &dyn Dial,
) -> Vec<(Option<IpAddr>, Vec<u8>)> {
    let assignment = Assignment { crew: group, ..assignment.clone() };
    let send = |worker| {
        let mut driver = DialDriver::new(dial);
        let (events, received) = sync_channel(10_000);
        workload.run_worker(WorkerContext {
            assignment: &assignment,
            worker,
            op_names: workload.op_names(),
            ops_per_arrival: workload.ops_per_arrival(),
            clients_per_session: workload.clients_per_session(),
            spare_links: u32::MAX,
            recorded: workload.recorded(),
            events: &events,
            fresh: FreshTimes::on_the_spot(workload.op_names().0.len()),
            stop: &AtomicBool::new(false),
            driver: WorkerDriver::Simulated(&mut driver),
        });
        drop(received);
        driver.sent
    };
    assignment.own_workers().flat_map(send).collect()
}

/// All crews of `agents` that share the workers equally.
pub fn crews(workers: u32, agents: u32) -> impl Iterator<Item = Option<WorkerGroup>> {
    let count = workers / agents;
    (0..agents)
        .map(move |agent| Some(WorkerGroup { first: agent * count, count, own_endpoints: false }))
}
