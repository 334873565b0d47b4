//! Which cores of its host each agent uses, and with how many workers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use plimsoll_fleet::launcher::spec::Settings;
use plimsoll_fleet::message::Greeting;

/// Workers of an agent that nobody asked for, as in a local run.
const WORKERS_DEFAULT_MAX: usize = 16;

/// What an agent may use, and what was asked of it.
#[derive(Clone, Debug)]
pub(crate) struct SeatWish<'a> {
    pub greeting: &'a Greeting,
    /// What the user gave it.
    pub settings: &'a Settings,
    /// Workers that the user wants of it.
    pub workers: Option<u32>,
}

impl SeatWish<'_> {
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
pub(crate) struct AgentSeat {
    /// Cores of its workers; no other agent has them unless there are too few.
    pub cores: Vec<u32>,
    pub workers: u32,
    /// Addresses that its clients connect from.
    pub sources: Vec<IpAddr>,
    /// Numbers of the servers that its clients use, from 0; empty for all.
    pub targets: Vec<usize>,
    /// Neither another agent nor the system needs them.
    pub own_cores: bool,
}

/// Divides the cores of each host among its agents. `taken` are cores of the host with this boot
/// id that a server or this program needs.
pub(crate) fn seats(wishes: &[SeatWish<'_>], (boot_id, taken): (&str, &[u32])) -> Vec<AgentSeat> {
    let mut by_host: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, wish) in wishes.iter().enumerate() {
        by_host.entry(&wish.greeting.boot_id).or_default().push(index);
    }
    let mut seats = vec![AgentSeat::default(); wishes.len()];
    for (host, agents) in by_host {
        let taken = if host == boot_id { taken } else { &[] };
        divide(&agents, wishes, taken, &mut seats);
    }
    seats
}

/// Deals the cores of a host to its agents, one each in turn.
fn divide(agents: &[usize], wishes: &[SeatWish<'_>], taken: &[u32], seats: &mut [AgentSeat]) {
    let mut given: BTreeSet<u32> = taken.iter().copied().collect();
    let all: BTreeSet<u32> =
        agents.iter().flat_map(|agent| wishes[*agent].greeting.cores.iter().copied()).collect();
    // Where cores are left to nobody, the system and the agents' other threads need one.
    let spares = usize::from(taken.is_empty() && all.len() > agents.len());
    loop {
        let before = given.len();
        for &agent in agents {
            let (wish, seat) = (&wishes[agent], &mut seats[agent]);
            let most = wish.workers.map_or(WORKERS_DEFAULT_MAX, |workers| workers as usize);
            let may = wish.cores();
            // The first core, where most systems handle their interrupts, is taken last.
            let next = may.iter().skip(1).chain(may.first()).find(|core| !given.contains(core));
            let room = !wish.settings.cores.is_empty() || all.difference(&given).count() > spares;
            if let Some(core) = next.filter(|_| room && seat.cores.len() < most) {
                given.insert(*core);
                seat.cores.push(*core);
            }
        }
        if given.len() == before {
            break;
        }
    }
    let is_crowded = agents.iter().any(|agent| seats[*agent].cores.is_empty());
    for (place, &agent) in agents.iter().enumerate() {
        let (wish, seat) = (&wishes[agent], &mut seats[agent]);
        if seat.cores.is_empty() {
            seat.cores.extend(shared(wish.cores(), taken, place));
        }
        seat.cores.sort_unstable();
        seat.workers = wish.workers.unwrap_or(seat.cores.len().max(1) as u32);
        seat.sources.clone_from(&wish.settings.sources);
        seat.own_cores = !is_crowded && seat.cores.len() >= seat.workers as usize;
    }
}

/// A core that an agent shares with others: not one that is taken, if it may be helped.
fn shared(may: &[u32], taken: &[u32], place: usize) -> Option<u32> {
    let free: Vec<u32> = may.iter().copied().filter(|core| !taken.contains(core)).collect();
    let cores = if free.is_empty() { may } else { &free };
    cores.get(place % cores.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(boot_id: &str, cores: &[u32]) -> Greeting {
        Greeting { boot_id: boot_id.to_owned(), cores: cores.to_vec(), ..Greeting::default() }
    }

    fn plain(greetings: &[Greeting], here: (&str, &[u32])) -> Vec<(Vec<u32>, u32, bool)> {
        let settings = &Settings::default();
        let wish = |greeting| SeatWish { greeting, settings, workers: None };
        let wishes: Vec<_> = greetings.iter().map(wish).collect();
        let seats = seats(&wishes, here);
        seats.into_iter().map(|seat| (seat.cores, seat.workers, seat.own_cores)).collect()
    }

    #[test]
    fn an_agent_with_a_host_of_its_own_leaves_one_core_to_the_system() {
        let seats = plain(&[greeting("a", &[0, 1, 2, 3])], ("here", &[]));
        assert_eq!(seats, [(vec![1, 2, 3], 3, true)]);
        let only = plain(&[greeting("a", &[0])], ("here", &[]));
        assert_eq!(only, [(vec![0], 1, true)]);
    }

    #[test]
    fn agents_on_one_host_have_different_cores() {
        let both = [greeting("a", &[0, 1, 2, 3, 4]), greeting("a", &[0, 1, 2, 3, 4])];
        let seats = plain(&both, ("here", &[]));
        assert_eq!(seats, [(vec![1, 3], 2, true), (vec![2, 4], 2, true)]);
    }

    #[test]
    fn cores_of_a_server_on_the_agents_host_are_left_to_it() {
        let all = [greeting("here", &[0, 1, 2, 3]), greeting("here", &[0, 1, 2, 3])];
        let seats = plain(&all, ("here", &[2, 3]));
        assert_eq!(seats, [(vec![1], 1, true), (vec![0], 1, true)]);
    }

    #[test]
    fn more_agents_than_cores_share_them() {
        let four = [0, 1, 2, 3].map(|_| greeting("here", &[0, 1]));
        let seats = plain(&four, ("here", &[1]));
        assert_eq!(seats, [0; 4].map(|core| (vec![core], 1, false)));
    }

    #[test]
    fn what_the_user_asks_of_an_agent_decides() {
        let greeting = greeting("a", &[0, 1, 2, 3]);
        let settings = Settings { cores: vec![3], ..Settings::default() };
        let wish = SeatWish { greeting: &greeting, settings: &settings, workers: Some(2) };
        let seats = seats(&[wish], ("here", &[]));
        let expected = AgentSeat { cores: vec![3], workers: 2, ..AgentSeat::default() };
        assert_eq!(seats, [expected]);
    }
}
