//! The [`Io`] that a session sees, and what it says there.

use std::fmt;

use plimsoll_model::outcome::{OpKind, Outcome};

use super::links::Links;
use crate::driver::{Driver, Route};
use crate::seam::{Io, Link, LinkKind, Piece, Ticket};

/// What a session's calls produced, collected until the session returns.
#[derive(Default)]
pub(super) struct Produced {
    completions: Vec<Completion>,
    /// What came behind replies of ops that had ended before.
    surpluses: Vec<Surplus>,
    pieces: Vec<(Ticket, Piece)>,
    /// Words for the failure that completes next.
    detail: Option<String>,
    /// A further error sample would be kept.
    wants_detail: bool,
}

/// An op that ended.
pub(super) struct Completion {
    pub(super) ticket: Ticket,
    pub(super) outcome: Outcome,
    /// Why it failed, in words.
    pub(super) detail: Option<String>,
}

/// Bytes behind a reply that had been recorded as good.
pub(super) struct Surplus {
    pub(super) kind: OpKind,
    /// What came, in words.
    pub(super) detail: Option<String>,
}

impl Produced {
    /// Whether the session's words are kept from now on.
    pub(super) const fn keep_details(&mut self, wanted: bool) {
        self.wants_detail = wanted;
    }

    /// How many ops have ended.
    pub(super) fn ended(&self) -> usize {
        self.completions.len()
    }

    /// The op that ended as number `nth`, for the first time it is asked for.
    pub(super) fn take(&mut self, nth: usize) -> Option<Completion> {
        let Completion { ticket, outcome, ref mut detail } = *self.completions.get_mut(nth)?;
        Some(Completion { ticket, outcome, detail: detail.take() })
    }

    /// All that ended have been dealt with.
    pub(super) fn clear(&mut self) {
        self.completions.clear();
    }

    pub(super) fn take_piece(&mut self) -> Option<(Ticket, Piece)> {
        self.pieces.pop()
    }

    pub(super) fn take_surplus(&mut self) -> Option<Surplus> {
        self.surpluses.pop()
    }
}

/// The [`Io`] of one client during one call of its session.
pub(super) struct Port<'w, D> {
    links: &'w mut Links<D>,
    produced: &'w mut Produced,
    client: u32,
    route: &'w Route,
}

impl<'w, D> Port<'w, D> {
    pub(super) const fn new(
        links: &'w mut Links<D>,
        produced: &'w mut Produced,
        client: u32,
        route: &'w Route,
    ) -> Self {
        Self { links, produced, client, route }
    }
}

impl<D: Driver> Io for Port<'_, D> {
    fn connect(&mut self, kind: LinkKind) -> Link {
        self.links.connect(self.client, kind, self.route)
    }

    fn send(&mut self, link: Link, bytes: &[u8]) {
        self.links.send(link, bytes);
    }

    fn discard(&mut self, link: Link, n: u64) {
        self.links.discard(link, n);
    }

    fn close(&mut self, link: Link) {
        self.links.close(link);
    }

    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        if self.produced.wants_detail {
            self.produced.detail = Some(detail.to_string());
        }
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome) {
        let detail = self.produced.detail.take();
        self.produced.completions.push(Completion { ticket, outcome, detail });
    }

    fn piece(&mut self, ticket: Ticket, piece: Piece) {
        self.produced.pieces.push((ticket, piece));
    }

    fn surplus(&mut self, kind: OpKind) {
        let detail = self.produced.detail.take();
        self.produced.surpluses.push(Surplus { kind, detail });
    }
}
