//! How precise the figure of a load point is, beside what it was to be ([`crate::until`]).

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How precise the figure of a load point is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReachedPrecision {
    /// Half the width of the interval as a share of the figure; `null` where the sample shows no
    /// upper end, or where the point has no such figure.
    pub ratio: Option<f64>,
    /// The window in which the wanted precision is expected; where there is no upper end, at
    /// least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_needed_ns: Option<Nanos>,
    /// Why no window is long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never: Option<Never>,
}

impl ReachedPrecision {
    /// Half the width of the interval is no larger than this share of the figure.
    pub fn is_within(&self, ratio: f64) -> bool {
        self.ratio.is_some_and(|reached| reached <= ratio)
    }
}

/// Why a figure does not become more precise in a longer window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Never {
    /// The server does not sustain the load.
    NotHeld,
    /// Its response time drifts: the figure is of no steady state.
    Drifts,
    /// The generator's own delays leave more open.
    Generator,
    /// The load point has no such figure.
    NoFigure,
}
