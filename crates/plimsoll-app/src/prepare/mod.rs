//! Set-up: greet the servers, and fill the clients' segments before they are asked for.
//!
//! A segment belongs to the server, which makes its file when a client names its size; what is in
//! it comes from here, through the protocol. Every segment is compared with what it should hold
//! when a run sees it first, and only what differs is written.

mod error;
mod fill;
mod greet;
mod points;
mod site;
#[cfg(test)]
mod tests;

use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::net::{Dial, OnProgress, SetupError};

pub(crate) use greet::greet;
pub(crate) use points::{AppPreparation, PreparationRequest};
pub(crate) use site::Site;

/// Segments lie in a directory of the server's own and are not removed from here.
pub(crate) fn clean_target(
    target: &ResolvedTarget,
    _: &dyn Dial,
    _: &mut OnProgress<'_>,
) -> Result<String, SetupError> {
    Err(SetupError::Wrong(format!(
        "{}: the data segments lie in the server's own directory; stop the server and remove \
         that, or let it use a temporary one",
        target.url
    )))
}
