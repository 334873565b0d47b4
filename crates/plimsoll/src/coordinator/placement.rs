//! Which cores, how many workers, which pacing. Every choice is disclosed.

use plimsoll_model::assignment::Pacing;

/// Workers nobody asked for: beyond this one generator is limited by memory and wakeups.
const WORKERS_DEFAULT_MAX: u32 = 16;
/// Spinning takes a whole core per worker; the system and the coordinator want some as well.
const CORES_SPARED_FOR_SPIN: usize = 2;

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
    /// Why, for the disclosure.
    pub why: String,
}

/// Chooses. `cores` are those this process may use; `workers` and `pacing` what the user asked for.
pub fn place(
    cores: &[u32],
    server: ServerPlace,
    workers: Option<u32>,
    pacing: Option<Pacing>,
) -> Placement {
    let (server_cores, generator_cores, why) = split(cores, server);
    let free = if generator_cores.is_empty() { cores.len() } else { generator_cores.len() };
    let share = match server {
        ServerPlace::Ours => free,
        ServerPlace::SameHost => free / 2,
        ServerPlace::Elsewhere => free.saturating_sub(1),
    };
    let workers = workers.unwrap_or((share.max(1) as u32).min(WORKERS_DEFAULT_MAX));
    let can_spin = free >= workers as usize + CORES_SPARED_FOR_SPIN;
    let pacing = pacing.unwrap_or(if can_spin { Pacing::Spin } else { Pacing::Precise });
    Placement { server_cores, generator_cores, workers, pacing, why }
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
        let it = place(&[0, 1], ServerPlace::Ours, None, None);
        assert_eq!((it.server_cores, it.generator_cores), (vec![1], vec![0]));
        assert_eq!((it.workers, it.pacing), (1, Pacing::Precise));
        let it = place(&[4, 5, 6, 7, 8], ServerPlace::Ours, None, None);
        assert_eq!((it.server_cores, it.generator_cores), (vec![6, 7, 8], vec![4, 5]));
    }

    #[test]
    fn of_a_server_that_somebody_else_placed_only_our_own_cores_are_known() {
        let it = place(&[0, 2], ServerPlace::SameHost, None, None);
        assert!(it.why.contains("the generator may use cores 0,2"), "{}", it.why);
    }

    #[test]
    fn auto_pacing_spins_only_with_two_cores_to_spare() {
        let cores: Vec<u32> = (0..4).collect();
        assert_eq!(place(&cores, ServerPlace::Elsewhere, Some(2), None).pacing, Pacing::Spin);
        assert_eq!(place(&cores, ServerPlace::Elsewhere, Some(3), None).pacing, Pacing::Precise);
        let asked = place(&[0], ServerPlace::Ours, None, Some(Pacing::Spin));
        assert_eq!((asked.pacing, asked.workers), (Pacing::Spin, 1));
    }
}
