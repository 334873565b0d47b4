//! Servers of one thread whose replies leave at instants that a law computes: the listening socket,
//! the clients, and the wait for bytes or for the next instant, whichever comes first. A server
//! implements [`Timed`]; everything is resolved when it is compiled.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

pub use rustix::event::epoll::EventFlags;

use crate::clock::monotonic_ns;
use crate::{ServerError, Stop, cores, listen, log};

/// Connections that one look reports; more wait for the next.
const EVENTS_PER_LOOK: usize = 256;
/// Key of the listening socket among the events; no connection has that slot.
const LISTENER: u64 = u64::MAX;
/// Everything that happens to a socket, each once: what is left over makes no event.
pub const EDGES: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// After this long without events, sleep nevertheless.
const IDLE_NS: u64 = 1_000_000_000;
/// Before an instant of the law this much is waited through awake: a sleeper wakes up to 100 µs
/// late.
const AWAKE_NS: u64 = 150_000;
/// Connections accepted in one look, so that a crowd that connects does not keep the others
/// waiting; the rest is reported again.
const ACCEPTED_PER_LOOK_MAX: usize = 64;

/// What a server does with its clients. A client is identified by its slot, a number.
pub trait Timed {
    /// A connection and its state.
    type Client: AsFd;
    /// Connections that are accepted; the next ones wait in the kernel's queue.
    const CLIENTS_MAX: usize;
    /// How often to check for a stop and to act, however busy or idle.
    const LOOK_UP_NS: u64 = 10_000_000;

    /// Does everything that is due by `now_ns`.
    fn act(&mut self, clients: &mut Clients<Self::Client>, now_ns: u64);

    /// The next instant of the law; `None` while no client waits for one.
    fn next_ns(&self) -> Option<u64>;

    /// When to wake up in any case. It does not matter if that is a little late.
    fn wake_ns(&self) -> u64 {
        u64::MAX
    }

    /// Somebody has connected.
    fn admit(&mut self, clients: &mut Clients<Self::Client>, stream: TcpStream, now_ns: u64);

    /// The kernel reports something of a client.
    fn hear(&mut self, clients: &mut Clients<Self::Client>, index: usize, flags: EventFlags);

    /// Resumes a client that [`Clients::requeue`] queued.
    fn resume(&mut self, clients: &mut Clients<Self::Client>, index: usize);
}

/// The clients of a server, and where it waits for them.
pub struct Clients<C> {
    queue: OwnedFd,
    listener: TcpListener,
    waiting: Waiting,
    slots: Vec<ClientSlot<C>>,
    vacant: Vec<usize>,
    run_queue: VecDeque<usize>,
    busy_ns: u64,
    /// Nothing is accepted until the next look for a stop.
    is_pausing: bool,
}

struct ClientSlot<C> {
    client: Option<C>,
    is_queued: bool,
}

/// How to wait for the next instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// Awake, on a core of its own.
    Spin,
    /// Asleep, until shortly before.
    Sleep,
}

/// Listens for a server with a log. Opens the log now, so that an unwritable one fails early.
pub fn bind(
    address: SocketAddr,
    log: Option<&Path>,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    log::create(log)?;
    listen(address).map_err(|source| ServerError::Listen { address, source })
}

impl<C: AsFd> Clients<C> {
    /// No clients yet. Pins the calling thread to `cores`, on which it then waits without sleeping;
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
            slots: Vec::new(),
            vacant: Vec::new(),
            run_queue: VecDeque::new(),
            busy_ns: 0,
            is_pausing: false,
        })
    }

    /// Serves on the calling thread until `stop` is requested. Returns the clients that are
    /// still connected.
    pub fn serve<S: Timed<Client = C>>(
        mut self,
        server: &mut S,
        stop: &Stop,
    ) -> Result<Vec<C>, ServerError> {
        let mut events = Vec::with_capacity(EVENTS_PER_LOOK);
        let mut look_up_ns = 0;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= look_up_ns {
                if stop.is_requested() {
                    break;
                }
                look_up_ns = now_ns + S::LOOK_UP_NS;
                if std::mem::take(&mut self.is_pausing) {
                    self.watch_listener(EventFlags::IN);
                }
            }
            server.act(&mut self, now_ns);
            self.look(server, &mut events, look_up_ns)
                .map_err(|source| ServerError::System { doing: "wait for events", source })?;
            // One is served between two checks of the law: no client may monopolise this thread.
            if let Some(index) = self.run_queue.pop_front() {
                self.slots[index].is_queued = false;
                server.resume(&mut self, index);
            }
        }
        Ok(self.slots.into_iter().filter_map(|slot| slot.client).collect())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }

    /// The one in that slot, if there is one.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut C> {
        self.slots.get_mut(index)?.client.as_mut()
    }

    /// Adds a client whose `flags` are reported.
    pub fn add(&mut self, client: C, flags: EventFlags) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(ClientSlot { client: None, is_queued: false });
            self.slots.len() - 1
        });
        let data = epoll::EventData::new_u64(index as u64);
        if epoll::add(&self.queue, &client, data, flags).is_err() {
            return self.vacant.push(index);
        }
        self.slots[index].client = Some(client);
    }

    /// From now on these events of it are reported. False: it must be dropped.
    #[must_use]
    pub fn watch(&self, index: usize, flags: EventFlags) -> bool {
        let client = self.slots.get(index).and_then(|slot| slot.client.as_ref());
        let data = epoll::EventData::new_u64(index as u64);
        client.is_none_or(|client| epoll::modify(&self.queue, client, data, flags).is_ok())
    }

    /// Takes it away. Closing its socket takes that out of the event queue.
    pub fn remove(&mut self, index: usize) -> Option<C> {
        let client = self.slots.get_mut(index)?.client.take()?;
        self.vacant.push(index);
        Some(client)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.slots.iter().filter_map(|slot| slot.client.as_ref())
    }

    /// Takes away all that do not stay.
    pub fn retain(&mut self, mut stays: impl FnMut(&mut C) -> bool) {
        for index in 0..self.slots.len() {
            if self.get_mut(index).is_some_and(|client| !stays(client)) {
                self.remove(index);
            }
        }
    }

    /// It has been answered and may have sent more, which is read after the others were served.
    pub fn requeue(&mut self, index: usize) {
        let Some(kept) = self.slots.get_mut(index) else { return };
        if !std::mem::replace(&mut kept.is_queued, true) {
            self.run_queue.push_back(index);
        }
    }

    /// Waits for bytes, no longer than until the next instant, and hands them over.
    fn look<S: Timed<Client = C>>(
        &mut self,
        server: &mut S,
        events: &mut Vec<epoll::Event>,
        look_up_ns: u64,
    ) -> io::Result<()> {
        let now_ns = monotonic_ns();
        let timeout = timespec(self.wait_ns(server, now_ns, look_up_ns));
        events.clear();
        match epoll::wait(&self.queue, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            self.busy_ns = now_ns;
            match event.data.u64() {
                LISTENER => self.accept(server, now_ns),
                index => server.hear(self, index as usize, event.flags),
            }
        }
        Ok(())
    }

    /// How long nothing needs to be done.
    fn wait_ns(&self, server: &impl Timed, now_ns: u64, look_up_ns: u64) -> u64 {
        let next_ns = server.next_ns();
        let is_idle = next_ns.is_none() && now_ns.saturating_sub(self.busy_ns) > IDLE_NS;
        if !self.run_queue.is_empty() || self.waiting == Waiting::Spin && !is_idle {
            return 0;
        }
        let next_ns = next_ns.unwrap_or(u64::MAX).saturating_sub(AWAKE_NS);
        next_ns.min(server.wake_ns()).min(look_up_ns).saturating_sub(now_ns)
    }

    fn accept<S: Timed<Client = C>>(&mut self, server: &mut S, now_ns: u64) {
        for _ in 0..ACCEPTED_PER_LOOK_MAX {
            if self.count() >= S::CLIENTS_MAX {
                return self.pause_accepting();
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_ok() {
                        server.admit(self, stream, now_ns);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                // Out of descriptors: those connected are served, and some will leave.
                Err(_) => return self.pause_accepting(),
            }
        }
    }

    /// Until the next look for a stop.
    fn pause_accepting(&mut self) {
        self.is_pausing = true;
        self.watch_listener(EventFlags::empty());
    }

    fn watch_listener(&self, flags: EventFlags) {
        let data = epoll::EventData::new_u64(LISTENER);
        // Fails only for a listener that is not watched.
        let _ = epoll::modify(&self.queue, &self.listener, data, flags);
    }
}

/// With the listening socket in it. It is level-triggered, so a connection that is not accepted now
/// is reported again.
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
