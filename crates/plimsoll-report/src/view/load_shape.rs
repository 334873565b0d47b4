//! A load that changes: its phases as one point over time, as a table, and the recoveries.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::load_shape::PhaseKind;
use plimsoll_model::result::{PhaseResult, PointResult, RunResult, TimelineSecond};
use plimsoll_model::units::{Nanos, span_text};
use serde::Serialize;

use crate::sentences::recovery;
use crate::table::{Rows, Table};
use crate::text::{capitalised, number};

/// A load that changes, for the page.
#[derive(Debug, Serialize)]
pub(crate) struct ShapeView {
    /// What the shape is, and with which resolution it is drawn.
    note: String,
    /// A sentence for each pulse.
    recovery: Vec<String>,
    /// What the server used around it.
    resources: Table,
}

pub(super) fn view(run: &RunResult) -> ShapeView {
    ShapeView { note: note(run), recovery: sentences(run), resources: resources_table(run) }
}

/// Whether the rules of a steady state apply to a phase, as a note of it.
fn steady_note(phase: &PhaseResult) -> &'static str {
    match (phase.is_steady, phase.kind) {
        (true, _) => "held",
        (false, PhaseKind::Hold) => "after a pulse: steadiness not judged",
        (false, _) => "steadiness not judged",
    }
}

/// `hold 500, steadiness not judged`.
pub(super) fn phase_text(point: &PointResult) -> Option<String> {
    let phase = point.phase.as_ref()?;
    Some(match phase.is_steady {
        true => phase.name.clone(),
        false => format!("{}, {}", phase.name, steady_note(phase)),
    })
}

/// A sentence for each pulse.
pub(super) fn sentences(run: &RunResult) -> Vec<String> {
    let unit = &run.axis.unit;
    let all = run.recovery.iter();
    all.map(|one| capitalised(&format!("{}.", recovery::text(one, unit)))).collect()
}

/// All phases as one point, whose seconds have the kind of their phase; `None` where the load does
/// not change.
pub(crate) fn joined_point(run: &RunResult) -> Option<PointResult> {
    run.load_shape.as_ref()?;
    let last = run.points.len();
    let mut joined = PointResult::default();
    for (number, point) in (1..).zip(&run.points) {
        let phase = point.phase.as_ref()?;
        let second = |second: &TimelineSecond| {
            let phase = match (&second.phase[..], phase.kind) {
                ("measure", PhaseKind::Ramp | PhaseKind::Pulse) => phase.kind.as_str().to_owned(),
                (other, _) => other.to_owned(),
            };
            TimelineSecond { phase, ..second.clone() }
        };
        // What ends late of a phase is in the seconds of the next.
        let own = point.timeline.iter().filter(|it| number == last || it.phase != "drain");
        joined.timeline.extend(own.map(second));
        for used in &point.resources {
            add_resource(&mut joined.resources, used, phase.start_s);
        }
    }
    Some(joined)
}

fn add_resource(all: &mut Vec<ResourceUse>, used: &ResourceUse, start_s: f64) {
    let later = used.over_time.iter().map(|(at, value)| (start_s + at, *value));
    match all.iter_mut().find(|it| it.name == used.name && it.source == used.source) {
        Some(joined) => {
            joined.mean = joined.mean.max(used.mean);
            joined.over_time.extend(later);
        }
        None => all.push(ResourceUse { over_time: later.collect(), ..used.clone() }),
    }
}

/// What resources of the server did around each pulse.
fn resources_table(run: &RunResult) -> Table {
    let rows = run.recovery.iter().flat_map(|one| one.resources.iter().map(move |it| (one, it)));
    let caption = "What the server used: means before, in and after each pulse.";
    Rows::new(caption.to_owned(), rows.collect::<Vec<_>>())
        .figures("pulse", "point", |(one, _)| one.pulse)
        .text("resource", |(_, it)| Some(format!("{}, {}", it.name, it.unit)))
        .figures("before", "", |(_, it)| number(Some(it.before)))
        .figures("in the pulse", "", |(_, it)| number(it.during))
        .figures("after", "", |(_, it)| number(it.after))
        .table()
}

/// What the shape is, and with which resolution its figures are drawn.
fn note(run: &RunResult) -> String {
    let Some(shape) = &run.load_shape else { return String::new() };
    let resolution = span_text(Nanos::from_secs(1));
    format!(
        "Shape: {shape}. Figures over time have a resolution of {resolution}; percentiles of a \
         phase are those of its ops. Only phases that are held, and come after no pulse, are \
         judged by the rules of a steady state."
    )
}
