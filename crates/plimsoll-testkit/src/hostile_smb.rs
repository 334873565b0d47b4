//! An SMB server that misbehaves by recipe: a proxy before a good one, so that it lets guests in
//! and holds a file set as any server does, until it is armed.
//!
//! It reads SMB2 by itself, so that a mistake in the code under test is not made twice. Sessions
//! are not signed or encrypted; a [`Trick::Flip`] alone makes sense where they are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::relay::tcp::{Filter, TcpRelay};

/// Codes of commands (MS-SMB2 2.2.1.2).
pub mod command {
    /// TREE_CONNECT; up to it the logon goes, which is left alone.
    pub const TREE_CONNECT: u16 = 3;
    /// CREATE
    pub const CREATE: u16 = 5;
    /// READ
    pub const READ: u16 = 8;
    /// LOCK
    pub const LOCK: u16 = 10;
    /// ECHO
    pub const ECHO: u16 = 13;
    /// QUERY_DIRECTORY
    pub const QUERY_DIRECTORY: u16 = 14;
    /// QUERY_INFO
    pub const QUERY_INFO: u16 = 16;
    /// OPLOCK_BREAK
    pub const OPLOCK_BREAK: u16 = 18;
}

const HEADER_BYTES: usize = 64;
/// Of an error without text (MS-SMB2 2.2.2), as long as commands of a compound are.
const ERROR_BODY: [u8; 16] = [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const ERROR_BYTES: usize = 9;
/// MS-ERREF 2.3.1
const STATUS_PENDING: u32 = 0x103;
/// MS-SMB2 2.2.1
const ASYNC: u32 = 2;

/// What happens to a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    /// It does not come, nor does anything after it on this connection.
    Silence,
    /// The frame announces 16 MiB.
    HugeFrame,
    /// Something that is not SMB comes instead.
    OtherProtocol,
    /// The first bytes of the message, this many, in a frame of that length.
    Cut(usize),
    /// Half of the frame comes, and nothing after it.
    HalfFrame,
    /// It answers a request that was never sent.
    UnknownId,
    /// It answers another command.
    OtherCommand(u16),
    /// The declared offset of the compound's next command.
    NextCommand(u32),
    /// It grants no credit.
    NoCredits,
    /// The server replies that it is working on the request, and never completes it.
    Pending,
    /// This many oplock breaks come first, for oplocks that nobody holds.
    Breaks(u32),
    /// It fails with that NTSTATUS, and what follows it in its compound does too.
    Status(u32),
    /// The declared offset of the data of a READ, QUERY_INFO or QUERY_DIRECTORY.
    DataOffset(u8),
    /// The declared length of the data of a READ, QUERY_INFO or QUERY_DIRECTORY.
    DataLength(u32),
    /// One bit is flipped, each time elsewhere from that byte on.
    Flip(usize),
}

/// Which replies it happens to.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// What happens.
    pub trick: Trick,
    /// Only to successful replies to this command.
    pub only: Option<u16>,
    /// To every n-th of them, counted over all connections.
    pub every: u64,
}

impl Recipe {
    /// To every reply after the logon.
    pub fn always(trick: Trick) -> Self {
        Self { trick, only: None, every: 1 }
    }

    /// To every successful reply to `command`.
    pub fn on(command: u16, trick: Trick) -> Self {
        Self { only: Some(command), ..Self::always(trick) }
    }

    /// To every n-th of those.
    pub fn every(self, n: u64) -> Self {
        Self { every: n, ..self }
    }
}

/// A running server; stops when dropped.
pub struct HostileSmb {
    relay: TcpRelay,
    order: Arc<Order>,
}

struct Order {
    recipe: Recipe,
    armed: AtomicBool,
    candidates: AtomicU64,
    played: AtomicU64,
}

impl HostileSmb {
    /// Listens on a free port of 127.0.0.1 and behaves as `server` does until [`Self::arm`].
    pub fn before(server: SocketAddr, recipe: Recipe) -> Self {
        let order = Arc::new(Order {
            recipe,
            armed: AtomicBool::new(false),
            candidates: AtomicU64::new(0),
            played: AtomicU64::new(0),
        });
        let shared = Arc::clone(&order);
        let filters = move || -> (Filter, Filter) {
            let unchanged: Filter = Box::new(|bytes, out| out.extend_from_slice(bytes));
            (unchanged, hostile(Arc::clone(&shared)))
        };
        Self { relay: TcpRelay::start(server, Box::new(filters)), order }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.relay.address()
    }

    /// Misbehaves from now on.
    pub fn arm(&self) {
        self.order.armed.store(true, Ordering::SeqCst);
    }

    /// Replies it happened to.
    pub fn played(&self) -> u64 {
        self.order.played.load(Ordering::SeqCst)
    }
}

impl Order {
    /// The command of the reply it is to happen to, counted.
    fn target(&self, parts: &[Vec<u8>]) -> Option<usize> {
        let after_logon = code(parts.first()?) > command::TREE_CONNECT;
        if !self.armed.load(Ordering::SeqCst) || !after_logon {
            return None;
        }
        let is_candidate = |part: &Vec<u8>| match self.recipe.only {
            Some(command) => code(part) == command && number::<4>(part, 8) == 0,
            None => true,
        };
        let target = parts.iter().position(is_candidate)?;
        let count = self.candidates.fetch_add(1, Ordering::SeqCst) + 1;
        count.is_multiple_of(self.recipe.every).then_some(target)
    }
}

fn hostile(order: Arc<Order>) -> Filter {
    let mut unread = Vec::new();
    let mut silent = false;
    Box::new(move |bytes, out| {
        unread.extend_from_slice(bytes);
        while let Some(message) = next_message(&mut unread) {
            if silent {
                continue;
            }
            let mut parts = split(&message);
            match order.target(&parts) {
                Some(target) => {
                    let played = order.played.fetch_add(1, Ordering::SeqCst);
                    silent = play(order.recipe.trick, &mut parts, (target, played), out);
                }
                None => framed(&message, out),
            }
        }
    })
}

/// Appends what goes out instead of the message; `true`: nothing follows.
fn play(
    trick: Trick,
    parts: &mut [Vec<u8>],
    (target, played): (usize, u64),
    out: &mut Vec<u8>,
) -> bool {
    match trick {
        Trick::Silence => return true,
        Trick::HugeFrame => out.extend([0, 0xff, 0xff, 0xff]),
        Trick::OtherProtocol => {
            out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n\r\n");
            return true;
        }
        Trick::Cut(bytes) => {
            let mut whole = joined(parts);
            whole.truncate(bytes);
            framed(&whole, out);
            return false;
        }
        Trick::HalfFrame => {
            let from = out.len();
            framed(&joined(parts), out);
            out.truncate(from + (out.len() - from) / 2);
            return true;
        }
        Trick::UnknownId => write_at(&mut parts[target], 24, &(1_u64 << 40 | played).to_le_bytes()),
        Trick::OtherCommand(code) => write_at(&mut parts[target], 12, &code.to_le_bytes()),
        Trick::NextCommand(at) => {
            let mut whole = joined(parts);
            write_at(&mut whole, 20, &at.to_le_bytes());
            framed(&whole, out);
            return false;
        }
        Trick::NoCredits => parts.iter_mut().for_each(|part| write_at(part, 14, &[0, 0])),
        Trick::Pending => pend(parts),
        Trick::Breaks(count) => (0..count).for_each(|n| framed(&oplock_break(n), out)),
        Trick::Status(status) => parts[target..].iter_mut().for_each(|part| fail(part, status)),
        // READ has one byte for it and one that is reserved, the others have two.
        Trick::DataOffset(at) => write_at(&mut parts[target], HEADER_BYTES + 2, &[at, 0]),
        Trick::DataLength(bytes) => {
            write_at(&mut parts[target], HEADER_BYTES + 4, &bytes.to_le_bytes());
        }
        Trick::Flip(from) => {
            let mut whole = joined(parts);
            let length = whole.len() - from;
            // The first and the last byte among them.
            let offset = match played % 3 {
                0 => from,
                1 => whole.len() - 1,
                _ => from + (played as usize).wrapping_mul(2_654_435_761) % length,
            };
            whole[offset] ^= 1 << (played % 8);
            framed(&whole, out);
            return false;
        }
    }
    framed(&joined(parts), out);
    false
}

fn pend(parts: &mut [Vec<u8>]) {
    for part in parts {
        fail(part, STATUS_PENDING);
        let flags = number::<4>(part, 16) as u32 | ASYNC;
        write_at(part, 16, &flags.to_le_bytes());
        // An async id instead of the share's.
        let id = number::<8>(part, 24) + 1_000;
        write_at(part, 32, &id.to_le_bytes());
    }
}

fn fail(part: &mut Vec<u8>, status: u32) {
    write_at(part, 8, &status.to_le_bytes());
    part.truncate(HEADER_BYTES);
    part.extend_from_slice(&ERROR_BODY[..ERROR_BYTES]);
}

/// An oplock that fell to none (MS-SMB2 2.2.23.1), of an open that nobody has.
fn oplock_break(n: u32) -> Vec<u8> {
    let mut message = vec![0; HEADER_BYTES + 24];
    write_at(&mut message, 0, b"\xfeSMB");
    write_at(&mut message, 4, &(HEADER_BYTES as u16).to_le_bytes());
    write_at(&mut message, 12, &command::OPLOCK_BREAK.to_le_bytes());
    // From the server, unsolicited.
    write_at(&mut message, 16, &1_u32.to_le_bytes());
    write_at(&mut message, 24, &u64::MAX.to_le_bytes());
    write_at(&mut message, HEADER_BYTES, &24_u16.to_le_bytes());
    write_at(&mut message, HEADER_BYTES + 8, &[0xbb; 16]);
    write_at(&mut message, HEADER_BYTES + 8, &n.to_le_bytes());
    message
}

/// A whole message off the front, without its four bytes.
fn next_message(unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let length = u32::from_be_bytes(*unread.first_chunk()?) as usize;
    let message = unread.get(4..4 + length)?.to_vec();
    unread.drain(..4 + length);
    Some(message)
}

fn framed(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

/// The commands of a message; none of one that is no plain SMB2.
fn split(message: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut rest = message;
    while rest.len() >= HEADER_BYTES && rest.starts_with(b"\xfeSMB") {
        let next = number::<4>(rest, 20) as usize;
        let end = if next == 0 { rest.len() } else { next.min(rest.len()) };
        parts.push(rest[..end].to_vec());
        rest = &rest[end..];
    }
    parts
}

/// A message of these commands again.
fn joined(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut message = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let at = message.len();
        message.extend_from_slice(part);
        let mut next = 0;
        if index + 1 < parts.len() {
            message.resize(message.len().next_multiple_of(8), 0);
            next = message.len() - at;
        }
        write_at(&mut message, at + 20, &(next as u32).to_le_bytes());
    }
    message
}

fn code(part: &[u8]) -> u16 {
    number::<2>(part, 12) as u16
}

/// `BYTES` bytes at `at`, little-endian.
fn number<const BYTES: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..BYTES].copy_from_slice(&bytes[at..at + BYTES]);
    u64::from_le_bytes(wide)
}

fn write_at(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(command: u16, body: &[u8]) -> Vec<u8> {
        let mut part = vec![0; HEADER_BYTES];
        write_at(&mut part, 0, b"\xfeSMB");
        write_at(&mut part, 12, &command.to_le_bytes());
        write_at(&mut part, 14, &1_u16.to_le_bytes());
        part.extend_from_slice(body);
        part
    }

    /// The reply to a compound of CREATE and READ under the recipe.
    fn played(recipe: Recipe, armed: bool) -> Vec<u8> {
        let order = Arc::new(Order {
            recipe,
            armed: AtomicBool::new(armed),
            candidates: AtomicU64::new(0),
            played: AtomicU64::new(0),
        });
        let mut stream = Vec::new();
        let parts = [reply(command::CREATE, &[0; 88]), reply(command::READ, &[7; 21])];
        framed(&joined(&parts), &mut stream);
        let (mut filter, mut out) = (hostile(order), Vec::new());
        for byte in stream {
            filter(&[byte], &mut out);
        }
        out
    }

    fn parts_of(mut out: Vec<u8>) -> Vec<Vec<u8>> {
        let message = next_message(&mut out).unwrap();
        assert!(out.is_empty());
        split(&message)
    }

    #[test]
    fn nothing_is_changed_until_it_is_armed_or_by_a_recipe_for_another_command() {
        let whole = played(Recipe::always(Trick::Silence), false);
        assert_eq!(whole.len(), 4 + 64 + 88 + 64 + 21);
        assert_eq!(played(Recipe::on(command::ECHO, Trick::Silence), true), whole);
        assert_eq!(played(Recipe::always(Trick::Silence).every(2), true), whole);
        assert!(played(Recipe::always(Trick::Silence), true).is_empty());
    }

    #[test]
    fn only_the_command_of_the_recipe_and_what_follows_it_fails() {
        let recipe = Recipe::on(command::READ, Trick::Status(0xc000_0043));
        let statuses = |recipe| -> Vec<u64> {
            parts_of(played(recipe, true)).iter().map(|part| number::<4>(part, 8)).collect()
        };
        assert_eq!(statuses(recipe), [0, 0xc000_0043]);
        let both = Recipe { only: Some(command::CREATE), ..recipe };
        assert_eq!(statuses(both), [0xc000_0043; 2]);
    }

    #[test]
    fn a_flip_changes_one_bit_behind_its_place() {
        let whole = played(Recipe::always(Trick::Flip(64)), false);
        let flipped = played(Recipe::always(Trick::Flip(64)), true);
        let bits: u32 = whole.iter().zip(&flipped).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!(bits, 1);
        assert_eq!(whole[..68], flipped[..68]);
    }
}
