//! Routes, viewers and connections, each of them bounded.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, TryRecvError};

use plimsoll_servers::Stop;
use plimsoll_servers::timed::{Clients, EDGES, EventFlags, Timed};
use plimsoll_servers::web::{Closed, Head, Reply, Status, WebClient};
use rustix::net::sockopt::set_socket_send_buffer_size;

use super::board::{Board, Message};
use super::door::{Door, NOT_HERE, names_loopback};

/// Event streams at a time: a team, its wall screens, and some spare.
const VIEWERS_MAX: usize = 32;
/// Kernel buffer for a viewer that reads nothing; by default it would take megabytes.
const SEND_BUFFER_BYTES: usize = 128 * 1024;
/// How long a connection may stay that is no viewer's.
const CONNECTION_NS_MAX: u64 = 10_000_000_000;
/// At the end viewers have this long to load the report. Later it is only in its file.
const LINGER_NS: u64 = 2_000_000_000;

const TOO_MANY: &str = "32 viewers look on already, and no more are let in; close one of them.\n";

pub(super) fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let (listener, address) = plimsoll_servers::listen(address)?;
    // Accepted sockets inherit it.
    set_socket_send_buffer_size(&listener, SEND_BUFFER_BYTES)?;
    Ok((listener, address))
}

/// The server of the live page.
pub(super) struct LiveServer {
    page: String,
    door: Door,
    messages: Receiver<Message>,
    board: Board,
    problems: Vec<String>,
    /// When it ends, whoever still reads.
    end_ns: u64,
    stop: Stop,
}

pub(super) struct Client {
    web: WebClient,
    /// Of a viewer: the last event that it got.
    last_event: Option<u64>,
}

impl LiveServer {
    pub(super) fn new(page: String, door: Door, messages: Receiver<Message>) -> Self {
        let (board, problems, stop) = (Board::default(), Vec::new(), Stop::new());
        Self { page, door, messages, board, problems, end_ns: u64::MAX, stop }
    }

    /// Renders messages and serves until the run has ended and the viewers were notified, or their
    /// time is up. Returns the problems.
    pub(super) fn serve(mut self, listener: TcpListener) -> Vec<String> {
        let (clients, stop) = (Clients::new(listener, &[]), self.stop.clone());
        let served = clients.and_then(|clients| clients.serve(&mut self, &stop));
        self.problems.extend(served.err().map(|e| e.to_string()));
        self.problems
    }

    fn take_messages(&mut self) {
        loop {
            let drawn = match self.messages.try_recv() {
                Ok(message) => self.board.take(message),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.board.end(),
            };
            self.problems.extend(drawn.err().map(|e| e.to_string()));
        }
    }

    fn reply(&self, head: &Head, viewers: usize) -> Reply<'_> {
        let token = self.door.token();
        let below = head.path.strip_prefix('/').and_then(|path| path.strip_prefix(token));
        let is_get = matches!(head.method.as_str(), "GET" | "HEAD");
        let reply = match below {
            _ if !names_loopback(head.host.as_deref()) => Reply::text(Status::Forbidden, NOT_HERE),
            Some("" | "/" | "/events") if !is_get => Reply {
                fields: "allow: GET,HEAD\r\n".into(),
                ..Reply::text(Status::MethodNotAllowed, "")
            },
            Some("") => Reply {
                fields: format!("location: /{token}/\r\n").into(),
                ..Reply::text(Status::PermanentRedirect, "")
            },
            Some("/") => Reply::new(Status::Ok, "text/html; charset=utf-8", self.page.as_bytes()),
            Some("/events") if viewers >= VIEWERS_MAX => {
                Reply::text(Status::ServiceUnavailable, TOO_MANY)
            }
            Some("/events") => Reply {
                status: Status::Ok,
                content_type: "text/event-stream",
                fields: "".into(),
                body: None,
            },
            _ => Reply::text(Status::NotFound, ""),
        };
        Reply { fields: reply.fields + self.door.fields(), ..reply }
    }
}

impl Timed for LiveServer {
    type Client = Client;
    /// A browser opens a few besides its event stream.
    const CLIENTS_MAX: usize = 128;
    /// Seldom, since it runs beside the load.
    const LOOK_UP_NS: u64 = 50_000_000;

    fn act(&mut self, clients: &mut Clients<Client>, now_ns: u64) {
        self.take_messages();
        clients.retain(|client| match client.last_event {
            Some(_) => client.send_events(&self.board).is_ok(),
            None => now_ns < client.web.accepted_ns + CONNECTION_NS_MAX,
        });
        if self.board.is_finished {
            self.end_ns = self.end_ns.min(now_ns + LINGER_NS);
            let is_busy = |client: &Client| client.last_event.is_some() || client.web.has_output();
            if now_ns >= self.end_ns || !clients.iter().any(is_busy) {
                self.stop.request();
            }
        }
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn admit(&mut self, clients: &mut Clients<Client>, stream: TcpStream, now_ns: u64) {
        clients.add(Client { web: WebClient::new(stream, 0, now_ns), last_event: None }, EDGES);
    }

    fn hear(&mut self, clients: &mut Clients<Client>, index: usize, _: EventFlags) {
        self.resume(clients, index);
    }

    fn resume(&mut self, clients: &mut Clients<Client>, index: usize) {
        let viewers = clients.iter().filter(|client| client.last_event.is_some()).count();
        let Some(Client { web, last_event }) = clients.get_mut(index) else { return };
        let exchanged = web.exchange(|head| self.reply(head, viewers));
        if web.is_streaming {
            last_event.get_or_insert(0);
        }
        match exchanged {
            Ok(false) => {}
            Ok(true) => clients.requeue(index),
            Err(Closed) => drop(clients.remove(index)),
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.web.as_fd()
    }
}

impl Client {
    /// Sends a viewer the events after its last one, while its connection has room: one that does
    /// not read gets nothing, and continues with the newest event.
    fn send_events(&mut self, board: &Board) -> Result<(), Closed> {
        while self.web.flush()? {
            // The end of the stream has been sent.
            let Some(last) = self.last_event.filter(|_| self.web.is_streaming) else {
                return Err(Closed);
            };
            match board.after(last) {
                Some((number, frame)) => {
                    self.last_event = Some(number);
                    let chunk = format!("{:x}\r\n{frame}\r\n", frame.len());
                    self.web.output.extend_from_slice(chunk.as_bytes());
                }
                None if board.is_finished => {
                    self.web.output.extend_from_slice(b"0\r\n\r\n");
                    self.web.is_streaming = false;
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }
}
