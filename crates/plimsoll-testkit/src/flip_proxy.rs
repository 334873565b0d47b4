//! Damages the data of NFS READ replies: one bit of every n-th reply, counted.
//!
//! It reads ONC RPC by itself, so that a mistake in the code under test is not made twice.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::relay::Direction;
use crate::relay::tcp::{Filter, TcpRelay};
use crate::relay::udp::{Fate, UdpRelay};

const NFS_PROGRAM: u32 = 100_003;
/// The same number in versions 2 and 3 (RFC 1094 §2.2.7, RFC 1813 §3.3.6).
const READ: u32 = 6;
/// RFC 5531 §11.
const LAST_FRAGMENT: u32 = 1 << 31;

/// A running proxy; stops when dropped.
pub struct FlipProxy {
    relay: Relay,
    tally: Arc<Tally>,
}

enum Relay {
    Tcp(TcpRelay),
    Udp(UdpRelay),
}

struct Tally {
    every: u64,
    read_replies: AtomicU64,
    injected: AtomicU64,
}

impl FlipProxy {
    /// For clients over TCP: flips a bit in the data of the `every`-th READ reply with data, the
    /// 2 × `every`-th, and so on.
    pub fn tcp(server: SocketAddr, every: u64) -> Self {
        let tally = Arc::new(Tally::new(every));
        let shared = Arc::clone(&tally);
        let filters = move || {
            let calls = Arc::new(Mutex::new(ReadCalls::default()));
            let to_server = watching(Arc::clone(&calls));
            (to_server, flipping(calls, Arc::clone(&shared)))
        };
        Self { relay: Relay::Tcp(TcpRelay::start(server, Box::new(filters))), tally }
    }

    /// For clients over UDP.
    pub fn udp(server: SocketAddr, every: u64) -> Self {
        let tally = Arc::new(Tally::new(every));
        let shared = Arc::clone(&tally);
        let mut calls = ReadCalls::default();
        let decide = move |direction, datagram: &mut Vec<u8>| {
            match direction {
                Direction::ToServer => calls.note(datagram),
                Direction::ToClient => shared.flip(&calls, datagram),
            }
            Fate::Pass
        };
        Self { relay: Relay::Udp(UdpRelay::start(server, Box::new(decide))), tally }
    }

    /// Where clients connect or send to.
    pub fn address(&self) -> SocketAddr {
        match &self.relay {
            Relay::Tcp(relay) => relay.address(),
            Relay::Udp(relay) => relay.address(),
        }
    }

    /// READ replies with data so far.
    pub fn read_replies(&self) -> u64 {
        self.tally.read_replies.load(Ordering::SeqCst)
    }

    /// Those that were damaged.
    pub fn injected(&self) -> u64 {
        self.tally.injected.load(Ordering::SeqCst)
    }
}

impl Tally {
    fn new(every: u64) -> Self {
        Self { every, read_replies: AtomicU64::new(0), injected: AtomicU64::new(0) }
    }

    fn flip(&self, calls: &ReadCalls, message: &mut [u8]) {
        let Some(data) = calls.data_of(message).filter(|data| !data.is_empty()) else { return };
        let number = self.read_replies.fetch_add(1, Ordering::SeqCst) + 1;
        if !number.is_multiple_of(self.every) {
            return;
        }
        let injected = self.injected.fetch_add(1, Ordering::SeqCst);
        // A different offset each time, the first and the last byte among them.
        let offset = match injected % 3 {
            0 => data.start,
            1 => data.end - 1,
            _ => data.start + (injected as usize).wrapping_mul(2_654_435_761) % data.len(),
        };
        message[offset] ^= 1 << (injected % 8);
    }
}

fn watching(calls: Arc<Mutex<ReadCalls>>) -> Filter {
    let mut records = Records::default();
    Box::new(move |bytes, out| {
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        records.add(bytes, |record| calls.note(record));
        out.extend_from_slice(bytes);
    })
}

fn flipping(calls: Arc<Mutex<ReadCalls>>, tally: Arc<Tally>) -> Filter {
    let mut records = Records::default();
    Box::new(move |bytes, out| {
        records.add(bytes, |record| {
            let calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
            tally.flip(&calls, record);
            out.extend_from_slice(&(LAST_FRAGMENT | record.len() as u32).to_be_bytes());
            out.extend_from_slice(record);
        });
    })
}

/// Records of a stream, put together from their fragments.
#[derive(Default)]
struct Records {
    unread: Vec<u8>,
    record: Vec<u8>,
}

impl Records {
    fn add(&mut self, bytes: &[u8], mut each: impl FnMut(&mut [u8])) {
        self.unread.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(mark) = word(&self.unread[at..], 0) {
            let (start, length) = (at + 4, (mark & !LAST_FRAGMENT) as usize);
            let Some(fragment) = self.unread.get(start..start + length) else { break };
            self.record.extend_from_slice(fragment);
            at = start + length;
            if mark & LAST_FRAGMENT != 0 {
                each(&mut self.record);
                self.record.clear();
            }
        }
        self.unread.drain(..at);
    }
}

/// READ calls by xid, with the version of NFS they speak.
#[derive(Default)]
struct ReadCalls(HashMap<u32, u32>);

impl ReadCalls {
    /// RFC 5531 §9: xid, CALL, RPC version, program, version, procedure.
    fn note(&mut self, call: &[u8]) {
        let field = |index: usize| word(call, 4 * index);
        let (Some(xid), Some(0), Some(2)) = (field(0), field(1), field(2)) else { return };
        match (field(3), field(4), field(5)) {
            (Some(NFS_PROGRAM), Some(version), Some(READ)) => self.0.insert(xid, version),
            _ => self.0.remove(&xid),
        };
    }

    /// Where the data is in the successful reply to a READ.
    fn data_of(&self, reply: &[u8]) -> Option<Range<usize>> {
        let version = *self.0.get(&word(reply, 0)?)?;
        // REPLY, MSG_ACCEPTED, then flavour, length and bytes of the verifier, SUCCESS, NFS_OK.
        let verifier_bytes = word(reply, 16)?.next_multiple_of(4) as usize;
        let results = 20 + verifier_bytes;
        let values = [4, 8, results, results + 4].map(|at| word(reply, at));
        if values != [Some(1), Some(0), Some(0), Some(0)] {
            return None;
        }
        let attributes = results + 8;
        let length_at = match version {
            2 => attributes + 68,
            // Attributes are optional; count and end-of-file mark come before the data.
            3 => attributes + 4 + 84 * word(reply, attributes)? as usize + 8,
            _ => return None,
        };
        let (start, length) = (length_at + 4, word(reply, length_at)? as usize);
        Some(start..start + length).filter(|data| data.end <= reply.len())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    four.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn read_call(xid: u32, version: u32) -> Vec<u8> {
        bytes_of(&[xid, 0, 2, NFS_PROGRAM, version, READ, 0, 0, 0, 0])
    }

    /// A version 3 reply without attributes.
    fn read_reply(xid: u32, data: &[u8]) -> Vec<u8> {
        let length = data.len() as u32;
        let mut bytes = bytes_of(&[xid, 1, 0, 0, 0, 0, 0, 0, length, 1, length]);
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn only_data_of_a_reply_to_a_read_is_found() {
        let mut calls = ReadCalls::default();
        calls.note(&read_call(7, 3));
        let reply = read_reply(7, b"data");
        assert_eq!(calls.data_of(&reply).map(|data| &reply[data]), Some(&b"data"[..]));
        assert_eq!(calls.data_of(&read_reply(8, b"data")), None);
        // Another call with the same number: a reply to it is none to a READ.
        calls.note(&bytes_of(&[7, 0, 2, NFS_PROGRAM, 3, 1]));
        assert_eq!(calls.data_of(&reply), None);
    }

    #[test]
    fn attributes_are_stepped_over_in_both_versions() {
        let mut calls = ReadCalls::default();
        calls.note(&read_call(1, 2));
        calls.note(&read_call(2, 3));
        let mut reply = bytes_of(&[1, 1, 0, 0, 0, 0, 0]);
        reply.extend([9; 68]);
        reply.extend(bytes_of(&[4]));
        reply.extend(b"two!");
        assert_eq!(calls.data_of(&reply).map(|data| &reply[data]), Some(&b"two!"[..]));
        let mut reply = bytes_of(&[2, 1, 0, 0, 0, 0, 0, 1]);
        reply.extend([9; 84]);
        reply.extend(bytes_of(&[6, 1, 6]));
        reply.extend(b"three!\0\0");
        assert_eq!(calls.data_of(&reply).map(|data| &reply[data]), Some(&b"three!"[..]));
    }

    #[test]
    fn records_come_out_whole_however_they_were_cut() {
        let mut stream = bytes_of(&[2]);
        stream.extend(b"ab");
        stream.extend(bytes_of(&[LAST_FRAGMENT | 1]));
        stream.extend(b"c");
        stream.extend(bytes_of(&[LAST_FRAGMENT | 1]));
        stream.extend(b"d");
        for step in 1..stream.len() {
            let (mut records, mut complete) = (Records::default(), Vec::new());
            for chunk in stream.chunks(step) {
                records.add(chunk, |record| complete.push(record.to_vec()));
            }
            assert_eq!(complete, [b"abc".to_vec(), b"d".to_vec()], "steps of {step}");
        }
    }

    #[test]
    fn every_nth_reply_is_damaged_in_one_bit() {
        let tally = Tally::new(3);
        let mut calls = ReadCalls::default();
        calls.note(&read_call(1, 3));
        let whole = read_reply(1, &[0; 64]);
        let mut damaged = 0;
        for number in 1..=30 {
            let mut reply = whole.clone();
            tally.flip(&calls, &mut reply);
            let bits: u32 = whole.iter().zip(&reply).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(bits, u32::from(number % 3 == 0));
            damaged += u64::from(bits);
        }
        assert_eq!(tally.injected.load(Ordering::SeqCst), damaged);
    }
}
