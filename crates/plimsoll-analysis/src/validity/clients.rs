//! Did the clients take part to the end of the window?

use plimsoll_model::assignment::Load;
use plimsoll_model::result::Finding;

use super::{Evidence, finding};

/// A client that leaves takes its share of a closed load with it: as in Mindcraft's report the
/// point counts, with those that stayed (the SuperLab aborted: `on_client_failure`). In an open
/// load what nobody sends is not sent.
pub(super) fn clients_lost(e: &Evidence<'_>) -> Option<Finding> {
    let asked = e.view.record.load.clients();
    let stayed = e.view.record.totals.clients_participating;
    if stayed == 0 || (stayed >= asked && e.view.lost.is_empty()) {
        return None;
    }
    let why = e.view.lost.first().map_or_else(String::new, |why| format!(" ({why})"));
    let text = match asked.saturating_sub(stayed) {
        0 => format!(
            "all {asked} clients took part to the end of the window, but {} left after it{why}",
            e.view.lost.len(),
        ),
        _ => {
            let what_of_it = match e.view.record.load {
                Load::Open { .. } => "the others had to do their share",
                Load::Closed { .. } => "the figures are those of a load that shrank",
            };
            format!(
                "{stayed} of {asked} clients took part to the end of the window{why}: \
                 {what_of_it}; see why they left",
            )
        }
    };
    finding("clients_lost", text)
}

/// Share of its clients that a closed load may not shrink below: with fewer it is another load.
const CLIENTS_LEFT_MIN_RATIO: f64 = 0.2;

/// Nobody asked the server for anything at the end of the window, or too few in a closed load.
pub(super) fn too_few_clients_left(e: &Evidence<'_>) -> Option<Finding> {
    let asked = e.view.record.load.clients();
    let stayed = e.view.record.totals.clients_participating;
    let least = match e.view.record.load {
        Load::Open { .. } => 1.0,
        Load::Closed { .. } => (f64::from(asked) * CLIENTS_LEFT_MIN_RATIO).max(1.0),
    };
    if f64::from(stayed) >= least {
        return None;
    }
    let why = e.view.lost.first().map_or_else(String::new, |why| format!(" ({why})"));
    let left = if stayed == 0 { "none".to_owned() } else { stayed.to_string() };
    finding(
        "clients_lost",
        format!(
            "{left} of {asked} clients took part to the end of the window{why}; see why they left, \
             then run the point again",
        ),
    )
}
