//! The connections of a session. Calls go to those that are up in turn; what was sent on a lost one
//! is sent again, with the same bytes.

use plimsoll_engine::interface::{Io, Link, LinkKind};
use plimsoll_model::units::Nanos;

use super::super::connection::{Connection, LossReason};
use crate::wire::record::Assembler;

/// A connection and what came on it.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) connection: Connection,
    pub(super) assembler: Assembler,
    /// The session has to be requested_at to use it for callbacks again.
    pub(super) wants_bind: bool,
}

/// All connections of one session.
#[derive(Debug)]
pub(super) struct Links {
    wires: Vec<Wire>,
    next: usize,
}

impl Links {
    pub(super) fn new(count: u32) -> Self {
        let wire = |_| Wire {
            connection: Connection::new(LinkKind::Stream),
            assembler: Assembler::default(),
            wants_bind: false,
        };
        Self { wires: (0..count.max(1)).map(wire).collect(), next: 0 }
    }

    pub(super) fn find(&self, link: Link) -> Option<usize> {
        self.wires.iter().position(|wire| wire.connection.is(link))
    }

    pub(super) fn get(&mut self, at: usize) -> &mut Wire {
        &mut self.wires[at]
    }

    pub(super) fn is_up(&self, at: usize) -> bool {
        self.wires[at].connection.up().is_some()
    }

    /// Why the first connection was lost last, if no reply has come since.
    pub(super) fn lost_by(&self) -> Option<LossReason> {
        self.wires[0].connection.lost_by
    }

    /// The next connection in turn that is up.
    pub(super) fn next_up(&mut self) -> Option<(usize, Link)> {
        let count = self.wires.len();
        for at in (self.next..self.next + count).map(|at| at % count) {
            if let Some(link) = self.wires[at].connection.up() {
                self.next = at + 1;
                return Some((at, link));
            }
        }
        None
    }

    /// The connection for calls outside the slots: the first that is up.
    pub(super) fn first_up(&self) -> Option<Link> {
        self.wires.iter().find_map(|wire| wire.connection.up())
    }

    /// Opens those of the first `count` that are down and whose time has come. Answers with the
    /// next instant at which one may be opened.
    pub(super) fn reach_out(&mut self, count: usize, now: Nanos, io: &mut impl Io) -> Nanos {
        let mut next = Nanos::MAX;
        for wire in self.wires.iter_mut().take(count) {
            match wire.connection.down_until() {
                Some(from) if from <= now => wire.connection.connect(io),
                Some(from) => next = next.min(from),
                None => {}
            }
        }
        next
    }

    /// What came on the link last ended a message.
    pub(super) fn is_between_messages(&self, link: Link) -> bool {
        self.find(link).is_some_and(|at| self.wires[at].assembler.is_between_messages())
    }

    pub(super) fn count(&self) -> usize {
        self.wires.len()
    }
}
