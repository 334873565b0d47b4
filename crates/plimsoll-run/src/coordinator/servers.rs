//! The servers that a run starts itself, and the final address of each target.

use std::time::Duration;

use plimsoll_model::event::{LostSign, PointRecord, ServerLimits, ServerLost};
use plimsoll_model::outcome::ErrorClass;
use plimsoll_model::suite::Suite;
use plimsoll_model::target::{TargetSpec, TargetUrl};
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::host::{Registration, ServerRequest, Target, reach};
use plimsoll_servers::programs::refuse_foreign;
use plimsoll_servers::{Confinement, ServerLink};

use super::setup::setup_shower;
use crate::failure::Failure;
use crate::progress::RunProgress;
use crate::protocols;
use crate::signals::Signals;

/// The targets in order, with the addresses of those that already run; those to be started have
/// none yet. One whose name has several addresses may become several targets.
pub(super) fn resolve_all(
    specs: &[TargetSpec],
    protocol: &Registration,
    suite: &Suite,
) -> Result<Vec<(TargetSpec, Option<ResolvedTarget>)>, Failure> {
    let instead = protocol.connect_to.and_then(|of| of(suite));
    let mut all = Vec::new();
    for spec in specs {
        let TargetSpec::Url(url) = spec else {
            all.push((spec.clone(), None));
            continue;
        };
        let port = default_port(url, protocol)?;
        refuse_user(url, protocol)?;
        let resolved = match instead {
            Some(endpoint) => reach::resolve_instead(endpoint, url, port)?,
            // The protocol could redirect clients, but this suite does not: the URL's address
            // applies.
            None if protocol.connect_to.is_some() => vec![reach::resolve_answering(url, port)?],
            None => vec![reach::resolve(url, port)?],
        };
        all.extend(resolved.into_iter().map(|target| (spec.clone(), Some(target))));
    }
    Ok(all)
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

/// Refuses a user name that the protocol would drop silently.
fn refuse_user(url: &TargetUrl, protocol: &Registration) -> Result<(), Failure> {
    let named = url.user.is_some() || url.password.is_some();
    match protocol.refuse_user.filter(|_| named) {
        Some(remedy) => Err(Failure::wrong(format!("target {url}: {remedy}"))),
        None => Ok(()),
    }
}

/// Starts the server of a target, unless it already runs.
fn start(
    spec: &TargetSpec,
    existing: Option<ResolvedTarget>,
    protocol: &Registration,
    request: &ServerRequest<'_>,
    (signals, live): (&Signals, &mut dyn RunProgress),
) -> Result<Target, Failure> {
    let has_threads = protocol.reference.has_threads && matches!(spec, TargetSpec::Builtin);
    if request.threads.is_some() && !has_threads {
        return Err(Failure::wrong(format!(
            "threads: the number of {spec}'s is not ours to choose; scale the reference server of \
             transactions (plimsoll scale transactions builtin: --over threads=1,4), or cores"
        )));
    }
    if existing.is_none() {
        refuse_foreign(request.listen_on)?;
    }
    let started = match (spec, existing) {
        (TargetSpec::Url(_), Some(resolved)) => {
            return Ok(Target::running(spec.clone(), resolved));
        }
        (TargetSpec::Managed(name), _) => {
            let server = protocols::managed(protocol, name)?;
            (server.start)(request, &mut setup_shower("file set", signals, live))?
        }
        (TargetSpec::Builtin | TargetSpec::Url(_), _) => (protocol.reference.start)(request)?,
    };
    live.clear();
    Ok(Target::started(spec.clone(), started)?)
}

/// Starts the server of a target at its end of a link, and holds it to its limits.
pub(super) fn start_limited(
    (spec, existing): (&TargetSpec, Option<ResolvedTarget>),
    protocol: &Registration,
    request: &ServerRequest<'_>,
    (limits, link): (&ServerLimits, Option<&ServerLink>),
    (signals, live): (&Signals, &mut dyn RunProgress),
) -> Result<Target, Failure> {
    let start = || start(spec, existing, protocol, request, (signals, live));
    let mut target = match link {
        Some(link) => link.at_the_servers(start)??,
        None => start()?,
    };
    target.hold(&Confinement {
        quota_cores: limits.quota_cores,
        memory_bytes: limits.memory_bytes,
        disk_bytes_per_s: limits.disk_bytes_per_s,
        disk_transfers_per_s: limits.disk_transfers_per_s,
    })?;
    Ok(target)
}

/// Classes of ops whose connections were refused or reset.
const BROKEN: [ErrorClass; 2] = [ErrorClass::Transport, ErrorClass::Truncated];
/// Connects only: nothing is read from the connection.
const NO_READ: Duration = Duration::from_millis(200);

/// The first target that is gone, if connections broke until the end of the load point. An
/// overloaded server is not gone: it accepts a connection after the load.
pub(super) fn server_lost(record: &PointRecord, targets: &mut [Target]) -> Option<ServerLost> {
    if !broke_to_the_end(record) {
        return None;
    }
    let of_several = targets.len() > 1;
    let totals = record.totals.per_target.iter().map(Some).chain(std::iter::repeat(None));
    let failed = targets
        .iter_mut()
        .zip(totals)
        .filter(|(_, totals)| !of_several || totals.is_none_or(|totals| totals.errors > 0));
    failed.into_iter().find_map(|(target, _)| {
        Some(ServerLost { target: target.name(), sign: sign_of_loss(target)? })
    })
}

/// Whether its clients left, or ops still lost their connections at the end.
fn broke_to_the_end(record: &PointRecord) -> bool {
    let errors = [&record.totals.errors, &record.totals.warm_up_errors];
    let is_broken =
        |class: &ErrorClass| errors.iter().any(|of| of.contains_key(&class.to_string()));
    let last = record.seconds.iter().rfind(|second| second.done > 0);
    let to_the_end = last.is_none_or(|second| second.errors > 0);
    record.ended_early.is_some() || to_the_end && BROKEN.iter().any(is_broken)
}

fn sign_of_loss(target: &mut Target) -> Option<LostSign> {
    if target.process.as_mut().is_some_and(|process| process.check().is_err()) {
        return Some(LostSign::Ended);
    }
    let is_there = reach::connect(&target.name(), &target.resolved, NO_READ).is_ok();
    (!is_there).then_some(LostSign::Unreachable)
}
