//! Did the clients take part to the end of the window?

use plimsoll_model::assignment::Load;
use plimsoll_model::finding::{LostClients, Rule};

use super::Evidence;

/// Share of its clients that a closed load may not shrink below: with fewer it is another load.
const CLIENTS_LEFT_MIN_RATIO: f64 = 0.2;

/// A client that leaves takes its share of a closed load with it: as in Mindcraft's report the
/// point counts, with those that stayed (the SuperLab aborted: `on_client_failure`). In an open
/// load what nobody sends is not sent.
pub(super) fn clients_lost(e: &Evidence<'_>) -> Option<Rule> {
    let asked = e.view.record.load.clients();
    let stayed = e.view.record.totals.clients_participating;
    if stayed == 0 || (stayed >= asked && e.view.lost.is_empty()) {
        return None;
    }
    let consequence = match e.view.record.load {
        _ if stayed >= asked => LostClients::AfterWindow,
        Load::Open { .. } => LostClients::OthersDidMore,
        Load::Closed { .. } => LostClients::LoadShrank,
    };
    Some(lost(e, consequence))
}

/// Nobody asked the server for anything at the end of the window, or too few in a closed load.
pub(super) fn too_few_clients_left(e: &Evidence<'_>) -> Option<Rule> {
    let asked = e.view.record.load.clients();
    let stayed = e.view.record.totals.clients_participating;
    let least = match e.view.record.load {
        Load::Open { .. } => 1.0,
        Load::Closed { .. } => (f64::from(asked) * CLIENTS_LEFT_MIN_RATIO).max(1.0),
    };
    (f64::from(stayed) < least).then(|| lost(e, LostClients::TooFew))
}

fn lost(e: &Evidence<'_>, consequence: LostClients) -> Rule {
    Rule::ClientsLost {
        clients: e.view.record.load.clients(),
        stayed: e.view.record.totals.clients_participating,
        left: e.view.lost.len() as u32,
        cause: e.view.lost.first().map(|why| (*why).to_owned()),
        consequence,
    }
}
