//! How long a thread keeps a core when another one wants it.

use std::mem;

use rustix::process::getpriority_process;

/// The shortest that the kernel grants.
const SLICE_NS: u64 = 100_000;

/// Asks for short slices of time for the calling thread; true where that is granted, which takes no
/// privilege. Since Linux 6.12 a thread that wakes up has the core at once if its slices are shorter
/// than those of the thread that runs (else 2.8 ms) and it had less than its share of the core. The
/// share stays the same. Older kernels take no notice.
#[allow(unsafe_code, reason = "no safe crate has sched_setattr")]
pub fn shorten() -> bool {
    let Ok(nice) = getpriority_process(None) else { return false };
    // SAFETY: all of `sched_attr` are plain numbers, for which zero is a value: `SCHED_OTHER`, no
    // flags. The kernel reads as many bytes as `size` says and keeps no pointer to them.
    let result = unsafe {
        let attributes = libc::sched_attr {
            size: size_of::<libc::sched_attr>() as u32,
            sched_nice: nice,
            sched_runtime: SLICE_NS,
            ..mem::zeroed()
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0)
    };
    result == 0
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::process::setpriority_process;

    use super::*;

    #[test]
    fn short_slices_are_granted_to_anybody_and_leave_the_priority_as_it_was() {
        let on_a_thread_of_its_own = thread::spawn(|| {
            setpriority_process(None, 3).unwrap();
            (shorten(), getpriority_process(None).unwrap())
        });
        assert_eq!(on_a_thread_of_its_own.join().unwrap(), (true, 3));
    }
}
