//! One op in flight over HTTP/2.

use std::fmt;

use plimsoll_engine::seam::Link;
use plimsoll_model::outcome::ErrorClass;

use crate::in_flight::{InFlight, Stage};
use crate::wire::request::Method;

/// An op, and how far its request has come.
#[derive(Debug)]
pub(super) struct Op<R> {
    pub(super) flight: InFlight<R>,
    /// What carries it; `None` while it waits.
    pub(super) stream: Option<(Link, u32)>,
    /// Bytes of the request's body that the windows have not let out.
    pub(super) body_left: u64,
    /// The call that the session is in has brought bytes of its reply.
    pub(super) is_touched: bool,
}

/// A body that is not as long as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongLength {
    announced: u64,
    got: u64,
}

impl<R: Default> Op<R> {
    /// An op that no stream carries yet.
    pub(super) fn new(flight: InFlight<R>) -> Self {
        Self { flight, stream: None, body_left: 0, is_touched: false }
    }

    /// So much of the body went out.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.flight.sent_bytes += bytes as u64;
        self.body_left = self.body_left.saturating_sub(bytes as u64);
    }

    /// The reply has ended: whether its body has another length than announced. RFC 9113 §8.1.1
    pub(super) fn wrong_length(&self) -> Option<WrongLength> {
        let Stage::Body { head, .. } = self.flight.stage else { return None };
        let has_body = self.flight.op.method != Method::HEAD && !matches!(head.status, 204 | 304);
        let announced = head.content_length.filter(|_| has_body)?;
        let got = self.flight.payload_bytes;
        (got != announced).then_some(WrongLength { announced, got })
    }
}

impl WrongLength {
    pub(super) fn class(self) -> ErrorClass {
        if self.got < self.announced { ErrorClass::Truncated } else { ErrorClass::Malformed }
    }
}

impl fmt::Display for WrongLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { announced, got } = self;
        write!(f, "the reply ended after {got} bytes; its header says {announced}")
    }
}
