//! `/proc/net/rpc/nfsd`, where the kernel's NFS server counts.

use super::nth_number;

/// What the kernel's NFS server counts (Linux, fs/nfsd/stats.c). Its threads' time busy is no more
/// counted: the kernel writes zeros there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfsdCounters {
    /// Threads it has now.
    pub threads: Option<u64>,
    /// Calls that came in.
    pub calls: Option<u64>,
    /// Calls it could not read, or refused.
    pub bad_calls: Option<u64>,
    /// Bytes that clients read.
    pub bytes_read: Option<u64>,
    /// Bytes that clients wrote.
    pub bytes_written: Option<u64>,
    /// TCP connections that clients have opened.
    pub connections: Option<u64>,
}

/// Reads the file; lines it does not have are absent.
pub fn parse_nfsd(text: &str) -> NfsdCounters {
    let field = |name: &str, index: usize| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        nth_number(&lines.find(|words| words.first() == Some(&name))?, index)
    };
    NfsdCounters {
        threads: field("th", 1),
        calls: field("rpc", 1),
        bad_calls: field("rpc", 2),
        bytes_read: field("io", 1),
        bytes_written: field("io", 2),
        connections: field("net", 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of Linux 6.1 that count; those of operations have a number for each.
    const RECORDED: &str = "rc 0 4211 86093\nfh 0 0 0 0 0\nio 1073741824 268435456\n\
        th 8 0 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000 0.000\n\
        ra 32 0 0 0 0 0 0 0 0 0 0 0\nnet 90310 0 90304 6\nrpc 90304 2 0 2 0\n\
        proc3 22 2 11 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nproc4 2 2 90291\n";

    #[test]
    fn threads_calls_and_bytes_of_the_nfs_server_are_read() {
        let counters = parse_nfsd(RECORDED);
        let expected = NfsdCounters {
            threads: Some(8),
            calls: Some(90_304),
            bad_calls: Some(2),
            bytes_read: Some(1 << 30),
            bytes_written: Some(1 << 28),
            connections: Some(6),
        };
        assert_eq!(counters, expected);
    }

    #[test]
    fn what_the_file_does_not_have_is_absent() {
        assert_eq!(parse_nfsd("th x\nrpc\nio 7\n").bytes_read, Some(7));
        assert_eq!(parse_nfsd("th x\nrpc\nio 7\n").threads, None);
        assert_eq!(parse_nfsd(""), NfsdCounters::default());
    }
}
