//! One client as it is measured, with a blocking channel instead of the engine: it does an op when
//! asked and says how that ended.

use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_engine::seam::{ClientSeat, Io, Link, LinkError, LinkKind, Session as _, Ticket};
use plimsoll_model::outcome::{ErrorClass, OpKind, Outcome};
use plimsoll_model::units::Nanos;

use super::super::op::SmbCall;
use super::super::session::{SmbSession, SmbSite};
use plimsoll_protocol::net::{Channel, ChannelError, Dial, SourcePort};

/// Longest silence.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// A wait is cut into pieces this long, so that a stop is heard.
const STOP_HEARD_WITHIN: Duration = Duration::from_millis(100);
/// What anything heard takes from the silence, so that a server cannot lengthen it for ever.
const HEARING_COSTS: Duration = Duration::from_millis(1);
/// Time does not pass: the wait above is the only limit.
const NOW: Nanos = Nanos(0);
const LINK: Link = Link(0);

/// How an op ended that was tried.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    /// As the engine would hear it.
    pub outcome: Outcome,
    /// What the session says of a failure.
    pub detail: String,
}

/// Why there is no outcome.
#[derive(Debug)]
pub(super) enum TrialError {
    /// The caller wants everything to end.
    Stopped,
    /// No answer.
    Silence,
}

/// A client that tries ops.
pub(super) struct Trial<'a> {
    session: SmbSession,
    wire: Wire<'a>,
}

impl<'a> Trial<'a> {
    /// It connects with the first op.
    pub(super) fn new(site: SmbSite, address: SocketAddr, dial: &'a dyn Dial) -> Self {
        let seat = ClientSeat {
            client: 0,
            endpoint: 0,
            seed: 0,
            op_timeout: Nanos::from_secs(SILENCE_MAX.as_secs()),
            nonce: dial.caller().nonce,
        };
        let session = SmbSession::new(Rc::new(site), seat);
        let wire = Wire {
            dial,
            address,
            channel: None,
            is_wanted: false,
            failure: None,
            detail: String::new(),
            ended: None,
        };
        Self { session, wire }
    }

    /// Does it and waits for its end.
    pub(super) fn run(&mut self, call: SmbCall) -> Result<Tried, TrialError> {
        let Self { session, wire } = self;
        wire.detail.clear();
        session.issue(Ticket(0), call, NOW, wire);
        let stop = wire.dial.stop();
        let mut time_left = SILENCE_MAX;
        let mut bytes = Vec::new();
        loop {
            if let Some(outcome) = wire.ended.take() {
                return Ok(Tried { outcome, detail: wire.detail.clone() });
            }
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(TrialError::Stopped);
            }
            if std::mem::take(&mut wire.is_wanted) {
                match wire.dial.dial(wire.address, LinkKind::Stream, SourcePort::Any) {
                    Ok(channel) => {
                        wire.channel = Some(channel);
                        session.on_connected(LINK, NOW, wire);
                    }
                    Err(error) => session.on_failed(LINK, link_error(&error), NOW, wire),
                }
                continue;
            }
            if let Some(error) = wire.failure.take() {
                wire.channel = None;
                session.on_failed(LINK, link_error(&error), NOW, wire);
                continue;
            }
            let Some(channel) = &mut wire.channel else { return Err(TrialError::Silence) };
            if time_left.is_zero() {
                return Err(TrialError::Silence);
            }
            bytes.clear();
            match channel.receive(&mut bytes, STOP_HEARD_WITHIN.min(time_left)) {
                Ok(()) => {
                    time_left = time_left.saturating_sub(HEARING_COSTS);
                    session.on_bytes(LINK, &bytes, NOW, wire);
                }
                Err(ChannelError::Timeout) => {
                    time_left = time_left.saturating_sub(STOP_HEARD_WITHIN);
                }
                Err(ChannelError::Closed) => session.on_eof(LINK, NOW, wire),
                Err(error) => {
                    wire.channel = None;
                    session.on_failed(LINK, link_error(&error), NOW, wire);
                }
            }
        }
    }
}

struct Wire<'a> {
    dial: &'a dyn Dial,
    address: SocketAddr,
    channel: Option<Box<dyn Channel>>,
    is_wanted: bool,
    failure: Option<ChannelError>,
    detail: String,
    ended: Option<Outcome>,
}

impl Io for Wire<'_> {
    fn connect(&mut self, _: LinkKind) -> Link {
        self.is_wanted = true;
        LINK
    }

    fn send(&mut self, _: Link, bytes: &[u8]) {
        if let Some(channel) = &mut self.channel
            && let Err(error) = channel.send(bytes)
        {
            self.failure = Some(error);
        }
    }

    fn discard(&mut self, _: Link, _: u64) {
        // What is not wanted is handed over all the same.
    }

    fn close(&mut self, _: Link) {
        self.channel = None;
    }

    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }

    fn complete(&mut self, _: Ticket, outcome: Outcome) {
        self.ended = Some(outcome);
    }

    fn surplus(&mut self, _: OpKind) {
        // Messages are matched by their ids; nothing belongs to an op that has ended.
    }
}

fn link_error(error: &ChannelError) -> LinkError {
    let errno = match error {
        ChannelError::Failed(error) => error.raw_os_error().unwrap_or_default(),
        ChannelError::Timeout | ChannelError::Closed => 0,
    };
    LinkError { class: ErrorClass::Transport, errno }
}
