//! Makes a preparation for each load point from a suite and its targets, with the values derived
//! from its parameters.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::method::Practice;
use plimsoll_model::suite::{Arrivals, LoadSpec, Suite};
use plimsoll_model::units::{Bytes, grouped};

use super::fileset::{FILES_MIN, FileSet};
use super::mounting::{MountRequest, Mounted, mount};
use super::parameters::{NfsVersion, NfsWorkload, Transport, op_names, op_shares, ops_per_arrival};
use super::prepare::{NfsPreparation, PreparationRequest};
use plimsoll_protocol::net::{LinkKind, SetupError, SourcePort};
use plimsoll_protocol::{Plan, PlanError, PlanRequest};

/// Mounts every target and plans the work.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let mut workload = request.suite.workload.parameters::<NfsWorkload>().clone();
    check_load(request.suite)?;
    let mounts = mount_all(request, &workload)?;
    check_exports(&mounts)?;
    workload.version = common_version(&mounts)?.unwrap_or(workload.version);
    let facts = facts(request, &workload, &mounts);
    let practices = practices(request, &workload, &mounts);
    let addresses = mounts.iter().map(|mounted| mounted.ports.nfs).collect();
    let reserved_ports = mounts.iter().any(|mounted| mounted.source == SourcePort::Reserved)
        && request.dial.caller().may_reserve_ports;
    let (names, shares) = (op_names(&workload), Some(op_shares(&workload)));
    let preparation = NfsPreparation::new(PreparationRequest {
        mounts,
        workload,
        scale: request.profile.workload_scale,
        point: request.profile.warm_up + request.profile.measure,
        seed: request.seed,
        conditioning: request.suite.conditioning,
    });
    let plan = Plan::per_point(preparation, names, shares, practices, facts);
    Ok(Plan { addresses: Some(addresses), reserved_ports, ..plan })
}

/// A process of the method does not think: it keeps its schedule.
fn check_load(suite: &Suite) -> Result<(), PlanError> {
    match &suite.load {
        LoadSpec::Open { arrivals: Arrivals::Shared | Arrivals::Sessions, .. } => {
            Err(PlanError::Unfit {
                suite: suite.name.clone(),
                reason: "clients of protocol nfs have schedules of their own; set \
                     load.arrivals to \"per_client\""
                    .to_owned(),
            })
        }
        LoadSpec::Closed { think, .. } if think.mean.0 > 0 => Err(PlanError::Unfit {
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
    let wants_reserved = workload.reserved_port && caller.may_reserve_ports;
    let mounts = request.targets.iter().map(|target| {
        let mount_request = MountRequest {
            target,
            version: workload.version,
            transport: match workload.transport {
                Transport::Tcp => LinkKind::Stream,
                Transport::Udp => LinkKind::Datagram,
            },
            caller: &caller,
            source: if wants_reserved { SourcePort::Reserved } else { SourcePort::Any },
        };
        Ok(mount(&mount_request, request.dial)?)
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

/// The version of NFS that all servers are measured by.
fn common_version(mounts: &[Mounted]) -> Result<Option<NfsVersion>, SetupError> {
    let Some(first) = mounts.first() else { return Ok(None) };
    match mounts.iter().find(|other| other.site.version != first.site.version) {
        Some(other) => Err(SetupError::Wrong(format!(
            "targets {} and {} have different versions of NFS; compare versions with plimsoll \
             versus, or with an experiment",
            first.target, other.target
        ))),
        None => Ok(Some(first.site.version)),
    }
}

fn practices(
    request: &PlanRequest<'_>,
    workload: &NfsWorkload,
    mounts: &[Mounted],
) -> Vec<Practice> {
    let mut practices = vec![Practice::new(
        "generator.name_set",
        "20 directories, 20 symbolic links and 100 names to create per 10 ops/s of load",
    )];
    practices.push(Practice::new("generator.accessed", "one file in ten"));
    practices.push(Practice::new(
        "generator.operations",
        match workload.version {
            NfsVersion::V2 | NfsVersion::V3 => "one RPC each".to_owned(),
            NfsVersion::V4_1 => format!(
                "one compound each, with the attributes that the Linux client asks for; READDIRPLUS \
                 is READDIR, CREATE is OPEN and CLOSE; {}",
                workload.opens.describe()
            ),
        },
    ));
    practices
        .push(Practice::new("generator.file_sizes", "1 KiB to 1 MiB in ten steps, mean 26.7 KiB"));
    let scale = request.profile.workload_scale;
    if scale != 1.0 {
        practices.push(Practice::new(
            "workload.mib_per_op_per_s",
            format!(
                "{}, and at least {} files (workload_scale = {scale})",
                grouped(workload.mib_per_op_per_s * scale),
                grouped(f64::from(FILES_MIN)),
            ),
        ));
    }
    // A target's URL comes before the suite.
    if let Some(first) = mounts.first() {
        practices.push(Practice::new("workload.transport", first.transport()));
        practices.push(Practice::new("workload.version", first.site.version.number()));
    }
    practices
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
    if workload.version == NfsVersion::V4_1 {
        let delegations = if workload.delegations { "asked for" } else { "declined" };
        facts.push(Setting::new(
            "opens",
            format!("{}; delegations {delegations}", workload.opens.describe()),
        ));
        facts.push(Setting::new(
            "session of each client",
            format!("{} slots asked for, {} connections", workload.slots, workload.connections),
        ));
    }
    for mounted in mounts {
        facts.extend(mounted.facts());
    }
    facts
}
