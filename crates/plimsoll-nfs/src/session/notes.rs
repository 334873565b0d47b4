//! Where replies differ from their specification.

use plimsoll_engine::interface::SessionCounters;

use crate::nonconformity::nonconformity;
use crate::wire::flaws::Flaws;
use crate::wire::rpc::Service;

/// Counts the flaws of a reply.
#[cold]
pub(super) fn note_flaws(
    counters: &mut SessionCounters,
    service: Service,
    procedure: u32,
    flaws: Flaws,
) {
    for flaw in flaws.iter() {
        counters.nonconformities.note(&nonconformity(service, procedure, flaw));
    }
}
