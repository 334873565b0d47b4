//! `/proc/PID/stat` and `limits`.

use super::nth_number;

/// What the samplers need of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Process id.
    pub pid: u32,
    /// Name of the program, cut by the kernel to 15 bytes.
    pub name: String,
    /// Parent.
    pub parent: u32,
    /// Clock ticks in user mode, all threads.
    pub user_ticks: u64,
    /// Clock ticks in the kernel, all threads.
    pub system_ticks: u64,
    /// Clock ticks, user and system, of children that have ended and been waited for.
    pub ended_ticks: u64,
    /// Threads.
    pub threads: u64,
    /// Resident pages.
    pub resident_pages: u64,
}

/// Reads `/proc/PID/stat`. The name may hold blanks and parentheses.
pub fn parse_process_stat(text: &str) -> Option<ProcessStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let (pid, name) = head.split_once('(')?;
    // Field 3 of the manual, the state, is word 0 here.
    let words: Vec<&str> = tail.split_whitespace().collect();
    Some(ProcessStat {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        parent: words.get(1)?.parse().ok()?,
        user_ticks: nth_number(&words, 11)?,
        system_ticks: nth_number(&words, 12)?,
        ended_ticks: nth_number(&words, 13)?.saturating_add(nth_number(&words, 14)?),
        threads: nth_number(&words, 17)?,
        resident_pages: nth_number(&words, 21)?,
    })
}

/// Of the flags in `/proc/PID/stat`: a thread of the kernel (include/linux/sched.h).
const PF_KTHREAD: u32 = 0x0020_0000;

/// What says who used a core, of `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStat {
    /// Name of the program, cut by the kernel to 15 bytes.
    pub name: String,
    /// `R` runs or is ready to, `D` waits for a disk, `S` waits for something else.
    pub state: char,
    /// It is a thread of the kernel.
    pub kernel: bool,
    /// Clock ticks, user and system.
    pub ticks: u64,
    /// Threads of the process.
    pub threads: u64,
    /// Core on which it ran last; of a process, its first thread's.
    pub core: u32,
}

/// Reads it, without the fields between.
pub fn parse_thread_stat(text: &str) -> Option<ThreadStat> {
    let (head, tail) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut words = tail.split_ascii_whitespace();
    // These are fields 3, 9, 14, 15, 20 and 39 of the manual.
    let state = words.next()?.chars().next()?;
    let flags: u32 = words.nth(5)?.parse().ok()?;
    let user: u64 = words.nth(4)?.parse().ok()?;
    let system: u64 = words.next()?.parse().ok()?;
    let threads = words.nth(4)?.parse().ok()?;
    let core = words.nth(18)?.parse().ok()?;
    let ticks = user.saturating_add(system);
    let kernel = flags & PF_KTHREAD != 0;
    Some(ThreadStat { name: name.to_owned(), state, kernel, ticks, threads, core })
}

/// Soft and hard limit from `/proc/PID/limits`, as the kernel spells them (`1024`, `unlimited`).
pub fn parse_limit<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = rest.split_whitespace();
    Some((words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let text = "22494 (a) b (c)) R 22471 22471 19253 0 -1 4194304 101 0 0 0 7 9 0 0 20 0 3 0 \
                    139115 3133440 416 18446744073709551615 1 1\n";
        let stat = parse_process_stat(text).unwrap();
        assert_eq!((stat.pid, stat.name.as_str(), stat.parent), (22_494, "a) b (c)", 22_471));
        assert_eq!((stat.user_ticks, stat.system_ticks), (7, 9));
        assert_eq!((stat.threads, stat.resident_pages), (3, 416));
    }

    #[test]
    fn ticks_threads_and_core_are_found_in_a_line_of_the_kernel() {
        let text = "7 (my (x) y) S 1 7 7 0 -1 4194304 10 0 0 0 55 66 0 0 20 0 3 0 139115 3133440 \
                    416 18446744073709551615 1 1 0 0 0 0 0 4096 17 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 \
                    0 0 0\n";
        let name = "my (x) y".into();
        let kernel = false;
        let expected = ThreadStat { name, state: 'S', kernel, ticks: 121, threads: 3, core: 5 };
        assert_eq!(parse_thread_stat(text), Some(expected));
        let kworker = text.replace("4194304", "69238880");
        assert!(parse_thread_stat(&kworker).unwrap().kernel);
        assert_eq!(parse_thread_stat("7 (cut) S 1 7"), None);
    }

    #[test]
    fn a_cut_stat_line_is_no_process() {
        assert_eq!(parse_process_stat("1 (init) S 0 1"), None);
        assert_eq!(parse_process_stat(") ("), None);
    }

    #[test]
    fn limits_are_found_by_their_name() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 unlimited            files\n";
        assert_eq!(parse_limit(text, "Max open files"), Some(("1024", "unlimited")));
        assert_eq!(parse_limit(text, "Max cpu time"), None);
    }
}
