//! Network interfaces.

use super::Elapsed;
use super::proc_file::ProcFile;
use super::table::{Column, Rows, Table, Unit};
use crate::parse::{NetworkCounters, parse_net_dev};
use crate::root::Root;

pub(super) static NETWORKS: Table = Table {
    name: "network",
    keyed: true,
    idle_left_out: true,
    columns: &[
        Column::summed("received", Unit::BytesPerSecond),
        Column::summed("sent", Unit::BytesPerSecond),
        Column::summed("received_packets", Unit::PerSecond),
        Column::summed("sent_packets", Unit::PerSecond),
        Column::summed("receive_drops", Unit::PerSecond),
        Column::summed("send_drops", Unit::PerSecond),
        Column::written("receive_errors", Unit::PerSecond),
        Column::written("send_errors", Unit::PerSecond),
    ],
};

#[derive(Debug)]
pub(super) struct NetworkSource {
    file: ProcFile,
    before: Vec<NetworkCounters>,
    buffer: Vec<u8>,
}

impl NetworkSource {
    pub(super) fn open(root: &Root) -> Self {
        let file = ProcFile::open(root, "proc/net/dev");
        Self { file, before: Vec::new(), buffer: Vec::new() }
    }

    pub(super) fn sample(&mut self, elapsed: Elapsed, rows: &mut Rows) {
        rows.clear();
        let Some(text) = self.file.read(&mut self.buffer) else { return };
        let now = parse_net_dev(&text);
        for network in &now {
            let was = self.before.iter().find(|was| was.name == network.name);
            let rate =
                |of: fn(&NetworkCounters) -> u64| elapsed.rate(was.map(of), Some(of(network)));
            let values = [
                rate(|n| n.received_bytes),
                rate(|n| n.sent_bytes),
                rate(|n| n.received_packets),
                rate(|n| n.sent_packets),
                rate(|n| n.receive_drops),
                rate(|n| n.send_drops),
                rate(|n| n.receive_errors),
                rate(|n| n.send_errors),
            ];
            rows.push(&network.name, &values);
        }
        self.before = now;
    }
}
