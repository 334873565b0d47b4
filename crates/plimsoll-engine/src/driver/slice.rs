//! How long a thread keeps a core when another one wants it.

use std::mem;

use rustix::process::getpriority_process;

/// The shortest that the kernel grants.
const SLICE_NS: u64 = 100_000;

/// Asks for short slices of time for the calling thread; true where it has them, which takes no
/// privilege. Since Linux 6.12 a thread that wakes up has the core at once if its slices are shorter
/// than those of the thread that runs and it had less than its share of the core. The share stays the
/// same. Older kernels accept the call and take no notice.
#[allow(unsafe_code, reason = "no safe crate has sched_setattr")]
pub fn shorten() -> bool {
    let Ok(nice) = getpriority_process(None) else { return false };
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: all of `sched_attr` are plain numbers, for which zero is a value. The kernel reads, and
    // in the second call writes, as many bytes as `size` says, and keeps no pointer to them.
    let (accepted, has) = unsafe {
        let mut attributes = libc::sched_attr {
            size,
            sched_flags: libc::SCHED_FLAG_KEEP_POLICY as u64,
            sched_nice: nice,
            sched_runtime: SLICE_NS,
            ..mem::zeroed()
        };
        let set = libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
        attributes.sched_runtime = 0;
        let got = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0);
        (set == 0 && got == 0, attributes.sched_runtime)
    };
    accepted && has == SLICE_NS
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::process::setpriority_process;

    use super::*;

    #[test]
    fn where_the_kernel_knows_them_anybody_has_short_slices_and_the_priority_stays() {
        let release = rustix::system::uname();
        let release = release.release().to_string_lossy();
        let version: Vec<u32> = release.split(['.', '-']).map_while(|n| n.parse().ok()).collect();
        let on_a_thread_of_its_own = thread::spawn(|| {
            setpriority_process(None, 3).unwrap();
            (shorten(), getpriority_process(None).unwrap())
        });
        let known = version.as_slice() >= [6, 12].as_slice();
        assert_eq!(on_a_thread_of_its_own.join().unwrap(), (known, 3));
    }
}
