//! The capacity within limits: the claim, and every load that was tried.

use plimsoll_model::assignment::Purpose;
use plimsoll_model::capacity::{Capacity, CapacitySearch, CapacityTry, LimitFigure, TryOutcome};
use plimsoll_model::event::Bound;
use plimsoll_model::result::RunResult;
use plimsoll_model::units::{Nanos, grouped};
use serde::Serialize;

use crate::sentences;
use crate::table::{Mark, Rows, Table};
use crate::text::{ABSENT, number};

/// What the columns of the tries mean.
const NOTE: &str = "Behind a figure stands its uncertainty interval (95 %), from blocks of time. A try \
    of the search is within the limits when figure and interval are, undecided when a limit lies \
    inside the interval; it is repeated then. Five re-runs of the claim must be within the limits, and \
    a second that is not lowers the claim; an undecided one counts neither way, and the next one is \
    longer.";

/// A search for a capacity, for a report.
#[derive(Debug, Serialize)]
pub(crate) struct CapacityView {
    /// One sentence.
    pub(crate) claim: String,
    /// What limited the server beyond it; empty where unknown.
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
        limit: capacity.map(|capacity| sentences::limit::text(&capacity.limit)).unwrap_or_default(),
        how: search.how.clone().unwrap_or_default(),
        tries: tries(run, search),
        note: NOTE,
    })
}

fn claim(capacity: &Capacity, bound: Bound, search: &CapacitySearch) -> String {
    let Capacity { value, unit, high, undecided_to, within, passed, tries, users, .. } = capacity;
    let least = if bound == Bound::AtLeast { "At least " } else { "" };
    let above = match high {
        Some(high) => format!("; {} {unit} was too much", grouped(*high)),
        None => "; no higher load was too much".to_owned(),
    };
    let undecided = undecided_to.map(|to| format!(", undecided up to {}", grouped(to)));
    let think = search.asked.think.map(|think| format!(" at a think time of {think}"));
    let users = users.filter(|users| users != value || unit != "clients").map(|users| {
        format!(", which is {} users{}", grouped(users.floor()), think.clone().unwrap_or_default())
    });
    let users = users.or(think).unwrap_or_default();
    let client = sentences::capacity::client(capacity).map(|text| format!(" {text}"));
    format!(
        "{least}{} {unit}{users} within {within}{}: {passed} of {tries} re-runs stayed within the \
         limits{above}.{}",
        grouped(*value),
        undecided.unwrap_or_default(),
        client.unwrap_or_default(),
    )
}

fn tries(run: &RunResult, search: &CapacitySearch) -> Table {
    let within = &search.asked.within;
    let caption = format!("Every load that was tried, in order of time, against {within}");
    let begin = Rows::new(caption, (1..).zip(&search.tries))
        .marked(|(_, attempt)| mark(attempt))
        .figures("try", "", |(number, _): &(u32, _)| *number)
        .figures("load", &run.summary.unit, |(_, attempt)| grouped(attempt.load))
        .text("purpose", |(_, attempt)| purpose(attempt))
        .figures("achieved", "ops/s", |(_, attempt)| {
            let index = (attempt.point as usize).checked_sub(1);
            number(index.and_then(|at| run.points.get(at)?.achieved_ops_per_s))
        });
    let limits = within.limits().iter().enumerate();
    let all = limits.fold(begin, |rows, (at, limit)| {
        rows.figures(&limit.figure.name(), "", |(_, attempt)| {
            attempt.figures.get(at).map(figure_text)
        })
    });
    all.text("judged", |(_, attempt)| outcome_text(attempt))
        .text("why", |(_, attempt)| sentences::capacity::why(attempt))
        .figures("point", "", |(_, attempt)| attempt.point)
        .table()
}

fn purpose(attempt: &CapacityTry) -> &'static str {
    match attempt.purpose {
        Purpose::Verify => "re-run",
        Purpose::Probe | Purpose::Ladder | Purpose::Profile | Purpose::Pilot => "search",
    }
}

fn outcome_text(attempt: &CapacityTry) -> &'static str {
    match (attempt.purpose, attempt.standing) {
        _ if attempt.late => "within, generator late",
        (Purpose::Verify, TryOutcome::Within) => "passed",
        (Purpose::Verify, TryOutcome::NotWithin) => "failed",
        (_, outcome) => outcome.as_str(),
    }
}

fn mark(attempt: &CapacityTry) -> Mark {
    match (attempt.standing, attempt.passed) {
        _ if attempt.late => Mark::Invalid,
        (TryOutcome::NotJudged, _) => Mark::Invalid,
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
        (Some(value), Some([low, high])) if high.is_infinite() => {
            format!("{} (≥\u{a0}{})", text(value), text(low))
        }
        (Some(value), Some([low, high])) if low < high => {
            format!("{} ({}–{})", text(value), text(low), text(high))
        }
        (Some(value), _) => text(value),
    }
}
