//! `/proc/PID/stat`, `statm` and `limits`.

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
        threads: nth_number(&words, 17)?,
        resident_pages: nth_number(&words, 21)?,
    })
}

/// What says who used a core, of `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStat {
    /// Name of the program, cut by the kernel to 15 bytes.
    pub name: String,
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
    // Field 3 of the manual is word 0 here: these are fields 14, 15, 20 and 39.
    let user: u64 = words.nth(11)?.parse().ok()?;
    let system: u64 = words.next()?.parse().ok()?;
    let threads = words.nth(4)?.parse().ok()?;
    let core = words.nth(18)?.parse().ok()?;
    Some(ThreadStat { name: name.to_owned(), ticks: user.saturating_add(system), threads, core })
}

/// Resident pages from `/proc/PID/statm`.
pub fn parse_resident_pages(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
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
        let expected = ThreadStat { name: "my (x) y".into(), ticks: 121, threads: 3, core: 5 };
        assert_eq!(parse_thread_stat(text), Some(expected));
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

    #[test]
    fn statm_gives_resident_pages() {
        assert_eq!(parse_resident_pages("765 445 416 5 0 123 0\n"), Some(445));
    }
}
