//! The servers a run starts itself, and the address each target has in the end.

use plimsoll_model::suite::Suite;
use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::host::{Registration, ServerWish, Target, reach};
use plimsoll_servers::programs::refuse_foreign;

use super::setup::setup_shower;
use crate::exit::Failure;
use crate::protocols;
use crate::signals::Signals;
use crate::terminal::Live;

/// Addresses of the targets that run already, in order; those to be started have none yet.
pub(super) fn resolve_all(
    specs: &[TargetSpec],
    protocol: &Registration,
    suite: &Suite,
) -> Result<Vec<Option<ResolvedTarget>>, Failure> {
    let instead = protocol.connect_to.and_then(|of| of(suite));
    let resolve = |spec: &TargetSpec| match spec {
        TargetSpec::Url(url) => {
            let port = default_port(url, protocol)?;
            refuse_user(url, protocol)?;
            Ok(Some(match instead {
                Some(place) => reach::resolve_instead(place, url, port)?,
                None => ResolvedTarget::at(url.clone(), reach::resolve(url, port)?),
            }))
        }
        TargetSpec::Builtin | TargetSpec::Managed(_) => Ok(None),
    };
    specs.iter().map(resolve).collect()
}

fn default_port(url: &TargetUrl, protocol: &Registration) -> Result<u16, Failure> {
    protocol.port_of(url).ok_or_else(|| {
        let protocol = protocol.protocol;
        let schemes: Vec<_> = protocol.schemes.iter().map(|(s, _)| format!("{s}://")).collect();
        Failure::wrong(format!(
            "target {url}: protocol {} has no scheme {:?}; write {}, builtin: or managed:NAME",
            protocol.name,
            url.scheme,
            schemes.join(" or ")
        ))
    })
}

/// A user name that the protocol does not send would be dropped in silence.
fn refuse_user(url: &TargetUrl, protocol: &Registration) -> Result<(), Failure> {
    let named = url.user.is_some() || url.password.is_some();
    match protocol.refuse_user.filter(|_| named) {
        Some(remedy) => Err(Failure::wrong(format!("target {url}: {remedy}"))),
        None => Ok(()),
    }
}

/// Starts the server of a target if it is ours.
pub(super) fn start(
    spec: &TargetSpec,
    place: Option<ResolvedTarget>,
    protocol: &Registration,
    wish: &ServerWish<'_>,
    (signals, live): (&Signals, &mut Live),
) -> Result<Target, Failure> {
    let has_threads = protocol.reference.has_threads && matches!(spec, TargetSpec::Builtin);
    if wish.threads.is_some() && !has_threads {
        return Err(Failure::wrong(format!(
            "threads: the number of {spec}'s is not ours to choose; scale the reference server of \
             transactions (plimsoll scale transactions builtin: --over threads=1,4), or cores"
        )));
    }
    if place.is_none() {
        refuse_foreign(wish.listen_on)?;
    }
    let started = match (spec, place) {
        (TargetSpec::Url(_), Some(resolved)) => {
            return Ok(Target::running(spec.clone(), resolved));
        }
        (TargetSpec::Managed(name), _) => {
            let server = protocols::managed(protocol, name)?;
            (server.start)(wish, &mut setup_shower("file set", signals, live))?
        }
        (TargetSpec::Builtin | TargetSpec::Url(_), _) => (protocol.reference.start)(wish)?,
    };
    live.clear();
    Ok(Target::started(spec.clone(), started)?)
}
