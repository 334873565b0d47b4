//! The link of a session: up, coming, or down for a while.

use std::fmt;

use plimsoll_engine::seam::{Io, Link, LinkError, LinkKind};
use plimsoll_model::units::Nanos;

/// Wait before a lost link is opened again; doubles up to [`RECONNECT_PAUSE_MAX`] until a reply
/// comes.
pub const RECONNECT_PAUSE: Nanos = Nanos::from_millis(100);
/// A server that restarts is noticed within this.
pub const RECONNECT_PAUSE_MAX: Nanos = Nanos::from_secs(1);

/// The one link of a session.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) kind: LinkKind,
    stage: Stage,
    /// Before the next attempt, should this link be lost too.
    pause: Nanos,
    /// Why the last link was lost, until a reply comes.
    pub(super) trouble: Option<Trouble>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A link may be opened from then on.
    Down {
        from: Nanos,
    },
    Connecting(Link),
    Up(Link),
}

/// Why a link was lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    /// The server closed it.
    Closed,
    /// What came on it could not be read.
    Garbled,
    /// It broke or did not open.
    Failed(LinkError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Garbled => f.write_str("the server's stream could not be read"),
            Self::Failed(LinkError { errno: 0, .. }) => f.write_str("the connection broke"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl Line {
    pub(super) fn new(kind: LinkKind) -> Self {
        let stage = Stage::Down { from: Nanos::ZERO };
        Self { kind, stage, pause: RECONNECT_PAUSE, trouble: None }
    }

    /// The link, when it carries bytes.
    pub(super) fn up(&self) -> Option<Link> {
        match self.stage {
            Stage::Up(link) => Some(link),
            Stage::Connecting(_) | Stage::Down { .. } => None,
        }
    }

    /// From when on a link may be opened; `None` when there is one or one is coming.
    pub(super) fn down_until(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Down { from } => Some(from),
            Stage::Connecting(_) | Stage::Up(_) => None,
        }
    }

    pub(super) fn is(&self, link: Link) -> bool {
        match self.stage {
            Stage::Connecting(own) | Stage::Up(own) => own == link,
            Stage::Down { .. } => false,
        }
    }

    pub(super) fn connect(&mut self, io: &mut impl Io) {
        self.stage = Stage::Connecting(io.connect(self.kind));
    }

    pub(super) fn connected(&mut self, link: Link) {
        self.stage = Stage::Up(link);
    }

    /// A reply came: the server is well.
    pub(super) fn proved(&mut self) {
        self.pause = RECONNECT_PAUSE;
        self.trouble = None;
    }

    /// The link is gone at `now`.
    pub(super) fn lost(&mut self, trouble: Trouble, now: Nanos) {
        self.stage = Stage::Down { from: now.saturating_add(self.pause) };
        self.pause = self.pause.saturating_add(self.pause).min(RECONNECT_PAUSE_MAX);
        self.trouble = Some(trouble);
    }
}
