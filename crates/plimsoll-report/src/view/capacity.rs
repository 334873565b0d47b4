//! The capacity within limits: the claim, and every load that was tried.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::{Capacity, CapacitySearch, CapacityTry, LimitFigure, TryStanding};
use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_model::units::{Nanos, grouped};
use serde::Serialize;

use crate::table::{Mark, Table, figures, words};
use crate::text::ABSENT;

/// What the columns of the tries mean.
const NOTE: &str = "Behind a figure stands its uncertainty interval (95 %), from blocks of time. A try \
    of the search is within the limits when figure and interval are, undecided when a limit lies \
    inside the interval; it is repeated then. Re-runs of the claim are judged by their figures: \
    five must stay below, and a second that does not lowers the claim.";

/// What a report says of a search for a capacity.
#[derive(Debug, Serialize)]
pub(crate) struct CapacityView {
    /// One sentence.
    pub(crate) claim: String,
    /// What held the server back beyond it; empty where nothing is known.
    pub(crate) limit: String,
    pub(crate) how: String,
    pub(crate) tries: Table,
    pub(crate) note: &'static str,
}

/// `None` in runs that searched none.
pub(super) fn view(run: &RunResult) -> Option<CapacityView> {
    let search = run.summary.capacity_search.as_ref()?;
    let capacity = run.summary.capacity.as_ref();
    Some(CapacityView {
        claim: match capacity {
            Some(capacity) => claim(capacity, run.summary.bound, search),
            None if search.how.is_none() => {
                format!("The search for a load within {} has not ended.", search.asked.within)
            }
            None => format!("No load within {} was found.", search.asked.within),
        },
        limit: capacity.map(|capacity| capacity.limit.to_string()).unwrap_or_default(),
        how: search.how.clone().unwrap_or_default(),
        tries: tries(run, search),
        note: NOTE,
    })
}

fn claim(capacity: &Capacity, bound: Bound, search: &CapacitySearch) -> String {
    let Capacity { value, unit, high, within, passed, tries, users, .. } = capacity;
    let least = if bound == Bound::AtLeast { "At least " } else { "" };
    let above = match high {
        Some(high) => format!("; {} {unit} was too much", grouped(*high)),
        None => "; no higher load was too much".to_owned(),
    };
    let think = search.asked.think.map(|think| format!(" at a think time of {think}"));
    let users = users.filter(|users| users != value || unit != "clients").map(|users| {
        format!(", which is {} users{}", grouped(users.floor()), think.clone().unwrap_or_default())
    });
    let users = users.or(think).unwrap_or_default();
    format!(
        "{least}{} {unit}{users} within {within}: {passed} of {tries} re-runs stayed within the \
         limits{above}.",
        grouped(*value),
    )
}

fn tries(run: &RunResult, search: &CapacitySearch) -> Table {
    let mut columns = vec![
        figures("try", ""),
        figures("load", &run.summary.unit),
        words("purpose"),
        figures("achieved", "ops/s"),
    ];
    let limits = search.asked.within.limits();
    columns.extend(limits.iter().map(|limit| figures(&limit.figure.name(), "")));
    columns.extend([words("judged"), words("why"), figures("point", "")]);
    let caption = format!("Every load that was tried, in order of time, against {}", {
        &search.asked.within
    });
    let mut table = Table::new(caption, columns);
    for (number, attempt) in (1..).zip(&search.tries) {
        let achieved = (attempt.point as usize)
            .checked_sub(1)
            .and_then(|at| run.points.get(at)?.achieved_ops_per_s);
        let mut cells = vec![
            number.to_string(),
            grouped(attempt.load),
            purpose(attempt).to_owned(),
            crate::text::number(achieved),
        ];
        let figure = |at: usize| attempt.figures.get(at).map_or(ABSENT.to_owned(), figure_text);
        cells.extend((0..limits.len()).map(figure));
        cells.extend([judged(attempt).to_owned(), attempt.why(), attempt.point.to_string()]);
        table.push_marked(cells, mark(attempt));
    }
    table
}

fn purpose(attempt: &CapacityTry) -> &'static str {
    match attempt.purpose {
        Purpose::Verify => "re-run",
        Purpose::Probe | Purpose::Ladder | Purpose::Profile => "search",
    }
}

fn judged(attempt: &CapacityTry) -> &'static str {
    match (attempt.purpose, attempt.standing, attempt.passed) {
        (_, TryStanding::NotJudged, _) => TryStanding::NotJudged.as_str(),
        (Purpose::Verify, _, true) => "passed",
        (Purpose::Verify, _, false) => "failed",
        (_, standing, _) => standing.as_str(),
    }
}

fn mark(attempt: &CapacityTry) -> Mark {
    match (attempt.standing, attempt.passed) {
        (TryStanding::NotJudged, _) => Mark::Invalid,
        (_, true) => Mark::Sound,
        (_, false) => Mark::NotCounted,
    }
}

fn figure_text(figure: &LimitFigure) -> String {
    let text = |value: f64| match figure.unit.as_str() {
        "ns" => Nanos(value.round() as u64).to_string(),
        _ => format!("{} %", grouped(value * 100.0)),
    };
    match (figure.value, figure.interval) {
        (None, _) => ABSENT.to_owned(),
        (Some(value), Some([low, high])) if low < high => {
            format!("{} ({}–{})", text(value), text(low), text(high))
        }
        (Some(value), _) => text(value),
    }
}
