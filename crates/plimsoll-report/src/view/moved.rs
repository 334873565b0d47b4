//! What suites of file throughput count: bytes moved, in the units people compare.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use crate::table::{Mark, Table, figures};
use crate::text::{ABSENT, bytes, count, number, three_digits};

/// What the suite's headline counts. A curve from elsewhere counts ops.
pub(crate) fn metric(run: &RunResult) -> Metric {
    run.suite.as_ref().map(|suite| suite.metric).unwrap_or_default()
}

/// What an op is called, per second.
pub(crate) fn ops_unit(run: &RunResult) -> &'static str {
    match metric(run) {
        Metric::Logons => Metric::Logons.unit(),
        Metric::Ops | Metric::Bytes => Metric::Ops.unit(),
    }
}

/// In MiB/s.
pub(super) fn mib_per_s(rate: Option<f64>) -> String {
    rate.map_or_else(|| ABSENT.to_owned(), |rate| three_digits(BytesPerSec(rate).mib_per_s()))
}

/// In Mbit/s.
pub(super) fn mbit_per_s(rate: Option<f64>) -> String {
    rate.map_or_else(|| ABSENT.to_owned(), |rate| three_digits(BytesPerSec(rate).mbit_per_s()))
}

/// The throughput of each point, with who took part; empty for suites that count ops.
pub(super) fn moved_table(run: &RunResult) -> Table {
    let caption = "Throughput in application bytes, read and written. A MiB/s is 2^20 bytes per \
                   second, a Mbit/s 10^6 bits per second. Wire bytes are what the sockets \
                   carried, the protocol's own included.";
    let clients_are_the_axis = run.axis.unit == "clients";
    let (name, unit) = match clients_are_the_axis {
        true => ("clients", "requested"),
        false => (run.axis.name.as_str(), run.axis.unit.as_str()),
    };
    let columns = vec![
        figures("point", ""),
        figures(name, unit),
        figures("clients", "requested"),
        figures("clients", "took part"),
        figures("throughput", Metric::Bytes.unit()),
        figures("throughput", "MiB/s"),
        figures("throughput", "Mbit/s"),
        figures("read", ""),
        figures("written", ""),
        figures("wire in", ""),
        figures("wire out", ""),
    ];
    let mut table = Table::new(caption, columns);
    if metric(run) != Metric::Bytes {
        return table;
    }
    for point in &run.points {
        let mut cells = row(point);
        if clients_are_the_axis {
            // Said in the column before.
            ABSENT.clone_into(&mut cells[2]);
        }
        table.push_marked(cells, Mark::of(point));
    }
    table.without_empty_columns()
}

fn row(point: &PointResult) -> Vec<String> {
    let rate = point.achieved_bytes_per_s;
    let clients = |n: Option<u32>| count(n.map(u64::from));
    vec![
        point.position.to_string(),
        number(Some(point.requested)),
        clients(point.clients_requested),
        clients(point.clients_participating),
        number(rate),
        mib_per_s(rate),
        mbit_per_s(rate),
        bytes(point.bytes_read),
        bytes(point.bytes_written),
        bytes(point.wire_bytes_in),
        bytes(point.wire_bytes_out),
    ]
}
