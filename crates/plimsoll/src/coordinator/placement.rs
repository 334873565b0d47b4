//! Which cores, how many workers, which pacing. Every choice is disclosed.

use plimsoll_model::assignment::Pacing;

/// Workers nobody asked for: beyond this one generator is limited by memory and wakeups.
const WORKERS_DEFAULT_MAX: u32 = 16;

/// Where the server runs as seen from this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPlace {
    /// Started by this run on cores of our choice.
    Ours,
    /// On this host, placed by somebody else.
    SameHost,
    /// On another host.
    Elsewhere,
}

/// What the run uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Cores of a server we start; empty leaves it to the system.
    pub server_cores: Vec<u32>,
    /// Cores of the workers; empty leaves it to the system.
    pub generator_cores: Vec<u32>,
    /// Worker threads.
    pub workers: u32,
    /// How they wait.
    pub pacing: Pacing,
    /// Each worker has a core that neither the server nor another worker was given.
    pub own_cores: bool,
    /// Why, for the disclosure.
    pub why: String,
}

/// Chooses. `cores` are those this process may use; `workers` and `pacing` what the user asked for.
pub fn place(
    cores: &[u32],
    server: ServerPlace,
    workers: Option<u32>,
    pacing: Pacing,
) -> Placement {
    let (server_cores, generator_cores, why) = split(cores, server);
    let free = if generator_cores.is_empty() { cores.len() } else { generator_cores.len() };
    let share = match server {
        ServerPlace::Ours => free,
        ServerPlace::SameHost => free / 2,
        ServerPlace::Elsewhere => free.saturating_sub(1),
    };
    let workers = workers.unwrap_or((share.max(1) as u32).min(WORKERS_DEFAULT_MAX));
    let own_cores = match server {
        ServerPlace::Ours => generator_cores.len() >= workers as usize,
        ServerPlace::SameHost => false,
        // One is left to the system and to this program's other threads.
        ServerPlace::Elsewhere => free > workers as usize,
    };
    Placement { server_cores, generator_cores, workers, pacing, own_cores, why }
}

fn split(cores: &[u32], server: ServerPlace) -> (Vec<u32>, Vec<u32>, String) {
    match server {
        ServerPlace::Ours if cores.len() >= 2 => {
            let (generator, ours) = cores.split_at(cores.len() / 2);
            let why = "server and generator on different cores of one host".to_owned();
            (ours.to_vec(), generator.to_vec(), why)
        }
        ServerPlace::Ours => {
            (Vec::new(), Vec::new(), "server and generator share the only core".to_owned())
        }
        ServerPlace::SameHost => {
            let why = format!(
                "the server runs on this host, where somebody else placed it; the generator may \
                 use cores {}",
                plimsoll_servers::cores::list(cores)
            );
            (Vec::new(), Vec::new(), why)
        }
        ServerPlace::Elsewhere => {
            (Vec::new(), Vec::new(), "the server is on another host".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_ours_gets_other_cores_than_the_generator() {
        let it = place(&[0, 1], ServerPlace::Ours, None, Pacing::Auto);
        assert_eq!((it.server_cores, it.generator_cores), (vec![1], vec![0]));
        assert_eq!((it.workers, it.pacing), (1, Pacing::Auto));
        let it = place(&[4, 5, 6, 7, 8], ServerPlace::Ours, None, Pacing::Auto);
        assert_eq!((it.server_cores, it.generator_cores), (vec![6, 7, 8], vec![4, 5]));
    }

    #[test]
    fn of_a_server_that_somebody_else_placed_only_our_own_cores_are_known() {
        let it = place(&[0, 2], ServerPlace::SameHost, None, Pacing::Auto);
        assert!(it.why.contains("the generator may use cores 0,2"), "{}", it.why);
    }

    #[test]
    fn a_worker_has_its_own_core_where_neither_server_nor_system_wants_it() {
        let own = |cores: &[u32], server, workers| {
            place(cores, server, Some(workers), Pacing::Auto).own_cores
        };
        assert!(own(&[0, 1], ServerPlace::Ours, 1) && !own(&[0, 1], ServerPlace::Ours, 2));
        assert!(own(&[0, 1], ServerPlace::Elsewhere, 1) && !own(&[0], ServerPlace::Elsewhere, 1));
        assert!(!own(&[0], ServerPlace::Ours, 1) && !own(&[0, 1, 2], ServerPlace::SameHost, 1));
    }
}
