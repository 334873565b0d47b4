//! Chooses cores, number of workers and pacing. Every choice is disclosed.
//!
//! Only workers run on workers' cores. The listener and the monitors use a spare core, or else the
//! server's.

use plimsoll_model::assignment::Pacing;
use plimsoll_servers::cores::list;
use plimsoll_servers::listener::Listening;

/// Default limit of workers: beyond this one generator is limited by memory and wakeups.
const WORKERS_DEFAULT_MAX: u32 = 16;

/// From this many generator cores on, one is left to the rest of this program.
const CORES_WITH_ONE_TO_SPARE: usize = 3;

/// Where the server runs as seen from this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// Started by this run on cores that it chose.
    Ours,
    /// On this host, started by another program; its listening processes, if they were identified.
    SameHost(Option<Listening>),
    /// On another host.
    Elsewhere,
}

/// Which cores of this host are whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Cores of a server that this run starts; empty leaves it to the system.
    pub server_cores: Vec<u32>,
    /// Cores of the workers; empty leaves it to the system.
    pub generator_cores: Vec<u32>,
    /// Cores of this program's other threads while a load point runs: no worker's, if there is any
    /// other.
    pub(crate) rest_cores: Vec<u32>,
    /// Cores of this program between load points, when it writes file sets: not the server's, if
    /// there is any other.
    pub(crate) setup_cores: Vec<u32>,
    /// Number of workers.
    pub workers: u32,
    /// How they keep to their schedule.
    pub pacing: Pacing,
    /// Each worker has a core to itself: neither the server nor another worker uses it.
    pub(crate) own_cores: bool,
    pub(crate) why: String,
}

/// Chooses cores, workers and pacing. `cores` are those this process may use; `workers` and
/// `pacing` are requested by the user.
pub fn choose_placement(
    cores: &[u32],
    server: &ServerLocation,
    workers: Option<u32>,
    pacing: Pacing,
) -> Placement {
    let Sides { ours, server_cores, apart, why } = divide(cores, server);
    let free = ours.len();
    let share = match server {
        _ if apart && free >= CORES_WITH_ONE_TO_SPARE => free - 1,
        _ if apart => free,
        ServerLocation::Ours | ServerLocation::SameHost(_) => free / 2,
        ServerLocation::Elsewhere => free.saturating_sub(1),
    };
    let workers = workers.unwrap_or((share.max(1) as u32).min(WORKERS_DEFAULT_MAX));
    let worker_count = workers as usize;
    let own_cores = match server {
        ServerLocation::Ours | ServerLocation::SameHost(_) => apart && free >= worker_count,
        // One is left to the system and to this program's other threads.
        ServerLocation::Elsewhere => free > worker_count,
    };
    let generator_cores = match worker_count {
        // More workers than cores: they share the cores of a separate side, else the system
        // schedules them.
        worker_count if worker_count > free && !apart => Vec::new(),
        worker_count => ours[..worker_count.min(free)].to_vec(),
    };
    let rest_cores = rest(cores, &ours, &generator_cores);
    let setup_cores = if apart { sorted(ours) } else { cores.to_vec() };
    Placement {
        server_cores,
        generator_cores,
        rest_cores,
        setup_cores,
        workers,
        pacing,
        own_cores,
        why,
    }
}

struct Sides {
    /// Cores the generator may use, in the order in which workers get them.
    ours: Vec<u32>,
    /// Cores of a server that this run starts.
    server_cores: Vec<u32>,
    /// The server has cores of its own, and none of them is in `ours`.
    apart: bool,
    why: String,
}

fn divide(cores: &[u32], server: &ServerLocation) -> Sides {
    let shared =
        |ours: Vec<u32>, why: String| Sides { ours, server_cores: Vec::new(), apart: false, why };
    match server {
        ServerLocation::Ours if cores.len() >= 2 => {
            let (generator, servers) = cores.split_at(cores.len() / 2);
            Sides {
                ours: generator.to_vec(),
                server_cores: servers.to_vec(),
                apart: true,
                why: "server and generator on different cores of one host".to_owned(),
            }
        }
        ServerLocation::Ours => {
            shared(cores.to_vec(), "server and generator share the only core".to_owned())
        }
        ServerLocation::SameHost(Some(Listening { who, cores: taken, .. })) => {
            let free: Vec<u32> =
                cores.iter().copied().filter(|core| !taken.contains(core)).collect();
            let begin = format!(
                "the server runs on this host, where somebody else placed it: {who} on cores {}",
                list(taken)
            );
            match free.is_empty() {
                true => shared(
                    cores.to_vec(),
                    format!(
                        "{begin}; the generator may use cores {}, all of them the server's too",
                        list(cores)
                    ),
                ),
                false => Sides {
                    why: format!("{begin}; the generator has cores {}", list(&free)),
                    ours: free,
                    server_cores: Vec::new(),
                    apart: true,
                },
            }
        }
        ServerLocation::SameHost(None) => {
            let why = format!(
                "the server runs on this host, where somebody else placed it, and its process \
                 could not be found; the generator may use cores {}",
                list(cores)
            );
            shared(cores.to_vec(), why)
        }
        ServerLocation::Elsewhere => {
            let mut ours = cores.to_vec();
            // The first core, where most systems handle their interrupts, is taken last.
            ours.rotate_left(1.min(cores.len()));
            shared(ours, "the server is on another host".to_owned())
        }
    }
}

/// Cores of the coordinator and the monitors: a spare core of ours, else the server's, else all.
fn rest(cores: &[u32], ours: &[u32], workers: &[u32]) -> Vec<u32> {
    let not_taken = |from: &[u32]| -> Vec<u32> {
        from.iter().copied().filter(|core| !workers.contains(core)).collect()
    };
    let choices = [not_taken(ours), not_taken(cores), cores.to_vec()];
    sorted(choices.into_iter().find(|choice| !choice.is_empty()).unwrap_or_default())
}

fn sorted(mut cores: Vec<u32>) -> Vec<u32> {
    cores.sort_unstable();
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned(at: &[u32]) -> ServerLocation {
        ServerLocation::SameHost(Some(Listening {
            who: "httpd".into(),
            pids: Vec::new(),
            cores: at.to_vec(),
        }))
    }

    #[test]
    fn a_server_of_ours_gets_other_cores_than_the_generator() {
        let it = choose_placement(&[0, 1], &ServerLocation::Ours, None, Pacing::Auto);
        assert_eq!((it.server_cores, it.generator_cores), (vec![1], vec![0]));
        assert_eq!((it.workers, it.pacing), (1, Pacing::Auto));
        let it = choose_placement(&[4, 5, 6, 7, 8], &ServerLocation::Ours, None, Pacing::Auto);
        assert_eq!((it.server_cores, it.generator_cores), (vec![6, 7, 8], vec![4, 5]));
    }

    #[test]
    fn the_rest_of_the_program_has_no_workers_core_wherever_there_is_another() {
        let rest = |cores: &[u32], server: &ServerLocation, workers| {
            let it = choose_placement(cores, server, workers, Pacing::Auto);
            (it.generator_cores, it.rest_cores)
        };
        assert_eq!(rest(&[0, 1], &ServerLocation::Ours, None), (vec![0], vec![1]), "the server's");
        let six = [0, 1, 2, 3, 4, 5];
        assert_eq!(rest(&six, &ServerLocation::Ours, None), (vec![0, 1], vec![2]), "a spare one");
        assert_eq!(rest(&six, &ServerLocation::Ours, Some(3)), (vec![0, 1, 2], vec![3, 4, 5]));
        assert_eq!(rest(&[0, 1, 2], &ServerLocation::Elsewhere, None), (vec![1, 2], vec![0]));
        assert_eq!(rest(&[0, 1], &ServerLocation::SameHost(None), None), (vec![0], vec![1]));
        assert_eq!(rest(&[0, 1], &pinned(&[0]), None), (vec![1], vec![0]));
        assert_eq!(rest(&[3], &ServerLocation::Ours, None), (vec![3], vec![3]), "the only one");
        let crowd = rest(&[0, 1], &ServerLocation::Elsewhere, Some(3));
        assert_eq!(crowd, (vec![], vec![0, 1]), "the system moves them");
    }

    #[test]
    fn file_sets_are_written_from_cores_that_are_not_the_servers() {
        let setup = |server: &ServerLocation| {
            choose_placement(&[0, 1, 2, 3], server, None, Pacing::Auto).setup_cores
        };
        assert_eq!(setup(&ServerLocation::Ours), [0, 1]);
        assert_eq!(setup(&pinned(&[1])), [0, 2, 3]);
        assert_eq!(setup(&ServerLocation::Elsewhere), [0, 1, 2, 3]);
    }

    #[test]
    fn of_a_server_that_somebody_else_placed_it_is_told_what_was_found() {
        let why =
            |server: &ServerLocation| choose_placement(&[0, 2], server, None, Pacing::Auto).why;
        let unknown = why(&ServerLocation::SameHost(None));
        assert!(unknown.contains("the generator may use cores 0,2"), "{unknown}");
        let other = why(&pinned(&[2]));
        assert!(other.ends_with("httpd on cores 2; the generator has cores 0"), "{other}");
        let same = why(&pinned(&[0, 1, 2]));
        assert!(same.contains("may use cores 0,2, all of them the server's too"), "{same}");
    }

    #[test]
    fn a_worker_has_its_own_core_where_neither_server_nor_system_wants_it() {
        let own = |cores: &[u32], server: &ServerLocation, workers| {
            choose_placement(cores, server, Some(workers), Pacing::Auto).own_cores
        };
        assert!(own(&[0, 1], &ServerLocation::Ours, 1) && !own(&[0, 1], &ServerLocation::Ours, 2));
        assert!(
            own(&[0, 1], &ServerLocation::Elsewhere, 1)
                && !own(&[0], &ServerLocation::Elsewhere, 1)
        );
        assert!(!own(&[0], &ServerLocation::Ours, 1));
        assert!(!own(&[0, 1, 2], &ServerLocation::SameHost(None), 1));
        assert!(own(&[0, 1, 2], &pinned(&[2]), 2) && !own(&[0, 1, 2], &pinned(&[2]), 3));
        assert!(!own(&[0, 1], &pinned(&[0, 1]), 1));
    }
}
