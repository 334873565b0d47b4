//! A load on a server of known behaviour, and the client's observations.

use plimsoll_model::assignment::Pacing;
use plimsoll_model::event::{OpTimes, PointRecord};
use plimsoll_model::finding::Finding;
use plimsoll_model::result::TimeIntervals;
use plimsoll_model::units::Nanos;

use crate::wire::Wire;

/// Longest wait for replies after a window.
pub const DRAIN: Nanos = Nanos::from_secs(5);

/// A load, kept up for some time.
#[derive(Clone)]
pub struct Trial {
    /// Name of the bundle and of the server's log.
    pub name: String,
    /// Its protocol.
    pub wire: Wire,
    /// How ops arrive.
    pub load: Pattern,
    /// Load points, on the axis of the pattern.
    pub points: Vec<f64>,
    /// How workers wait, where that differs from the request.
    pub pacing: Option<Pacing>,
    /// Before the window.
    pub warm_up: Nanos,
    /// The measured part.
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
    /// With exponential inter-arrival times, over enough connections.
    Poisson,
    /// With even inter-arrival times, over `clients` connections.
    Even {
        /// Connections.
        clients: u32,
    },
    /// Clients that wait and think.
    Closed,
    /// As in the suite.
    OfSuite,
}

/// The client's observation of a load point.
pub struct Observation {
    /// Counts.
    pub record: PointRecord,
    /// Times of the ops that were due in the window; the response is the time that its protocol
    /// checks.
    pub times: OpTimes,
    /// From and until, on the clock of the server's log.
    pub window_ns: (u64, u64),
    /// Why the run is invalid, as far as it concerns the load point; with the sentences.
    pub reasons: Vec<Finding>,
    /// The reported intervals of its response times.
    pub reported: Option<TimeIntervals>,
}

impl Observation {
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
