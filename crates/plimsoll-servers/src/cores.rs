//! Which cores a server may use.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores this process may run on, ascending.
pub fn available() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).map(|core| core as u32).collect())
}

/// Keeps the calling thread, and the threads and processes it starts from now on, on `cores`.
/// An empty list leaves everything as it is.
pub fn pin_current_thread(cores: &[u32]) -> io::Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &core in cores {
        if core as usize >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such core"));
        }
        set.set(core as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// `0,2,3`, as flags take it.
pub fn list(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
