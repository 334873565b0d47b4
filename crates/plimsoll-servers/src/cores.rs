//! Which cores a server may use.

use std::io;
use std::thread;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

/// The lowest of ordinary priorities: such a thread still gets a sixtieth of a saturated core. With
/// `SCHED_IDLE` it would be a three-hundredth, and samples would come late.
const NICE_LOWEST: i32 = 19;

/// Cores this process may run on, ascending.
pub fn available() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).map(|core| core as u32).collect())
}

/// Keeps the calling thread, and the threads and processes it starts from now on, on `cores`.
/// An empty list leaves everything as it is.
pub fn pin_current_thread(cores: &[u32]) -> io::Result<()> {
    if cores.is_empty() { Ok(()) } else { Ok(sched_setaffinity(None, &set_of(cores)?)?) }
}

/// Starts something from a thread that is kept on `cores` first: a process and all its descendants
/// inherit them, with no moment in which a worker could have been started elsewhere.
pub fn on_cores<T: Send>(cores: &[u32], start: impl FnOnce() -> T + Send) -> io::Result<T> {
    let pinned = || pin_current_thread(cores).map(|()| start());
    thread::scope(|scope| match scope.spawn(pinned).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Keeps every thread that this process has now on `cores`, and what they start from now on; an
/// empty list changes nothing. Returns their thread ids. Without `/proc` it pins the calling thread
/// alone, and returns no ids.
pub fn pin_all_threads(cores: &[u32]) -> io::Result<Vec<u32>> {
    let set = set_of(cores)?;
    let mut threads = Vec::new();
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else {
        return pin_current_thread(cores).map(|()| threads);
    };
    for entry in entries {
        let name = entry?.file_name();
        let Some(thread) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if !cores.is_empty() {
            match sched_setaffinity(Pid::from_raw(thread.cast_signed()), &set) {
                // It has ended since it was listed.
                Err(rustix::io::Errno::SRCH) => continue,
                done => done?,
            }
        }
        threads.push(thread);
    }
    Ok(threads)
}

/// Lets everything else on its core go before the calling thread, and before the threads and
/// processes it starts from now on. An ordinary user cannot take it back.
pub fn lower_priority() -> io::Result<()> {
    // To Linux this is the calling thread.
    Ok(setpriority_process(None, NICE_LOWEST)?)
}

/// What the kernel writes for a set of cores (`0-2,5`), ascending.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if last as usize >= CpuSet::MAX_CPU {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// `0,2,3`, as flags take it.
pub fn list(cores: &[u32]) -> String {
    cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn set_of(cores: &[u32]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for &core in cores {
        if core as usize >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such core"));
        }
        set.set(core as usize);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists_of_cores_are_understood_and_others_refused() {
        assert_eq!(parse_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("3"), Some(vec![3]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!((parse_list("a"), parse_list("0-4000000000")), (None, None));
    }
}
