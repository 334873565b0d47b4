//! What suites of file throughput count: bytes moved, in the units people compare.

use plimsoll_model::result::{PointResult, RunResult};
use plimsoll_model::suite::Metric;
use plimsoll_model::units::BytesPerSec;

use crate::table::{Rows, Table};
use crate::text::{ABSENT, bytes, count, number, three_digits};

/// What the suite's headline counts. A curve from elsewhere counts ops.
pub(crate) fn metric(run: &RunResult) -> Metric {
    run.suite.as_ref().map(|suite| suite.metric).unwrap_or_default()
}

/// What an op is called, per second.
pub(crate) fn ops_unit(run: &RunResult) -> &'static str {
    metric(run).ops_unit()
}

/// The throughput that charts draw, in [`rate_unit`].
pub(crate) fn rate(run: &RunResult) -> fn(&PointResult) -> Option<f64> {
    match metric(run) {
        Metric::Bytes => |p| Some(BytesPerSec(p.achieved_bytes_per_s?).mib_per_s()),
        Metric::Ops | Metric::Logons => |p| p.achieved_ops_per_s,
    }
}

pub(crate) fn rate_unit(run: &RunResult) -> &'static str {
    if metric(run) == Metric::Bytes { "MiB/s" } else { ops_unit(run) }
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
    let counts_bytes = metric(run) == Metric::Bytes;
    let points = if counts_bytes { &run.points[..] } else { &[] };
    let clients = |n: Option<u32>| count(n.map(u64::from));
    Rows::of_points(caption, points)
        .figures("point", "", |p| p.position)
        .figures(name, unit, |p| number(Some(p.requested)))
        // Said in the column before where clients are the axis.
        .figures("clients", "requested", |p| {
            clients(p.clients_requested.filter(|_| !clients_are_the_axis))
        })
        .figures("clients", "took part", |p| clients(p.clients_participating))
        .figures("throughput", Metric::Bytes.unit(), |p| number(p.achieved_bytes_per_s))
        .figures("throughput", "MiB/s", |p| mib_per_s(p.achieved_bytes_per_s))
        .figures("throughput", "Mbit/s", |p| mbit_per_s(p.achieved_bytes_per_s))
        .figures("read", "", |p| bytes(p.bytes_read))
        .figures("written", "", |p| bytes(p.bytes_written))
        .figures("wire in", "", |p| bytes(p.wire_bytes_in))
        .figures("wire out", "", |p| bytes(p.wire_bytes_out))
        .table()
        .without_empty_columns()
}
