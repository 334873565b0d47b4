//! nginx's status page (ngx_http_stub_status_module).

use std::fmt::Write;

/// What the page tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StubStatus {
    /// Connections open now, those that wait included.
    pub active: u64,
    /// Connections accepted so far.
    pub accepts: u64,
    /// Connections not closed for want of a limit (`worker_connections`).
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
    let numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    numbers.collect::<Vec<_>>().try_into().ok()
}

impl StubStatus {
    /// The figures under the names by which servers are asked for theirs, less our own questions:
    /// each was a connection and a request, and one of them is being answered.
    pub(crate) fn told(&self, asked: u64) -> String {
        let figures = [
            ("connections", self.active.saturating_sub(1)),
            ("connections_accepted_total", self.accepts.saturating_sub(asked)),
            ("connections_refused_total", self.accepts.saturating_sub(self.handled)),
            ("requests_total", self.requests.saturating_sub(asked)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As nginx 1.22 writes it, with its blanks at the ends of lines.
    const PAGE: &str = "Active connections: 4 \nserver accepts handled requests\n \
        20 18 4100 \nReading: 0 Writing: 3 Waiting: 1 \n";

    #[test]
    fn the_status_page_of_nginx_is_read() {
        let expected = StubStatus {
            active: 4,
            accepts: 20,
            handled: 18,
            requests: 4_100,
            reading: 0,
            writing: 3,
            waiting: 1,
        };
        assert_eq!(parse_stub_status(PAGE), Some(expected));
    }

    #[test]
    fn our_own_questions_are_no_work_of_the_server() {
        let told = parse_stub_status(PAGE).unwrap().told(7);
        for line in [
            "plimsoll_app_connections 3\n",
            "plimsoll_app_connections_accepted_total 13\n",
            "plimsoll_app_connections_refused_total 2\n",
            "plimsoll_app_requests_total 4093\n",
            "plimsoll_app_connections_writing 2\n",
        ] {
            assert!(told.contains(line), "{line} is not in {told}");
        }
    }

    #[test]
    fn other_pages_are_none() {
        for odd in ["", "<html>", "Active connections: x\n", &PAGE[..60], &PAGE[..PAGE.len() - 4]] {
            assert_eq!(parse_stub_status(odd), None, "{odd:?}");
        }
    }
}
