//! A load on a server of known behaviour, and what the client saw of it.

use plimsoll_model::assignment::Pacing;
use plimsoll_model::event::{OpTimes, PointRecord};
use plimsoll_model::finding::Rule;
use plimsoll_model::result::TimeIntervals;
use plimsoll_model::units::Nanos;

use crate::wire::Wire;

/// Longest wait for replies after a window.
pub const DRAIN: Nanos = Nanos::from_secs(5);

/// A load, held for some time.
#[derive(Clone)]
pub struct Trial {
    /// Of the bundle and the server's log.
    pub name: String,
    /// What it speaks.
    pub wire: Wire,
    /// How ops arrive.
    pub load: Pattern,
    /// Load points, on the axis of the pattern.
    pub points: Vec<f64>,
    /// How workers wait, where that is not as it was asked for.
    pub pacing: Option<Pacing>,
    /// Before the window.
    pub warm_up: Nanos,
    /// What counts.
    pub window: Nanos,
}

impl Trial {
    /// A load at some points, with warm-up and window.
    pub(crate) fn new(
        name: impl Into<String>,
        wire: Wire,
        (load, points): (Pattern, Vec<f64>),
        [warm_up, window]: [Nanos; 2],
    ) -> Self {
        Self { name: name.into(), wire, load, points, pacing: None, warm_up, window }
    }
}

/// How ops arrive.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// At exponential gaps, enough connections.
    Poisson,
    /// At even gaps, over so many connections.
    Even {
        /// Connections.
        clients: u32,
    },
    /// Clients that wait and think.
    Closed,
    /// As the suite has it.
    OfSuite,
}

/// What the client saw of a load point.
pub struct Seen {
    /// Counts.
    pub record: PointRecord,
    /// Times of the ops that were due in the window; the response is the time that its wire judges.
    pub times: OpTimes,
    /// From and until, on the clock of the server's log.
    pub window_ns: (u64, u64),
    /// Why the run is invalid, as far as it concerns the load point.
    pub reasons: Vec<Rule>,
    /// What it states of its response times.
    pub stated: Option<TimeIntervals>,
}

impl Seen {
    /// Ops that came due in the window.
    pub fn due(&self) -> u64 {
        self.record.totals.due
    }

    /// Ops that finished without error in the window, over those that came due in it.
    pub fn done_ratio(&self) -> f64 {
        self.record.totals.done_in_window as f64 / self.due().max(1) as f64
    }

    /// When the point began, on the clock of the server's log.
    pub fn origin_ns(&self) -> u64 {
        self.window_ns.0 - self.record.warm_up_ns.0
    }

    /// Ops that failed or were never sent.
    pub fn troubles(&self) -> u64 {
        self.record.totals.errors.values().sum::<u64>() + self.record.totals.not_sent
    }
}
