//! Which protocols a certificate covers.

use plimsoll_calibration::Wire;
use plimsoll_protocol::host::Registration;
use plimsoll_run::protocols;

/// That of the main calibrated server.
pub(super) fn proper() -> Wire {
    let mut all = protocols::all().flat_map(|one| one.calibration);
    Wire(all.find(|wire| wire.proper.is_some()).expect("the program has a calibrated server"))
}

/// The others that were requested, by protocol or all.
pub(super) fn additional(requested: &str) -> Vec<Wire> {
    let selected = protocols::all().filter(|one| [one.protocol.name, ALL].contains(&requested));
    let wires = selected.flat_map(|one| one.calibration);
    wires.filter(|wire| wire.proper.is_none()).map(Wire).collect()
}

const ALL: &str = "all";

/// The tested protocols by their names in suites, that of the main calibrated server first.
pub(super) fn protocols_of(requested: &str) -> Vec<String> {
    let is_proper = |one: &&Registration| one.calibration.iter().any(|wire| wire.proper.is_some());
    let (mut spoken, others): (Vec<_>, Vec<_>) = protocols::all().partition(is_proper);
    let is_requested = |one: &&Registration| [one.protocol.name, ALL].contains(&requested);
    spoken
        .extend(others.into_iter().filter(is_requested).filter(|one| !one.calibration.is_empty()));
    spoken.into_iter().map(|one| one.protocol.name.to_owned()).collect()
}
