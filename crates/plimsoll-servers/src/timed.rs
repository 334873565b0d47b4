//! Servers of one thread whose replies leave at instants that a law computes: the listening socket,
//! the clients, and the wait for bytes or for the next instant, whichever comes first. A server
//! implements [`Timed`]; everything is resolved when it is compiled.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{Timespec, epoll};

pub use rustix::event::epoll::EventFlags;

use crate::clock::monotonic_ns;
use crate::{ServerError, Stop, cores, listen};

/// Connections that one look reports; more wait for the next.
const EVENTS_PER_LOOK: usize = 256;
/// Key of the listening socket among the events; no connection has that place.
const LISTENER: u64 = u64::MAX;
/// How often to see whether to stop, however busy.
const LOOK_UP_NS: u64 = 10_000_000;
/// Without anything happening for this long, sleep all the same.
const IDLE_NS: u64 = 1_000_000_000;
/// Before an instant of the law this much is waited through awake: a sleeper wakes up to 100 µs
/// late.
const AWAKE_NS: u64 = 150_000;
/// How long to leave accepting alone when the process is out of descriptors.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// What a server does with its clients. A client is known by its place, a number.
pub trait Timed {
    /// A connection and its state.
    type Client: AsFd;
    /// Connections that are accepted; the next ones wait in the kernel's queue.
    const CLIENTS_MAX: usize;

    /// Does everything that is due by `now_ns`.
    fn act(&mut self, clients: &mut Clients<Self::Client>, now_ns: u64);

    /// The next instant of the law; `None` while nobody waits for one.
    fn next_ns(&self) -> Option<u64>;

    /// When to wake up in any case. It does not matter if that is a little late.
    fn wake_ns(&self) -> u64 {
        u64::MAX
    }

    /// Somebody has connected.
    fn admit(&mut self, clients: &mut Clients<Self::Client>, stream: TcpStream, now_ns: u64);

    /// The kernel reports something of a client.
    fn hear(&mut self, clients: &mut Clients<Self::Client>, place: usize, flags: EventFlags);

    /// A client has the turn that [`Clients::queue_turn`] asked for.
    fn turn(&mut self, clients: &mut Clients<Self::Client>, place: usize);
}

/// The clients of a server, and where it waits for them.
pub struct Clients<C> {
    queue: OwnedFd,
    listener: TcpListener,
    waiting: Waiting,
    places: Vec<Place<C>>,
    vacant: Vec<usize>,
    turns: VecDeque<usize>,
    busy_ns: u64,
    accept_again_ns: u64,
}

struct Place<C> {
    client: Option<C>,
    has_turn: bool,
}

/// How to wait for the next instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Awake, on a core of its own.
    Spin,
    /// Asleep, until shortly before.
    Sleep,
}

/// Listens for a server with a log. A log that cannot be written is found out now and not at the
/// end.
pub fn bind(
    address: SocketAddr,
    log: Option<&Path>,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    if let Some(path) = log {
        std::fs::File::create(path)
            .map_err(|source| ServerError::Log { path: path.to_owned(), source })?;
    }
    listen(address).map_err(|source| ServerError::Listen { address, source })
}

impl<C: AsFd> Clients<C> {
    /// Nobody yet. Pins the calling thread to `cores`, on which it then waits without sleeping;
    /// without cores it sleeps until shortly before an instant.
    pub fn new(listener: TcpListener, cores: &[u32]) -> Result<Self, ServerError> {
        cores::pin_current_thread(cores)
            .map_err(|source| ServerError::Pin { cores: cores::list(cores), source })?;
        let queue = event_queue(&listener)
            .map_err(|source| ServerError::System { doing: "make an event queue", source })?;
        Ok(Self {
            queue,
            listener,
            waiting: if cores.is_empty() { Waiting::Sleep } else { Waiting::Spin },
            places: Vec::new(),
            vacant: Vec::new(),
            turns: VecDeque::new(),
            busy_ns: 0,
            accept_again_ns: 0,
        })
    }

    /// Serves on the calling thread until `stop` is requested. Returns the clients that are
    /// still connected.
    pub fn serve<S: Timed<Client = C>>(mut self, server: &mut S, stop: &Stop) -> Vec<C> {
        let mut events = Vec::with_capacity(EVENTS_PER_LOOK);
        let mut look_up_ns = 0;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= look_up_ns {
                if stop.is_requested() {
                    break;
                }
                look_up_ns = now_ns + LOOK_UP_NS;
            }
            server.act(&mut self, now_ns);
            self.look(server, &mut events, look_up_ns);
            // One has its turn between two looks at the law: nobody's requests may keep this thread.
            if let Some(place) = self.turns.pop_front() {
                self.places[place].has_turn = false;
                server.turn(&mut self, place);
            }
        }
        self.places.into_iter().filter_map(|place| place.client).collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// The one at that place, if there is one.
    #[inline]
    pub fn at(&mut self, place: usize) -> Option<&mut C> {
        self.places.get_mut(place)?.client.as_mut()
    }

    /// Adds a client whose `flags` are reported.
    pub fn add(&mut self, client: C, flags: EventFlags) {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place { client: None, has_turn: false });
            self.places.len() - 1
        });
        let data = epoll::EventData::new_u64(place as u64);
        if epoll::add(&self.queue, &client, data, flags).is_err() {
            return self.vacant.push(place);
        }
        self.places[place].client = Some(client);
    }

    /// From now on these events are reported of it. False: it has to go.
    #[must_use]
    pub fn watch(&self, place: usize, flags: EventFlags) -> bool {
        let client = self.places.get(place).and_then(|place| place.client.as_ref());
        let data = epoll::EventData::new_u64(place as u64);
        client.is_none_or(|client| epoll::modify(&self.queue, client, data, flags).is_ok())
    }

    /// Takes it away. Closing its socket takes that out of the event queue.
    pub fn remove(&mut self, place: usize) -> Option<C> {
        let client = self.places.get_mut(place)?.client.take()?;
        self.vacant.push(place);
        Some(client)
    }

    /// Takes away all that are so.
    pub fn remove_all(&mut self, is_so: impl Fn(&C) -> bool) {
        for place in 0..self.places.len() {
            if self.places[place].client.as_ref().is_some_and(&is_so) {
                self.remove(place);
            }
        }
    }

    /// It has been answered and may have sent more, which is taken when the others had their turn.
    pub fn queue_turn(&mut self, place: usize) {
        let Some(kept) = self.places.get_mut(place) else { return };
        if !std::mem::replace(&mut kept.has_turn, true) {
            self.turns.push_back(place);
        }
    }

    /// Waits for bytes, no longer than until the next instant, and hands them over.
    fn look<S: Timed<Client = C>>(
        &mut self,
        server: &mut S,
        events: &mut Vec<epoll::Event>,
        look_up_ns: u64,
    ) {
        let now_ns = monotonic_ns();
        let timeout = timespec(self.wait_ns(server, now_ns, look_up_ns));
        events.clear();
        // EINTR is as good as nothing ready.
        if epoll::wait(&self.queue, rustix::buffer::spare_capacity(events), Some(&timeout)).is_err()
        {
            return;
        }
        for event in events.drain(..) {
            self.busy_ns = now_ns;
            match event.data.u64() {
                LISTENER => self.accept(server, now_ns),
                place => server.hear(self, place as usize, event.flags),
            }
        }
    }

    /// How long nothing needs to be done.
    fn wait_ns(&self, server: &impl Timed, now_ns: u64, look_up_ns: u64) -> u64 {
        let next_ns = server.next_ns();
        let is_idle = next_ns.is_none() && now_ns.saturating_sub(self.busy_ns) > IDLE_NS;
        if !self.turns.is_empty() || self.waiting == Waiting::Spin && !is_idle {
            return 0;
        }
        let next_ns = next_ns.unwrap_or(u64::MAX).saturating_sub(AWAKE_NS);
        next_ns.min(server.wake_ns()).min(look_up_ns).saturating_sub(now_ns)
    }

    fn accept<S: Timed<Client = C>>(&mut self, server: &mut S, now_ns: u64) {
        while now_ns >= self.accept_again_ns && self.count() < S::CLIENTS_MAX {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_ok() {
                        server.admit(self, stream, now_ns);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors: those connected are served, and some will leave.
                Err(_) => self.accept_again_ns = now_ns + ACCEPT_PAUSE_NS,
            }
        }
    }
}

/// With the listening socket in it. It is level-triggered, so a connection that is not accepted now is
/// reported again.
fn event_queue(listener: &TcpListener) -> io::Result<OwnedFd> {
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&queue, listener, epoll::EventData::new_u64(LISTENER), EventFlags::IN)?;
    rustix::thread::set_current_timer_slack(Some(std::num::NonZeroU64::MIN))?;
    Ok(queue)
}

fn timespec(span_ns: u64) -> Timespec {
    const SECOND_NS: u64 = 1_000_000_000;
    Timespec { tv_sec: (span_ns / SECOND_NS) as i64, tv_nsec: (span_ns % SECOND_NS) as _ }
}
