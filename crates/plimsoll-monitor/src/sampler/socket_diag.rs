//! Queues of sockets asked of the kernel by port (sock_diag(7)).
//!
//! It walks through the same table of all sockets as `/proc/net/tcp` does, and passes over the
//! empty places of it faster (measured for 262,144 places: 0.15 ms where the table is in the cache,
//! 1 ms where it is not, 3.2 ms by the text).

use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::parse::{SocketQueues, SocketState};

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

/// Asks for the sockets of a server's ports in this process's network namespace.
#[derive(Debug)]
pub(super) struct SocketDiag {
    socket: OwnedFd,
    answers: Vec<u8>,
    /// Those that have sockets of these ports; all until one is found. Each costs a walk.
    families: Vec<AddressFamily>,
}

impl SocketDiag {
    pub(super) fn open() -> Option<Self> {
        let flags = SocketFlags::CLOEXEC;
        let protocol = Some(netlink::SOCK_DIAG);
        let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol);
        let (socket, answers) = (socket.ok()?, vec![0; ANSWERS_BYTES]);
        Some(Self { socket, answers, families: FAMILIES.to_vec() })
    }

    /// `None` where the kernel does not answer (it has no `tcp_diag`).
    pub(super) fn look(&mut self, ports: &[u16]) -> Option<SocketQueues> {
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

/// What the kernel has answered to one look.
#[derive(Debug, Default)]
struct Answered {
    queues: SocketQueues,
    /// Those that listen too.
    sockets: usize,
}

impl Answered {
    /// Adds up the messages of one read; says whether the last has come. `None` for an error, or
    /// what is none of sock_diag's messages.
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
            let mut seen = SocketQueues::default();
            for _ in 0..100 {
                seen = diag.look(&[at.port()]).unwrap();
                if seen.receive_bytes > 0 && seen.accept > 0 {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            // The connection that waits to be accepted is open too.
            let expected =
                SocketQueues { connections: 2, send_bytes: 0, receive_bytes: 1_000, accept: 1 };
            assert_eq!(seen, expected, "{address}");
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
