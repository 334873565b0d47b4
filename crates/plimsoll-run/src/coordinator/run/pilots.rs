//! Load points that are measured until a figure is precise: pilots find the length of the window.

use plimsoll_analysis::EvaluatedPoint;
use plimsoll_analysis::precision::{NextWindow, next_window};
use plimsoll_model::assignment::Purpose;
use plimsoll_model::event::JournalRecord;
use plimsoll_model::precision::ReachedPrecision;
use plimsoll_model::units::{Nanos, percent};
use plimsoll_model::until::{self, Precision};
use plimsoll_report::sentences::finding;

use super::{Planned, Run, Window};
use crate::failure::Failure;
use crate::progress::RunProgress;

impl Run<'_> {
    /// Runs a load point, after pilots where its figure is to have a precision; `None` if the user
    /// requested the end.
    pub(super) fn measure(
        &mut self,
        point: Planned,
        live: &mut dyn RunProgress,
    ) -> Result<Option<EvaluatedPoint>, Failure> {
        let searched = self.request.capacity.is_some();
        let until = self.request.options.until.clone();
        let until = until.filter(|_| until::applies(point.purpose, searched));
        let Some(until) = until else { return self.point(&point, live) };
        let usual = self.phases_of(&point).measure_ns;
        let mut pilots = self.pilots_so_far();
        loop {
            let length = match next_window(&pilots, usual, until.at_most(usual)) {
                NextWindow::Pilot(length) => length,
                NextWindow::Counted(length) => {
                    let point = Planned { window: Window::Length(length), ..point };
                    return self.point(&point, live);
                }
            };
            let title = format!("{}, pilot", point.title);
            let window = Window::Pilot(length);
            let pilot = Planned { window, title, last: false, ..point.clone() };
            let Some(evaluated) = self.point(&pilot, live)? else { return Ok(None) };
            let Some(reached) = evaluated.result.precision else {
                return self.point(&point, live);
            };
            live.line(&format!(
                "{}: {}",
                pilot.title,
                pilot_text(&until.precision, length, &reached)
            ));
            pilots.push((length, reached));
        }
    }

    /// The pilots of the next load point that an earlier part of this run finished.
    fn pilots_so_far(&self) -> Vec<(Nanos, ReachedPrecision)> {
        let mut pilots = Vec::new();
        for record in &self.records {
            let JournalRecord::PointFinished(point) = record else { continue };
            if point.server_lost.is_some() {
                continue;
            }
            if point.point.purpose != Purpose::Pilot {
                pilots.clear();
                continue;
            }
            let evaluated = self.analysis.point(point.point.ordinal);
            let reached = evaluated.and_then(|evaluated| evaluated.result.precision);
            pilots.extend(reached.map(|reached| (point.measured_ns, reached)));
        }
        pilots
    }
}

/// `±14 % after 3.00 s: p99±5% takes a window of 24.0 s`.
fn pilot_text(requested: &Precision, length: Nanos, reached: &ReachedPrecision) -> String {
    let half_width =
        reached.ratio.map_or("no upper end".to_owned(), |it| format!("±{}", percent(it)));
    let next = match (reached.window_needed_ns, reached.never) {
        (_, Some(never)) => finding::why_never(never).to_owned(),
        (Some(needed), _) => format!("{requested} takes a window of {needed}"),
        (None, None) => String::new(),
    };
    format!("{half_width} after {length}: {next}")
}
