//! The connection of a session: up, coming, or down for a while. Over UDP it is a socket.

use std::fmt;

use plimsoll_engine::interface::{Io, Link, LinkError, LinkKind};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::units::Nanos;

/// Wait before a lost link is opened again; doubles up to [`RECONNECT_PAUSE_MAX`] until a reply
/// comes.
pub const RECONNECT_PAUSE: Nanos = Nanos::from_millis(100);
/// A server that restarts is noticed within this.
pub const RECONNECT_PAUSE_MAX: Nanos = Nanos::from_secs(1);

/// The one connection of a session.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) kind: LinkKind,
    state: State,
    /// Before the next attempt, should this link be lost too.
    pause: Nanos,
    /// Why the last link was lost, until a reply comes.
    pub(super) lost_by: Option<LossReason>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// A link may be opened from then on.
    Down {
        from: Nanos,
    },
    Connecting(Link),
    Up(Link),
}

/// Why a link was lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum LossReason {
    /// The server closed it.
    Closed,
    /// What came on it could not be read.
    Garbled,
    /// It broke or did not open.
    Failed(LinkError),
}

impl LossReason {
    /// The limit of the generator's own, not the server's, because of which no link opens.
    pub(super) const fn generators_limit(self) -> Option<ErrorClass> {
        match self {
            Self::Failed(LinkError {
                class: class @ (ErrorClass::PortsExhausted | ErrorClass::DescriptorsExhausted),
                ..
            }) => Some(class),
            Self::Closed | Self::Garbled | Self::Failed(_) => None,
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Garbled => f.write_str("the server's stream could not be read"),
            Self::Failed(LinkError { errno: 0, .. }) => f.write_str("the connection broke"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl Connection {
    pub(super) fn new(kind: LinkKind) -> Self {
        let state = State::Down { from: Nanos::ZERO };
        Self { kind, state, pause: RECONNECT_PAUSE, lost_by: None }
    }

    /// The link, when it carries bytes.
    pub(super) fn up(&self) -> Option<Link> {
        match self.state {
            State::Up(link) => Some(link),
            State::Connecting(_) | State::Down { .. } => None,
        }
    }

    /// From when on a link may be opened; `None` when there is one or one is coming.
    pub(super) fn down_until(&self) -> Option<Nanos> {
        match self.state {
            State::Down { from } => Some(from),
            State::Connecting(_) | State::Up(_) => None,
        }
    }

    pub(super) fn is(&self, link: Link) -> bool {
        match self.state {
            State::Connecting(own) | State::Up(own) => own == link,
            State::Down { .. } => false,
        }
    }

    pub(super) fn connect(&mut self, io: &mut impl Io) {
        self.state = State::Connecting(io.connect(self.kind));
    }

    pub(super) fn connected(&mut self, link: Link) {
        self.state = State::Up(link);
    }

    /// A reply came: the server is well.
    pub(super) fn proved(&mut self) {
        self.pause = RECONNECT_PAUSE;
        self.lost_by = None;
    }

    /// The link is gone at `now`.
    pub(super) fn lost(&mut self, lost_by: LossReason, now: Nanos) {
        self.state = State::Down { from: now.saturating_add(self.pause) };
        self.pause = self.pause.saturating_add(self.pause).min(RECONNECT_PAUSE_MAX);
        self.lost_by = Some(lost_by);
    }
}
