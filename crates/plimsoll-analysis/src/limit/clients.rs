//! Were there too few clients for the load?

use plimsoll_model::limit::{EarlierService, Evidence, Limit, LimitFacts};
use plimsoll_model::result::PointResult;
use plimsoll_model::units::Nanos;

/// Share of the clients' time under way from which the clients are all busy.
const CLIENTS_BUSY_MIN_RATIO: f64 = 0.9;
/// A server that takes this much longer than at its lowest load is slowing down.
const SLOWER_MIN_RATIO: f64 = 1.5;

/// All clients were busy while the server answered as fast as with little to do: at the lowest load,
/// or of a single load at its first ops. Then the number of clients was the limit (Little's law), and
/// nothing is known of the server's.
pub(super) fn clients_limit(point: &PointResult, all: &[&PointResult]) -> Option<Limit> {
    let service = |p: &PointResult| p.service_ns?.mean;
    let (requested, achieved) = (point.clients_requested?, point.achieved_ops_per_s?);
    let clients = f64::from(requested);
    let now = service(point)?;
    let lowest = all
        .iter()
        .copied()
        .filter(|p| p.offered_ops_per_s.is_some())
        .min_by(|a, b| a.requested.total_cmp(&b.requested))?;
    let (low, earlier) = match lowest.requested < point.requested {
        true => (service(lowest)?, EarlierService::LowLoad),
        false => (point.first_service_ns?, EarlierService::FirstOps),
    };
    let busy = achieved * now / 1e9;
    if busy < CLIENTS_BUSY_MIN_RATIO * clients || now > SLOWER_MIN_RATIO * low {
        return None;
    }
    let time = |ns: f64| Nanos(ns.round() as u64);
    let evidence = |name: &str, value: f64, unit: &str, low_load_value| Evidence {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        low_load_value,
        ..Evidence::default()
    };
    let facts = LimitFacts::Clients {
        clients: requested,
        service_ns: time(now),
        earlier_ns: time(low),
        earlier,
        most_ops_per_s: clients * 1e9 / now,
    };
    let evidence = vec![
        evidence("clients", clients, "clients", None),
        evidence("service_ns.mean", now, "ns", Some(low)),
    ];
    Some(Limit::new(facts, evidence))
}
