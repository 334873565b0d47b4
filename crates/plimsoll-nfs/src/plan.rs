//! From a suite and its targets to a preparation for each load point, with everything that
//! departs from the published method named.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::outcome::OpNames;
use plimsoll_model::suite::{Arrivals, LoadSpec, Suite};
use plimsoll_model::units::{Bytes, grouped};

use super::fileset::{FILES_MIN, FileSet};
use super::mounting::{Identity, MountRequest, Mounted, mount};
use super::parameters::{NfsWorkload, Transport, op_names, op_shares, ops_per_arrival};
use super::prepare::{NfsPreparation, PreparationRequest};
use plimsoll_protocol::net::{LinkKind, SetupError, SourcePort};
use plimsoll_protocol::{Plan, PlanError, PlanRequest, ResolvedTarget, Work, typed_workload};

/// Size of the file set in MiB per op/s of load.
const METHOD_MIB_PER_OP_PER_S: f64 = 10.0;

/// Mounts every target and plans the work.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload: NfsWorkload = typed_workload(request.suite)?;
    check_targets(request.targets)?;
    check_load(request.suite)?;
    let mounts = mount_all(request, &workload)?;
    check_exports(&mounts)?;
    let facts = facts(request, &workload, &mounts);
    let departures = departures(request, &workload);
    let addresses = mounts.iter().map(|mounted| mounted.ports.nfs).collect();
    let reserved_ports = mounts.iter().any(|mounted| mounted.source == SourcePort::Reserved)
        && request.dial.caller().may_reserve_ports;
    let (op_names, op_shares) = (OpNames(op_names(&workload)), Some(op_shares(&workload)));
    let preparation = NfsPreparation::new(PreparationRequest {
        mounts,
        workload,
        scale: request.profile.workload_scale,
        point: request.profile.warm_up + request.profile.measure,
        seed: request.seed,
    });
    Ok(Plan {
        work: Work::PerPoint(Box::new(preparation)),
        op_names,
        op_shares,
        addresses: Some(addresses),
        reserved_ports,
        departures,
        facts,
    })
}

fn check_targets(targets: &[ResolvedTarget]) -> Result<(), PlanError> {
    if targets.is_empty() {
        return Err(PlanError::NoTarget);
    }
    match targets.iter().find(|target| target.url.scheme != "nfs") {
        None => Ok(()),
        Some(other) => Err(PlanError::Scheme {
            target: other.url.to_string(),
            protocol: super::PROTOCOL.name,
            schemes: "nfs",
        }),
    }
}

/// A process of the method does not think: it keeps its schedule.
fn check_load(suite: &Suite) -> Result<(), PlanError> {
    match &suite.load {
        LoadSpec::Open { arrivals: Arrivals::Shared, .. } => Err(PlanError::Workload {
            suite: suite.name.clone(),
            reason: "clients of protocol nfs have schedules of their own; set \
                     load.arrivals to \"per_client\""
                .to_owned(),
        }),
        LoadSpec::Closed { think, .. } if think.mean.0 > 0 => Err(PlanError::Workload {
            suite: suite.name.clone(),
            reason: "a closed load of protocol nfs has no think time: every client keeps \
                     outstanding_max calls in flight; set load.think.mean to 0"
                .to_owned(),
        }),
        _ => Ok(()),
    }
}

fn mount_all(
    request: &PlanRequest<'_>,
    workload: &NfsWorkload,
) -> Result<Vec<Mounted>, SetupError> {
    let caller = request.dial.caller();
    let identity = Identity { machine: caller.host, uid: caller.uid, gid: caller.gid };
    let wants_reserved = workload.reserved_port && caller.may_reserve_ports;
    let mounts = request.targets.iter().map(|target| {
        let wanted = MountRequest {
            target,
            version: workload.version,
            transport: match workload.transport {
                Transport::Tcp => LinkKind::Stream,
                Transport::Udp => LinkKind::Datagram,
            },
            identity: &identity,
            source: if wants_reserved { SourcePort::Reserved } else { SourcePort::Any },
            nonce: caller.nonce,
        };
        Ok(mount(&wanted, request.dial)?)
    });
    mounts.collect()
}

/// An export given twice would hold one file set of half the size, with two writers.
fn check_exports(mounts: &[Mounted]) -> Result<(), SetupError> {
    for (at, one) in mounts.iter().enumerate() {
        let is_same = |other: &&Mounted| (other.ports.nfs, other.root) == (one.ports.nfs, one.root);
        if let Some(other) = mounts[..at].iter().find(is_same) {
            return Err(SetupError::Wrong(format!(
                "targets {} and {} are the same export; name each once, and let several exports \
                 be several directories",
                other.target, one.target
            )));
        }
    }
    Ok(())
}

fn departures(request: &PlanRequest<'_>, workload: &NfsWorkload) -> Vec<String> {
    let mut departures = vec![
        "directories, symbolic links and names to create are counted per 10 ops/s of load; the \
         method counts them per generating process"
            .to_owned(),
        "all generating processes are clients of one program on one host; the method spreads \
         them over several hosts"
            .to_owned(),
    ];
    if matches!(request.suite.load, LoadSpec::Closed { .. }) {
        departures
            .push("a closed load; the method's schedule does not wait for replies".to_owned());
    }
    let scale = request.profile.workload_scale;
    if scale != 1.0 || workload.mib_per_op_per_s != METHOD_MIB_PER_OP_PER_S {
        departures.push(format!(
            "{} MiB of files per op/s instead of the method's {METHOD_MIB_PER_OP_PER_S}, and at \
             least {} files: workload_scale = {scale}",
            grouped(workload.mib_per_op_per_s * scale),
            grouped(f64::from(FILES_MIN)),
        ));
    }
    departures
}

fn facts(request: &PlanRequest<'_>, workload: &NfsWorkload, mounts: &[Mounted]) -> Vec<Setting> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push(Setting::new(name, value));
    let shares = op_names(workload).into_iter().zip(op_shares(workload));
    let mix: Vec<_> = shares.map(|(name, share)| format!("{name} {:.1}", share * 100.0)).collect();
    fact("op mix", format!("{} % of RPCs", mix.join(", ")));
    fact("RPCs per draw", format!("{:.3}", ops_per_arrival(workload)));
    if let Some(highest) = request.highest_ops_per_s {
        let scale = request.profile.workload_scale;
        let set = FileSet::for_load(highest, workload.mib_per_op_per_s, scale);
        let load = grouped(highest);
        let (files, bytes) = (grouped(f64::from(set.files())), Bytes(set.bytes()));
        fact("file set", format!("{files} files, {bytes} at {load} ops/s; grows with the load"));
    }
    fact("file set seed", workload.file_set_seed.to_string());
    fact(
        "access",
        format!(
            "one file in ten; {} groups of equal size with Poisson weights of mean {} (not \
             published); the same files for all clients, appends to a client's own",
            workload.access_groups, workload.access_poisson_mean
        ),
    );
    fact("blocks per READ (1, 2, 4, 8, 16)", format!("{:?} %", workload.read_blocks));
    fact("blocks per WRITE (under 1, 1, 2, 4, 8, 16)", format!("{:?} %", workload.write_blocks));
    fact("WRITEs that append", format!("{} %", workload.append_percent));
    fact(
        "in flight per client",
        format!(
            "{} calls, of them {} READs and {} WRITEs",
            workload.outstanding_max,
            workload.reads_outstanding_max,
            workload.writes_outstanding_max
        ),
    );
    fact("write stability", format!("{:?}", workload.stability()));
    fact("content verified", format!("one READ in {}", workload.verify_one_in));
    for mounted in mounts {
        facts.extend(mounted.facts());
    }
    facts
}
