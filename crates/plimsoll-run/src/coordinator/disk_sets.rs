//! What disks are for: as a testbed states it; on this host also as the servers' files show.

use plimsoll_model::disks::{DiskRole, DiskSet};
use plimsoll_model::inventory::DeclaredFacts;
use plimsoll_monitor::{DiskTree, Root, appended_files};
use plimsoll_protocol::host::Target;

use super::sources::SourceHost;
use crate::failure::Failure;
use crate::systems::monitor_url;

/// The sets of the systems of a testbed. One without a monitor is this host.
///
/// # Errors
/// A host that has no such disks, or is not monitored.
pub(super) fn declared(
    facts: &DeclaredFacts,
    hosts: &[&SourceHost],
) -> Result<Vec<DiskSet>, Failure> {
    let mut sets = Vec::new();
    for system in &facts.system {
        let wrong = |what: String| Failure::wrong(format!("[[system]] {}: {what}", system.name));
        let source = monitor_url(system).map_err(wrong)?.map(|url| url.name());
        let tree = match &source {
            None => DiskTree::from_root(Root::default()),
            Some(name) => {
                let host = hosts.iter().find(|host| host.url().name() == *name);
                host.map(|host| host.disks().clone()).unwrap_or_default()
            }
        };
        let all = system.disks.iter().flat_map(|(role, all)| all.iter().map(move |it| (*role, it)));
        for (role, basis) in all {
            let disks = tree.find(basis);
            if disks.is_empty() {
                return Err(wrong(format!(
                    "disks: {basis:?} is neither one of its disks ({}) nor a directory that is \
                     known to lie on them; name disks that its monitor reports",
                    tree.names().join(", ")
                )));
            }
            sets.push(DiskSet { source: source.clone(), role, disks, basis: basis.clone() });
        }
    }
    Ok(sets)
}

/// The declared sets, and those below the files of the servers of this host whose role was not
/// declared.
pub(super) fn with_sets_of_files(mut sets: Vec<DiskSet>, targets: &[Target]) -> Vec<DiskSet> {
    let tree = DiskTree::from_root(Root::default());
    let is_declared = |role| sets.iter().any(|set| set.source.is_none() && set.role == role);
    let mut roles = vec![DiskRole::Data, DiskRole::Log];
    roles.retain(|role| !is_declared(*role));
    for target in targets.iter().filter(|target| target.is_here) {
        for (at, pid) in target.pids().into_iter().enumerate() {
            let served = target.serves().filter(|_| at == 0).map(|path| path.to_owned());
            let logs = appended_files(pid).into_iter().map(|path| (DiskRole::Log, path));
            for (role, path) in served.map(|path| (DiskRole::Data, path)).into_iter().chain(logs) {
                let disks = tree.below(&path, &pid.to_string());
                if !disks.is_empty() && roles.contains(&role) {
                    let basis = path.display().to_string();
                    sets.push(DiskSet { source: None, role, disks, basis });
                }
            }
        }
    }
    sets
}
