//! Queues of the sockets of watched servers, in the server's own network namespace.
//!
//! They are requested from the kernel by port (sock_diag(7)), or read from `/proc/net/tcp`. The
//! first skips the empty slots of the table of all sockets faster (measured for 262,144 slots:
//! 0.15 ms where the table is in the cache, 1 ms where it is not, 3.2 ms by the text). In both
//! cases the kernel looks through all sockets of the host, those of closed connections too: where
//! it takes long, the queues are looked at less often.

use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use super::table::{Column, Rows, Table, Unit};
use crate::clock;
use crate::pace::Pace;
use crate::parse::{SocketQueues, SocketState, parse_socket_queues};
use crate::process::WatchedProcess;
use crate::root::{ProcFile, Root};

pub(super) static SOCKETS: Table = Table::keyed("socket").ending_with_load().columns(&[
    Column::summed("connections", Unit::Count),
    // Written by the server, not yet acknowledged by the clients.
    Column::summed("send_queue", Unit::Bytes),
    // Arrived, not yet read by the server.
    Column::summed("receive_queue", Unit::Bytes),
    Column::summed("accept_queue", Unit::Count),
]);

/// Looking at the sockets may take one part in this many of a core.
const PARTS: u64 = 500;

#[derive(Debug)]
pub(super) struct SocketSource {
    root: Root,
    servers: Vec<Server>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Server {
    name: String,
    reader: SocketReader,
    pace: Pace,
    looked_ns: u64,
}

/// Where its sockets are seen.
#[derive(Debug)]
enum SocketReader {
    /// In the network namespace of this process.
    Kernel(SocketDiag),
    /// In another one, on another host, or where the kernel does not answer.
    Texts([ProcFile; 2]),
}

impl SocketSource {
    pub(super) fn new(root: Root) -> Self {
        Self { root, servers: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample<'w>(
        &mut self,
        watched: impl Iterator<Item = &'w WatchedProcess>,
        rows: &mut Rows,
    ) {
        rows.clear();
        for process in watched.filter(|process| !process.ports.is_empty()) {
            let Some(&pid) = process.pids.first() else { continue };
            let position = self.servers.iter().position(|server| server.name == process.name);
            let index = position.unwrap_or_else(|| {
                let reader = SocketReader::open(&self.root, pid);
                let name = process.name.clone();
                self.servers.push(Server { name, reader, pace: Pace::new(0, PARTS), looked_ns: 0 });
                self.servers.len() - 1
            });
            let server = &mut self.servers[index];
            if let Some(queues) = server.look(&self.root, pid, &process.ports, &mut self.buffer) {
                let values =
                    [queues.connections, queues.send_bytes, queues.receive_bytes, queues.accept];
                rows.push(&process.name, &values.map(|value| Some(value as f64)));
            }
        }
    }
}

impl SocketReader {
    fn open(root: &Root, pid: u32) -> Self {
        let namespace = |of: &str| root.link_name(format!("proc/{of}/ns/net"));
        let own = root.is_this_host() && namespace("self") == namespace(&pid.to_string());
        own.then(SocketDiag::open).flatten().map_or_else(|| Self::texts(root, pid), Self::Kernel)
    }

    fn texts(root: &Root, pid: u32) -> Self {
        let files = ["tcp", "tcp6"].map(|name| format!("proc/{pid}/net/{name}"));
        Self::Texts(files.map(|file| ProcFile::open(root, file)))
    }

    fn look(&mut self, ports: &[u16], buffer: &mut Vec<u8>) -> Option<SocketQueues> {
        match self {
            Self::Kernel(diag) => diag.look(ports),
            Self::Texts(files) => {
                let mut queues = None;
                for file in files {
                    if let Some(text) = file.read(buffer) {
                        let queues = queues.get_or_insert_with(SocketQueues::default);
                        parse_socket_queues(&text, ports, queues);
                    }
                }
                queues
            }
        }
    }
}

impl Server {
    fn look(
        &mut self,
        root: &Root,
        pid: u32,
        ports: &[u16],
        buffer: &mut Vec<u8>,
    ) -> Option<SocketQueues> {
        let now_ns = clock::monotonic_ns();
        if now_ns < self.looked_ns.saturating_add(self.pace.interval_ns()) {
            return None;
        }
        self.looked_ns = now_ns;
        let begin_ns = clock::thread_cpu_ns();
        let queues = self.reader.look(ports, buffer);
        if queues.is_none() && matches!(self.reader, SocketReader::Kernel(_)) {
            self.reader = SocketReader::texts(root, pid);
        }
        self.pace.took(clock::thread_cpu_ns().saturating_sub(begin_ns));
        queues
    }
}

const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
/// Up to the queues; more follows.
const ANSWER_BYTES_MIN: usize = HEADER_BYTES + 64;
const ANSWERS_BYTES: usize = 32 * 1024;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const IPPROTO_TCP: u8 = 6;
const FAMILIES: [AddressFamily; 2] = [AddressFamily::INET, AddressFamily::INET6];

/// Requests the sockets of a server's ports in this process's network namespace.
#[derive(Debug)]
struct SocketDiag {
    socket: OwnedFd,
    answers: Vec<u8>,
    /// Those that have sockets of these ports; all until one is found. Each costs a walk.
    families: Vec<AddressFamily>,
}

impl SocketDiag {
    fn open() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol);
        let (socket, answers) = (socket.ok()?, vec![0; ANSWERS_BYTES]);
        Some(Self { socket, answers, families: FAMILIES.to_vec() })
    }

    /// `None` where the kernel does not answer (it has no `tcp_diag`).
    fn look(&mut self, ports: &[u16]) -> Option<SocketQueues> {
        let mut all = Answered::default();
        let mut of_sockets = Vec::new();
        for family in self.families.clone() {
            let before = all.sockets;
            for &port in ports {
                net::send(&self.socket, &request(family, port), SendFlags::empty()).ok()?;
                self.read_answers(&mut all)?;
            }
            if all.sockets > before {
                of_sockets.push(family);
            }
        }
        if !of_sockets.is_empty() {
            self.families = of_sockets;
        }
        Some(all.queues)
    }

    fn read_answers(&mut self, all: &mut Answered) -> Option<()> {
        loop {
            // The kernel writes the answers while they are read: there is always one.
            let read = net::recv(&self.socket, &mut self.answers[..], RecvFlags::DONTWAIT);
            let (length, _) = read.ok()?;
            if all.add(&self.answers[..length.min(ANSWERS_BYTES)])? {
                return Some(());
            }
        }
    }
}

fn request(family: AddressFamily, port: u16) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    request[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request[16] = family.as_raw() as u8;
    request[17] = IPPROTO_TCP;
    let states =
        SocketState::QUEUED.into_iter().fold(0_u32, |all, state| all | 1 << state.number());
    request[20..24].copy_from_slice(&states.to_ne_bytes());
    request[24..26].copy_from_slice(&port.to_be_bytes());
    request
}

/// The kernel's answer to one look.
#[derive(Debug, Default)]
struct Answered {
    queues: SocketQueues,
    /// Those that listen too.
    sockets: usize,
}

impl Answered {
    /// Adds up the messages of one read; returns whether the last has come. `None` for an error,
    /// or a message that is none of sock_diag's.
    fn add(&mut self, mut answers: &[u8]) -> Option<bool> {
        while !answers.is_empty() {
            let length = u32::from_ne_bytes(answers.get(..4)?.try_into().ok()?) as usize;
            let message = answers.get(..length).filter(|_| length >= HEADER_BYTES)?;
            match u16::from_ne_bytes([message[4], message[5]]) {
                NLMSG_DONE => return Some(true),
                SOCK_DIAG_BY_FAMILY if length >= ANSWER_BYTES_MIN => {
                    let number = |at: usize| message[at..at + 4].try_into().map(u32::from_ne_bytes);
                    let (receive, send) = (number(72).ok()?, number(76).ok()?);
                    if let Some(state) = SocketState::of_number(message[HEADER_BYTES + 1]) {
                        self.sockets += 1;
                        self.queues.add(state, u64::from(send), u64::from(receive));
                    }
                }
                NLMSG_ERROR | SOCK_DIAG_BY_FAMILY => return None,
                _ => {}
            }
            answers = answers.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_tells_the_queues_of_a_port() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let at = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(at).unwrap();
            let (_served, _) = listener.accept().unwrap();
            let _waiting = TcpStream::connect(at).unwrap();
            client.write_all(&[7; 1_000]).unwrap();
            let mut diag = SocketDiag::open().unwrap();
            let mut queues = SocketQueues::default();
            for _ in 0..100 {
                queues = diag.look(&[at.port()]).unwrap();
                if queues.receive_bytes > 0 && queues.accept > 0 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            // The connection that waits to be accepted is open too.
            let expected =
                SocketQueues { connections: 2, send_bytes: 0, receive_bytes: 1_000, accept: 1 };
            assert_eq!(queues, expected, "{address}");
            assert_eq!(diag.families.len(), 1, "{address}");
        }
    }

    #[test]
    fn what_is_cut_short_or_no_message_is_refused_and_never_panics() {
        let mut answer = vec![0; 88];
        answer[..4].copy_from_slice(&88_u32.to_ne_bytes());
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        answer[17] = 1;
        let mut all = Answered::default();
        assert_eq!(all.add(&answer), Some(false));
        assert_eq!((all.queues.connections, all.sockets), (1, 1));
        for length in 1..answer.len() {
            assert_eq!(all.add(&answer[..length]), None, "{length} bytes");
        }
        answer[..4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(all.add(&answer), None, "a length of nothing");
    }
}
