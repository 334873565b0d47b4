//! What a server of ours is held to, so that a run shows what more of it would bring.

use std::fmt;

use plimsoll_model::units::{Bytes, Nanos, span_text};
use plimsoll_servers::Confinement;

use crate::exit::Failure;

/// Cores, share, memory and threads of a server of ours; what is absent it may have as it likes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// So many of the cores that servers get.
    pub cores: Option<u32>,
    /// Of those a share, and memory.
    pub confinement: Confinement,
    /// Service threads.
    pub threads: Option<u32>,
    /// Work of a reference server besides, for each request.
    pub work: Option<Nanos>,
}

impl Held {
    /// Leaves so many of the server's cores.
    pub(crate) fn narrow(&self, cores: &mut Vec<u32>) -> Result<(), Failure> {
        let Some(wanted) = self.cores else { return Ok(()) };
        if cores.len() < wanted as usize {
            let there = match cores.len() {
                0 => "none of its own".to_owned(),
                n => n.to_string(),
            };
            return Err(Failure::unusable(format!(
                "{wanted} cores were asked for and the server may have {there} here: the others \
                 are the generator's; take fewer cores, or a larger host"
            )));
        }
        cores.truncate(wanted as usize);
        Ok(())
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Confinement { quota_cores, memory_bytes } = self.confinement;
        let cores = match (self.cores, quota_cores) {
            (Some(1), Some(quota)) => Some(format!("{quota} of one core (quota)")),
            (Some(cores), Some(quota)) => Some(format!("{quota} of {cores} cores (quota)")),
            (Some(cores), None) => Some(format!("{cores} cores")),
            (None, quota) => quota.map(|quota| format!("{quota} cores (quota)")),
        };
        let memory = memory_bytes.map(|bytes| format!("{} of memory", Bytes(bytes)));
        let threads = self.threads.map(|threads| format!("{threads} service threads"));
        let work =
            self.work.map(|work| format!("{} of work besides on each request", span_text(work)));
        let parts: Vec<String> = [cores, memory, threads, work].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_are_not_there_are_refused_before_anything_is_started() {
        let held = Held { cores: Some(2), ..Held::default() };
        let refused = held.narrow(&mut vec![1]).unwrap_err().to_string();
        assert!(refused.contains("2 cores were asked for and the server may have 1"), "{refused}");
        let mut cores = vec![1, 2, 3];
        held.narrow(&mut cores).unwrap();
        assert_eq!(cores, [1, 2]);
    }

    #[test]
    fn what_a_server_is_held_to_reads_as_one_line() {
        let confinement = Confinement { quota_cores: Some(0.25), memory_bytes: None };
        let quarter = Held { cores: Some(1), confinement, ..Held::default() };
        assert_eq!(quarter.to_string(), "0.25 of one core (quota)");
        let threads = Held { threads: Some(4), ..Held::default() };
        assert_eq!(threads.to_string(), "4 service threads");
    }
}
