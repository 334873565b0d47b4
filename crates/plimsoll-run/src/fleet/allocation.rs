//! The cores of its host that each agent uses, and its number of workers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use plimsoll_fleet::launcher::spec::Settings;
use plimsoll_fleet::message::Greeting;

/// Default limit of an agent's workers, as in a local run.
const WORKERS_DEFAULT_MAX: usize = 16;

/// The resources that an agent may use, and the request for it.
#[derive(Clone, Debug)]
pub(crate) struct AllocationRequest<'a> {
    pub greeting: &'a Greeting,
    /// The user's settings for it.
    pub settings: &'a Settings,
    /// The requested number of workers.
    pub workers: Option<u32>,
}

impl AllocationRequest<'_> {
    /// Cores that it may use.
    fn cores(&self) -> &[u32] {
        match &self.settings.cores[..] {
            [] => &self.greeting.cores,
            cores => cores,
        }
    }
}

/// What an agent gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentAllocation {
    /// Cores of its workers; no other agent has them unless there are too few.
    pub cores: Vec<u32>,
    pub workers: u32,
    /// Addresses that its clients connect from.
    pub sources: Vec<IpAddr>,
    /// Numbers of the servers that its clients use, from 0; empty for all.
    pub targets: Vec<usize>,
    /// Neither another agent nor the system needs these cores.
    pub own_cores: bool,
}

/// Divides the cores of each host among its agents. `taken` are cores on the host with this boot id
/// that a server or this program needs.
pub(crate) fn allocate(
    requests: &[AllocationRequest<'_>],
    (boot_id, taken): (&str, &[u32]),
) -> Vec<AgentAllocation> {
    let mut by_host: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, request) in requests.iter().enumerate() {
        by_host.entry(&request.greeting.boot_id).or_default().push(index);
    }
    let mut allocations = vec![AgentAllocation::default(); requests.len()];
    for (host, agents) in by_host {
        let taken = if host == boot_id { taken } else { &[] };
        divide(&agents, requests, taken, &mut allocations);
    }
    allocations
}

/// Distributes the cores of a host to its agents, one at a time to each.
fn divide(
    agents: &[usize],
    requests: &[AllocationRequest<'_>],
    taken: &[u32],
    allocations: &mut [AgentAllocation],
) {
    let mut given: BTreeSet<u32> = taken.iter().copied().collect();
    let all: BTreeSet<u32> =
        agents.iter().flat_map(|agent| requests[*agent].greeting.cores.iter().copied()).collect();
    // Without reserved cores, the system and the agents' other threads need one.
    let spares = usize::from(taken.is_empty() && all.len() > agents.len());
    loop {
        let before = given.len();
        for &agent in agents {
            let (request, allocation) = (&requests[agent], &mut allocations[agent]);
            let most = request.workers.map_or(WORKERS_DEFAULT_MAX, |workers| workers as usize);
            let may = request.cores();
            // The first core, where most systems handle their interrupts, is taken last.
            let next = may.iter().skip(1).chain(may.first()).find(|core| !given.contains(core));
            let room =
                !request.settings.cores.is_empty() || all.difference(&given).count() > spares;
            if let Some(core) = next.filter(|_| room && allocation.cores.len() < most) {
                given.insert(*core);
                allocation.cores.push(*core);
            }
        }
        if given.len() == before {
            break;
        }
    }
    let is_crowded = agents.iter().any(|agent| allocations[*agent].cores.is_empty());
    for (index, &agent) in agents.iter().enumerate() {
        let (request, allocation) = (&requests[agent], &mut allocations[agent]);
        if allocation.cores.is_empty() {
            allocation.cores.extend(shared(request.cores(), taken, index));
        }
        allocation.cores.sort_unstable();
        allocation.workers = request.workers.unwrap_or(allocation.cores.len().max(1) as u32);
        allocation.sources.clone_from(&request.settings.sources);
        allocation.own_cores = !is_crowded && allocation.cores.len() >= allocation.workers as usize;
    }
}

/// A core that an agent shares with others; a taken one only if there is no other.
fn shared(may: &[u32], taken: &[u32], index: usize) -> Option<u32> {
    let free: Vec<u32> = may.iter().copied().filter(|core| !taken.contains(core)).collect();
    let cores = if free.is_empty() { may } else { &free };
    cores.get(index % cores.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(boot_id: &str, cores: &[u32]) -> Greeting {
        Greeting { boot_id: boot_id.to_owned(), cores: cores.to_vec(), ..Greeting::default() }
    }

    fn plain(greetings: &[Greeting], here: (&str, &[u32])) -> Vec<(Vec<u32>, u32, bool)> {
        let settings = &Settings::default();
        let request = |greeting| AllocationRequest { greeting, settings, workers: None };
        let requests: Vec<_> = greetings.iter().map(request).collect();
        let allocations = allocate(&requests, here);
        allocations
            .into_iter()
            .map(|allocation| (allocation.cores, allocation.workers, allocation.own_cores))
            .collect()
    }

    #[test]
    fn an_agent_with_a_host_of_its_own_leaves_one_core_to_the_system() {
        let allocations = plain(&[greeting("a", &[0, 1, 2, 3])], ("here", &[]));
        assert_eq!(allocations, [(vec![1, 2, 3], 3, true)]);
        let only = plain(&[greeting("a", &[0])], ("here", &[]));
        assert_eq!(only, [(vec![0], 1, true)]);
    }

    #[test]
    fn agents_on_one_host_have_different_cores() {
        let both = [greeting("a", &[0, 1, 2, 3, 4]), greeting("a", &[0, 1, 2, 3, 4])];
        let allocations = plain(&both, ("here", &[]));
        assert_eq!(allocations, [(vec![1, 3], 2, true), (vec![2, 4], 2, true)]);
    }

    #[test]
    fn cores_of_a_server_on_the_agents_host_are_left_to_it() {
        let all = [greeting("here", &[0, 1, 2, 3]), greeting("here", &[0, 1, 2, 3])];
        let allocations = plain(&all, ("here", &[2, 3]));
        assert_eq!(allocations, [(vec![1], 1, true), (vec![0], 1, true)]);
    }

    #[test]
    fn more_agents_than_cores_share_them() {
        let four = [0, 1, 2, 3].map(|_| greeting("here", &[0, 1]));
        let allocations = plain(&four, ("here", &[1]));
        assert_eq!(allocations, [0; 4].map(|core| (vec![core], 1, false)));
    }

    #[test]
    fn what_the_user_asks_of_an_agent_decides() {
        let greeting = greeting("a", &[0, 1, 2, 3]);
        let settings = Settings { cores: vec![3], ..Settings::default() };
        let request =
            AllocationRequest { greeting: &greeting, settings: &settings, workers: Some(2) };
        let allocations = allocate(&[request], ("here", &[]));
        let expected = AgentAllocation { cores: vec![3], workers: 2, ..AgentAllocation::default() };
        assert_eq!(allocations, [expected]);
    }
}
