//! Which protocols a certificate covers.

use plimsoll_calibration::Wire;
use plimsoll_protocol::host::Registration;

use crate::protocols;

/// That of the calibrated server proper.
pub(super) fn proper() -> Wire {
    let mut all = protocols::all().flat_map(|one| one.calibration);
    Wire(all.find(|wire| wire.proper.is_some()).expect("the program has a calibrated server"))
}

/// Those besides the calibrated server proper that were asked for, by protocol or all.
pub(super) fn beside(asked: &str) -> Vec<Wire> {
    let asked_for = protocols::all().filter(|one| [one.protocol.name, ALL].contains(&asked));
    let wires = asked_for.flat_map(|one| one.calibration);
    wires.filter(|wire| wire.proper.is_none()).map(Wire).collect()
}

const ALL: &str = "all";

/// What was spoken, by the names of suites' protocols, that of the calibrated server first.
pub(super) fn protocols_of(asked: &str) -> Vec<String> {
    let is_proper = |one: &&Registration| one.calibration.iter().any(|wire| wire.proper.is_some());
    let (mut spoken, others): (Vec<_>, Vec<_>) = protocols::all().partition(is_proper);
    let is_asked = |one: &&Registration| [one.protocol.name, ALL].contains(&asked);
    spoken.extend(others.into_iter().filter(is_asked).filter(|one| !one.calibration.is_empty()));
    spoken.into_iter().map(|one| one.protocol.name.to_owned()).collect()
}
