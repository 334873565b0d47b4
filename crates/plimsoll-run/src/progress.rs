//! How a run reports its progress to the user: events, of which the terminal makes lines.

use plimsoll_model::assignment::{Phases, Purpose};
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::{Ladder, LoadSpec, Metric, Profile, Suite};
use plimsoll_model::units::{Nanos, clients, grouped};
use plimsoll_protocol::net::SetupProgress;

use crate::observers::SecondView;

/// Shows the progress of a run.
pub trait RunProgress: Send {
    /// Writes a line that the user must see, from any thread.
    fn note_writer(&self) -> fn(&str);

    /// A line that the user must see.
    fn note(&self, text: &str) {
        self.note_writer()(text);
    }

    /// A line that stays.
    fn line(&mut self, text: &str);

    /// A passing line: the next one takes its place.
    fn passing(&mut self, text: &str);

    /// The last passing line no longer applies.
    fn clear(&mut self);

    /// Data are written; `left` is the estimated time until all are, once there is a rate.
    fn setting_up(&mut self, title: &str, at: &SetupProgress, left: Option<Nanos>);

    /// These load points follow, each with these timings.
    fn ladder_begins(&mut self, loads: &[f64], unit: LoadUnit, phases: &Phases);

    /// A load point will begin next.
    fn point_begins(&mut self, title: &str, metric: Metric, phases: &Phases);

    /// The load point runs. Called about twenty times a second, with any second that has ended and
    /// the time left of what is planned.
    fn point_runs(&mut self, second: Option<&SecondView>, left: Nanos);

    /// The load point has ended and was analysed.
    fn point_finished(&mut self, title: &str, purpose: Purpose, point: &PointResult);
}

/// The unit of a ladder's loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadUnit {
    /// Arrivals per second, in this unit.
    Rate(&'static str),
    /// Clients.
    Clients,
    /// Seconds of think time, for this number of clients.
    ThinkTime(u32),
}

impl LoadUnit {
    /// The unit for a suite in a profile.
    pub(crate) fn from_suite(suite: &Suite, profile: &Profile) -> Self {
        match (&suite.load, &suite.ladder) {
            (LoadSpec::Open { .. }, _) => Self::Rate(suite.load.unit(suite.metric)),
            (LoadSpec::Closed { .. }, Ladder::Think { clients, .. }) => {
                Self::ThinkTime(profile.clients_used(*clients))
            }
            (LoadSpec::Closed { .. }, _) => Self::Clients,
        }
    }

    /// `1,500 ops/s`.
    pub fn text(self, load: f64) -> String {
        match self {
            Self::Rate(unit) => format!("{} {unit}", grouped(load)),
            Self::Clients => clients(load),
            Self::ThinkTime(clients) => format!(
                "{} s think time, {}",
                grouped(load),
                Self::Clients.text(f64::from(clients))
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_their_unit() {
        assert_eq!(LoadUnit::Rate("ops/s").text(1500.0), "1,500 ops/s");
        assert_eq!(LoadUnit::Clients.text(1.0), "1 client");
        assert_eq!(LoadUnit::ThinkTime(974).text(2.5), "2.5 s think time, 974 clients");
    }
}
