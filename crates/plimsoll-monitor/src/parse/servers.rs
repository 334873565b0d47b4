//! What servers report of themselves: nginx's status page (ngx_http_stub_status_module), and
//! `/proc/net/rpc/nfsd`, where the kernel's NFS server counts.

use std::fmt::Write;

use super::nth_number;

/// The figures of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StubStatus {
    /// Connections open now, those that wait included.
    pub active: u64,
    /// Connections accepted so far.
    pub accepts: u64,
    /// Connections not closed because of a limit (`worker_connections`).
    pub handled: u64,
    /// Requests so far.
    pub requests: u64,
    /// Connections on which a request's head is being read.
    pub reading: u64,
    /// Connections on which a request is being answered.
    pub writing: u64,
    /// Connections that are kept open without a request.
    pub waiting: u64,
}

/// Reads the page; `None` when it is another.
pub fn parse_stub_status(text: &str) -> Option<StubStatus> {
    let mut lines = text.lines().map(str::trim);
    let active = lines.next()?.strip_prefix("Active connections:")?.trim().parse().ok()?;
    lines.next()?.starts_with("server accepts handled requests").then_some(())?;
    let [accepts, handled, requests] = numbers(lines.next()?)?;
    let states = lines.next()?;
    states.starts_with("Reading:").then_some(())?;
    let [reading, writing, waiting] = numbers(states)?;
    Some(StubStatus { active, accepts, handled, requests, reading, writing, waiting })
}

fn numbers(line: &str) -> Option<[u64; 3]> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>().try_into().ok()
}

impl StubStatus {
    /// The figures under the names that servers use for their own, less our own requests: each was
    /// a connection and a request, and one of them is being answered.
    pub(crate) fn metrics_text(&self, own_requests: u64) -> String {
        let figures = [
            ("connections", self.active.saturating_sub(1)),
            ("connections_accepted_total", self.accepts.saturating_sub(own_requests)),
            ("connections_refused_total", self.accepts.saturating_sub(self.handled)),
            ("requests_total", self.requests.saturating_sub(own_requests)),
            ("connections_reading", self.reading),
            ("connections_writing", self.writing.saturating_sub(1)),
            ("connections_waiting", self.waiting),
        ];
        let mut text = String::new();
        for (name, value) in figures {
            let _ = writeln!(text, "plimsoll_app_{name} {value}");
        }
        text
    }
}

/// Counters of the kernel's NFS server (Linux, fs/nfsd/stats.c). The busy time of its threads is no
/// longer counted: the kernel writes zeros there.
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
    /// Operations of compounds (NFSv4).
    pub operations: Option<u64>,
    /// OPENs among them.
    pub opens: Option<u64>,
}

/// Number of OPEN. RFC 8881 §18.16
const OPEN: usize = 18;

/// Reads the file; lines it does not have are absent.
pub fn parse_nfsd(text: &str) -> NfsdCounters {
    let line = |name: &str| {
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.find(|tokens| tokens.first() == Some(&name))
    };
    let field = |name: &str, index: usize| nth_number(&line(name)?, index);
    // How many there are, and the count of each by its number.
    let operations = line("proc4ops").and_then(|tokens| {
        let counts = tokens.get(2..)?.iter().map(|count| count.parse::<u64>().ok());
        counts.collect::<Option<Vec<_>>>()
    });
    NfsdCounters {
        threads: field("th", 1),
        calls: field("rpc", 1),
        bad_calls: field("rpc", 2),
        bytes_read: field("io", 1),
        bytes_written: field("io", 2),
        connections: field("net", 4),
        opens: operations.as_ref().and_then(|counts| counts.get(OPEN).copied()),
        operations: operations
            .map(|counts| counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n))),
    }
}

#[cfg(test)]
mod tests;
