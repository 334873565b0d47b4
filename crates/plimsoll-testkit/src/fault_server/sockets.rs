//! How the kernel treats the accepted connections.

use std::net::TcpStream;

use socket2::{SockFilter, SockRef};

/// What is wrong with accepted sockets, or nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sockets {
    /// What is written leaves at once.
    Sound,
    /// Nagle's algorithm: a small write waits until the one before is acknowledged.
    WithNagle,
    /// The kernel drops this share of the segments that come in, and TCP recovers.
    Losing(f64),
}

/// Instructions of classic BPF, from `linux/filter.h`: load a word, jump if at least, return.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where a filter finds a random word.
const RANDOM: u32 = 0xffff_f000 + 56;
/// Returned to keep a whole segment; 0 drops it.
const KEEP: u32 = u32::MAX;

impl Sockets {
    /// Prepares a socket that was accepted.
    pub(super) fn prepare(self, stream: &TcpStream) {
        stream.set_nodelay(self != Self::WithNagle).unwrap();
        if let Self::Losing(share) = self {
            let below = (share * f64::from(u32::MAX)) as u32;
            let drop_some = [
                SockFilter::new(LOAD_WORD, 0, 0, RANDOM),
                SockFilter::new(JUMP_IF_AT_LEAST, 0, 1, below),
                SockFilter::new(RETURN, 0, 0, KEEP),
                SockFilter::new(RETURN, 0, 0, 0),
            ];
            SockRef::from(stream).attach_filter(&drop_some).unwrap();
        }
    }
}
