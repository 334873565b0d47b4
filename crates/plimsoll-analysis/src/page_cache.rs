//! How often the server of a load point read its disks instead of its memory: as monitors saw it,
//! and as the formula of [`crate::cache_model`] predicts it from the access pattern.

use plimsoll_model::cost::{CostOf, HostCost};
use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{PointRecord, ResourceUse};
use plimsoll_model::monitored::{MonitoredHost, SourceRole};
use plimsoll_model::page_cache::{DiskReader, PageCacheUse, PredictedMisses};
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::Suite;

use crate::cache_model::{CacheModel, HitsBy};
use crate::host_roles::{HostEvidence, SERVER};

/// Protocols whose servers read files. What others read from disks is no part of what they send.
const FILE_PROTOCOLS: [&str; 3] = ["http", "nfs", "smb"];
/// Hit ratios of the curve below its last steps.
const CURVE_STEPS: u32 = 20;
const CURVE_LAST: [f64; 4] = [0.98, 0.99, 0.999, 1.0];

/// `None` where nothing was sent, or where the disks of a server were not monitored.
pub(crate) fn page_cache_use(
    suite: &Suite,
    record: &PointRecord,
    point: &PointResult,
    disclosure: Option<&Disclosure>,
) -> Option<PageCacheUse> {
    let bytes = point.bytes_read.filter(|bytes| *bytes > 0)? as f64;
    if !FILE_PROTOCOLS.contains(&suite.protocol.as_str()) {
        return None;
    }
    let server = ServerHosts::from_point(record, point, disclosure);
    let (reads_of, read_per_s) = server.disk_reads()?;
    let available_bytes = server.available_bytes();
    let model = record.access_pattern.as_ref().and_then(CacheModel::from_pattern);
    Some(PageCacheUse {
        miss_ratio: read_per_s * point.seconds? / bytes,
        reads_of,
        available_bytes,
        refaults_per_s: server.sum("cgroup", "refaults"),
        major_faults_per_s: server.sum_of_hosts("host.major_faults"),
        predicted: model.map(|model| predicted(&model, available_bytes)),
    })
}

fn predicted(model: &CacheModel, available_bytes: Option<f64>) -> PredictedMisses {
    let steps = (0..CURVE_STEPS).map(|step| f64::from(step) / f64::from(CURVE_STEPS));
    let pair = |hits: f64| {
        let misses = model.cold_miss_ratio() * (1.0 - hits);
        (model.cache_bytes(hits, HitsBy::Bytes), misses)
    };
    PredictedMisses {
        full_bytes: model.full_bytes(),
        miss_ratio: available_bytes.map(|bytes| model.miss_ratio(bytes)),
        hit_ratio: available_bytes.map(|bytes| model.hit_ratio(bytes, HitsBy::Reads)),
        curve: steps.chain(CURVE_LAST).map(pair).collect(),
    }
}

/// The hosts of the servers of a load point, with what the monitors saw there.
struct ServerHosts<'a> {
    hosts: Vec<MonitoredHost>,
    resources: Vec<&'a ResourceUse>,
    costs: Vec<&'a HostCost>,
}

impl<'a> ServerHosts<'a> {
    fn from_point(
        record: &'a PointRecord,
        point: &'a PointResult,
        disclosure: Option<&Disclosure>,
    ) -> Self {
        let mut hosts = HostEvidence::from_record(record, disclosure).hosts();
        hosts.retain(|host| host.role == SourceRole::Server);
        let is_there = |source: &Option<String>| hosts.iter().any(|host| host.source == *source);
        let resources = record.resources.iter().filter(|used| is_there(&used.source)).collect();
        let costs = point.cost.iter().filter(|cost| {
            is_there(&cost.source) && matches!(cost.of, CostOf::ServerHost | CostOf::SharedHost)
        });
        Self { resources, costs: costs.collect(), hosts }
    }

    /// Bytes per second: of the server's control group where it is known, else of its host. What
    /// lies on other disks counts once.
    fn disk_reads(&self) -> Option<(DiskReader, f64)> {
        let is_counted = |disk: &str| {
            let mut counted = self.costs.iter().flat_map(|cost| &cost.disks).peekable();
            counted.peek().is_none() || counted.any(|it| it == disk)
        };
        let by_group = self.resources.iter().filter_map(|used| {
            let (server, disk) = used.key("storage", "read")?.split_once(':')?;
            (server.starts_with(SERVER) && is_counted(disk)).then_some(used.mean)
        });
        let by_host =
            || self.hosts.iter().map(|host| self.disk_reads_of(host)).sum::<Option<f64>>();
        match total(by_group) {
            Some(rate) => Some((DiskReader::ControlGroup, rate)),
            None if self.hosts.is_empty() => None,
            None => Some((DiskReader::Host, by_host()?)),
        }
    }

    /// Monitors leave out disks that did nothing; the kernel's own count shows that.
    fn disk_reads_of(&self, host: &MonitoredHost) -> Option<f64> {
        let cost = self.costs.iter().find(|cost| cost.source == host.source);
        let of_disk = |disk: &String| self.mean(host, &format!("disk.{disk}.read"));
        total(cost.iter().flat_map(|cost| &cost.disks).filter_map(of_disk))
            .or_else(|| self.mean(host, "host.paged_in"))
    }

    fn available_bytes(&self) -> Option<f64> {
        let of_hosts = self.sum_of_hosts("host.memory_available");
        let limit = self.sum("cgroup", "memory_max").filter(|limit| *limit > 0.0);
        let of_group = limit.zip(self.sum("process", "rss")).map(|(limit, rss)| limit - rss);
        of_hosts.into_iter().chain(of_group).reduce(f64::min).map(|bytes| bytes.max(0.0))
    }

    /// Of the servers' rows of a table; `None` without any.
    fn sum(&self, table: &str, column: &str) -> Option<f64> {
        let is_of_server = |used: &&&ResourceUse| {
            used.key(table, column).is_some_and(|key| key.starts_with(SERVER))
        };
        total(self.resources.iter().filter(is_of_server).map(|used| used.mean))
    }

    /// `None` where one of the hosts has no such figure.
    fn sum_of_hosts(&self, name: &str) -> Option<f64> {
        let of_hosts = self.hosts.iter().map(|host| self.mean(host, name));
        of_hosts.sum::<Option<f64>>().filter(|_| !self.hosts.is_empty())
    }

    fn mean(&self, host: &MonitoredHost, name: &str) -> Option<f64> {
        let is_it = |used: &&&ResourceUse| used.source == host.source && used.name == name;
        self.resources.iter().find(is_it).map(|used| used.mean)
    }
}

/// `None` of none.
fn total(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests;
