//! The log of a calibrated server.

use std::path::Path;

use plimsoll_model::event::{Times, new_times};
use plimsoll_servers::log::{Logged, Row};

use crate::trial::{DRAIN, Observation};
use plimsoll_protocol::host::HostError;

/// A server's log.
#[derive(Debug, Default)]
pub struct ServerLog {
    rows: Vec<Row>,
    /// From and until when nothing was served.
    pub(crate) stall_ns: Option<(u64, u64)>,
}

impl ServerLog {
    /// Reads a log.
    pub fn read(path: &Path) -> Result<Self, HostError> {
        let wrong = |why: String| {
            let path = path.display();
            HostError::unusable(format!("{path}: the calibrated server's log: {why}"))
        };
        let text = std::fs::read_to_string(path)
            .map_err(|e| wrong(format!("{e}; calibrate again, with --out where there is space")))?;
        Self::parse(&text).ok_or_else(|| wrong( "it ends in the middle, or is not one: is the disk full? Make room or name another \
                 place (--out, TMPDIR), then calibrate again"
                .into()))
    }

    fn parse(text: &str) -> Option<Self> {
        let Logged { rows, stall_ns } = Logged::parse(text)?;
        Some(Self { rows, stall_ns })
    }

    /// The requests that arrived within a span, in that order.
    pub(crate) fn arrived_within(&self, (from, until): (u64, u64)) -> &[Row] {
        &self.rows[self.arrived_before(from)..self.arrived_before(until)]
    }

    /// The requests of a load point, those in its drain included.
    pub(crate) fn arrived_in_point(&self, observation: &Observation) -> &[Row] {
        self.arrived_within((observation.origin_ns(), observation.window_ns.1 + DRAIN.0))
    }

    /// Response times, in seconds, of the requests that arrived within a window.
    pub(crate) fn responses_s(&self, window_ns: (u64, u64)) -> Vec<f64> {
        let rows = self.arrived_within(window_ns).iter();
        rows.map(|row| (row.completion_ns - row.arrival_ns) as f64 / 1e9).collect()
    }

    /// How late replies were sent, for the requests that arrived within a window.
    pub(crate) fn late(&self, window_ns: (u64, u64)) -> Times {
        let mut late = new_times();
        for row in self.arrived_within(window_ns) {
            // A histogram that takes hours takes this.
            let _ = late.record(row.sent_ns.saturating_sub(row.completion_ns));
        }
        late
    }

    /// How many replies were handed to the kernel within a window.
    pub(crate) fn replies_within(&self, (from, until): (u64, u64)) -> u64 {
        self.rows.iter().filter(|row| (from..until).contains(&row.sent_ns)).count() as u64
    }

    /// The first arrival from an instant on.
    pub(crate) fn first_arrival_from(&self, instant_ns: u64) -> Option<u64> {
        self.rows.get(self.arrived_before(instant_ns)).map(|row| row.arrival_ns)
    }

    /// How many had arrived before an instant.
    pub(crate) fn arrived_before(&self, instant_ns: u64) -> usize {
        self.rows.partition_point(|row| row.arrival_ns < instant_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_in_the_order_of_arrival_and_cut_to_a_window() {
        let text = "# spec\n# stall_ns=5..9\narrival_ns,departure_ns,sent_ns,key\n\
                    20,1000000020,1000000030,7\n10,500000010,500000021,\n";
        let log = ServerLog::parse(text).unwrap();
        assert_eq!(log.stall_ns, Some((5, 9)));
        assert_eq!(log.responses_s((0, 100)), [0.5, 1.0]);
        assert_eq!(log.responses_s((10, 20)), [0.5]);
        assert_eq!(log.late((10, 20)).max(), 11);
        let replies = [(0, 500_000_022), (500_000_021, 500_000_022), (0, 500_000_021)];
        assert_eq!(replies.map(|window| log.replies_within(window)), [1, 1, 0]);
        assert_eq!(log.first_arrival_from(11), Some(20));
        assert_eq!(log.first_arrival_from(21), None);
        assert_eq!((log.arrived_before(10), log.arrived_before(11)), (0, 1));
    }

    #[test]
    fn what_is_no_log_is_not_taken_for_an_empty_one() {
        for text in
            ["", "arrival_ns", "# stall_ns=5\n", "arrival_ns,departure_ns,sent_ns,key\n1,2\n"]
        {
            assert!(ServerLog::parse(text).is_none(), "{text:?}");
        }
    }
}
