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
    /// The session has to be asked to use it: for callbacks again, or at all.
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

    /// The link of a connection that is up.
    pub(super) fn up(&self, at: usize) -> Option<(usize, Link)> {
        Some((at, self.wires[at].connection.up()?))
    }

    /// A connection that is up and that the session has to be asked to use, once.
    pub(super) fn take_unbound(&mut self) -> Option<usize> {
        let is_unbound = |wire: &Wire| wire.wants_bind && wire.connection.up().is_some();
        let at = self.wires.iter().position(is_unbound)?;
        self.wires[at].wants_bind = false;
        Some(at)
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
    pub(super) fn first_up(&self) -> Option<(usize, Link)> {
        (0..self.wires.len()).find_map(|at| self.up(at))
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
