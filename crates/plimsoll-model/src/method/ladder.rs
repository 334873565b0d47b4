//! The sequence of load points in words.

use crate::suite::{Ladder, LoadSpec, Suite};
use crate::units::{grouped, span_text};

/// Path of its line.
pub(super) const KEY: &str = "ladder";

/// It is another than the method's. A peak that the user names instead of the search leaves the
/// ladder the method's.
pub(super) fn differs(own: &Ladder, method: &Ladder) -> bool {
    match (own, method) {
        (
            Ladder::Peak { steps, .. },
            Ladder::Peak { steps: wanted, .. } | Ladder::Auto { steps: wanted, .. },
        ) => steps != wanted,
        (Ladder::Think { thinks, .. }, Ladder::Think { thinks: wanted, .. }) => thinks != wanted,
        _ => own != method,
    }
}

/// `16 named: 1, 4, 8, 12 clients`.
pub(super) fn text(suite: &Suite) -> String {
    match &suite.ladder {
        Ladder::Points { points } => {
            let unit = match suite.load {
                LoadSpec::Open { .. } => "ops/s",
                LoadSpec::Closed { .. } => "clients",
            };
            let loads = points.iter().map(|load| grouped(*load)).collect::<Vec<_>>().join(", ");
            format!("{}: {loads} {unit}", count(points.len()))
        }
        Ladder::Think { thinks, .. } => {
            let thinks = thinks.iter().map(|think| span_text(*think)).collect::<Vec<_>>();
            format!("{}: think times of {}", count(thinks.len()), thinks.join(", "))
        }
        Ladder::Peak { peak, steps } => format!("{steps} even ones up to {}", grouped(*peak)),
        Ladder::Auto { steps, headroom } if *headroom == 1.0 => {
            format!("{steps} even ones up to the peak")
        }
        Ladder::Auto { steps, headroom } => {
            format!("{steps} even ones up to {headroom} of the peak")
        }
    }
}

fn count(points: usize) -> String {
    match points {
        1 => "one named".to_owned(),
        several => format!("{several} named"),
    }
}
