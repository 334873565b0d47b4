//! Use of disks by role, on the hosts of servers and databases. Pure.

use std::collections::BTreeSet;

use plimsoll_model::cost::{Cost, CostOf, HostCost};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::disks::{DiskRole, DiskSet, DiskUse};
use plimsoll_model::event::{PointRecord, ResourceUse};
use plimsoll_model::monitored::SourceRole;

use crate::host_roles::HostEvidence;

/// The disks of each host, those whose role is not known last; one with two roles is there twice.
pub(crate) fn disk_uses(record: &PointRecord, disclosure: Option<&Disclosure>) -> Vec<DiskUse> {
    let mut hosts = HostEvidence::from_record(record, disclosure).hosts();
    hosts.retain(|host| matches!(host.role, SourceRole::Server | SourceRole::Database));
    let sets = disclosure.map(|it| it.disk_sets.as_slice()).unwrap_or_default();
    let of_host = |source: Option<String>| {
        let resources: Vec<_> = record.resources.iter().filter(|it| it.source == source).collect();
        of_host(&source, &resources, sets)
    };
    let mut uses: Vec<DiskUse> = hosts.into_iter().flat_map(|host| of_host(host.source)).collect();
    let means: Vec<_> = uses.iter().map(|it| mean_busy(&uses, &it.source, it.role?)).collect();
    for (it, mean) in uses.iter_mut().zip(means) {
        let mean = mean.filter(|mean| *mean > 0.0);
        it.busy_over_mean = it.busy_ratio.zip(mean).map(|(busy, mean)| busy / mean);
    }
    uses
}

/// Adds how busy the disks of each role were to the cost of their host.
pub(crate) fn add_disks_busy(costs: &mut [HostCost], uses: &[DiskUse]) {
    for cost in costs.iter_mut().filter(|cost| cost.of != CostOf::ServerProcesses) {
        for role in DiskRole::ALL {
            let busy = mean_busy(uses, &cost.source, role);
            let busy = busy.map(|value| (role.busy_figure(), Cost { value, interval: None }));
            cost.figures.extend(busy);
        }
    }
}

fn mean_busy(uses: &[DiskUse], source: &Option<String>, role: DiskRole) -> Option<f64> {
    let own = uses.iter().filter(|it| it.source == *source && it.role == Some(role));
    let busy = own.map(|it| it.busy_ratio).collect::<Option<Vec<f64>>>()?;
    (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64)
}

/// Empty where no disk of the host was monitored. Monitors leave out disks that did nothing.
fn of_host(source: &Option<String>, resources: &[&ResourceUse], sets: &[DiskSet]) -> Vec<DiskUse> {
    let with = |column| resources.iter().filter_map(move |used| used.key("disk", column));
    let active: BTreeSet<&str> = with("busy").chain(with("reads")).collect();
    let sets = sets.iter().filter(|set| set.source == *source && !active.is_empty());
    let named = sets.flat_map(|set| set.disks.iter().map(|disk| (disk.as_str(), Some(set.role))));
    let named: BTreeSet<(&str, Option<DiskRole>)> = named.collect();
    let others = active.iter().filter(|disk| !named.iter().any(|(other, _)| other == *disk));
    let disk_use = |(disk, role): (&str, Option<DiskRole>)| {
        let mean = |column| match active.contains(disk) {
            false => with(column).next().map(|_| 0.0),
            true => {
                let is_it = |used: &&&ResourceUse| used.key("disk", column) == Some(disk);
                resources.iter().find(is_it).map(|used| used.mean)
            }
        };
        let both = |one, other| Some(mean(one)? + mean(other)?);
        let transfers_per_s = both("reads", "writes");
        let transfers = transfers_per_s.filter(|transfers| *transfers > 0.0);
        DiskUse {
            source: source.clone(),
            disk: disk.to_owned(),
            role,
            busy_ratio: mean("busy"),
            busy_over_mean: None,
            transfers_per_s,
            bytes_per_s: both("read", "written"),
            transfer_s: mean("queue_mean").zip(transfers).map(|(queue, rate)| queue / rate),
        }
    };
    let all = named.iter().copied().chain(others.map(|disk| (*disk, None)));
    all.map(disk_use).collect()
}

#[cfg(test)]
mod tests;
