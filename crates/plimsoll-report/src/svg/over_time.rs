//! What a server used within a load point, to be drawn beside throughput.

use plimsoll_model::event::ResourceUse;
use plimsoll_model::result::PointResult;
use plimsoll_model::units::BytesPerSec;

/// Samples that make a line.
const SAMPLES_MIN: usize = 2;
/// A disk or link that was used less than this share, or rate, is not worth a panel.
const DISK_MIN_RATIO: f64 = 0.02;
const NETWORK_MIN_BYTES_PER_S: f64 = 1e5;

pub(super) struct Used {
    pub(super) title: String,
    /// Second of the window and value.
    pub(super) values: Vec<(f64, f64)>,
    top_min: f64,
}

impl Used {
    pub(super) fn largest(&self) -> f64 {
        self.values.iter().map(|(_, value)| *value).fold(self.top_min, f64::max)
    }
}

/// The server's processors, the busiest disk and the busiest network, where they were watched.
pub(super) fn used_over_time(point: &PointResult) -> Vec<Used> {
    let drawn = || point.resources.iter().filter(|used| used.over_time.len() >= SAMPLES_MIN);
    let of = |used: &ResourceUse| match &used.source {
        Some(source) => format!(" of {source}"),
        None => String::new(),
    };
    let busiest = |start: &str, end: &[&str], least: f64| {
        let fits = |used: &&ResourceUse| {
            let rest = used.name.strip_prefix(start);
            rest.is_some_and(|rest| end.iter().any(|end| rest.ends_with(end))) && used.mean >= least
        };
        drawn().filter(fits).max_by(|a, b| a.mean.total_cmp(&b.mean))
    };
    let key = |used: &ResourceUse| used.name.split('.').nth(1).unwrap_or_default().to_owned();
    let mut found = Vec::new();
    if let Some(used) = busiest("process.server", &[".cpu"], 0.0) {
        let title = format!("processors of the server{}, cores", of(used));
        found.push(Used { title, values: used.over_time.clone(), top_min: 1.0 });
    }
    if let Some(used) = busiest("disk.", &[".busy"], DISK_MIN_RATIO) {
        let title = format!("disk {}{}, share of time busy", key(used), of(used));
        found.push(Used { title, values: used.over_time.clone(), top_min: 1.0 });
    }
    if let Some(used) = busiest("network.", &[".sent", ".received"], NETWORK_MIN_BYTES_PER_S) {
        let way = if used.name.ends_with(".sent") { "sent" } else { "received" };
        let title = format!("network {}{}, MiB/s {way}", key(used), of(used));
        let mib = |&(at, value): &(f64, f64)| (at, BytesPerSec(value).mib_per_s());
        found.push(Used { title, values: used.over_time.iter().map(mib).collect(), top_min: 0.0 });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_processors_and_the_busiest_disk_and_network_are_drawn() {
        let used = |name: &str, mean: f64| ResourceUse {
            name: name.to_owned(),
            mean,
            over_time: vec![(0.5, mean), (1.5, mean)],
            ..ResourceUse::default()
        };
        let resources = vec![
            used("process.server.cpu", 0.9),
            used("process.generator.cpu", 1.0),
            used("disk.vda.busy", 0.01),
            used("disk.vdb.busy", 0.5),
            used("network.lo.sent", 2e6),
            used("network.lo.received", 1e6),
            ResourceUse { over_time: Vec::new(), ..used("network.eth0.sent", 9e9) },
        ];
        let point = PointResult { resources, ..PointResult::default() };
        let found = used_over_time(&point);
        let titles: Vec<&str> = found.iter().map(|used| used.title.as_str()).collect();
        let expected = [
            "processors of the server, cores",
            "disk vdb, share of time busy",
            "network lo, MiB/s sent",
        ];
        assert_eq!(titles, expected);
        assert!(used_over_time(&PointResult::default()).is_empty());
    }
}
