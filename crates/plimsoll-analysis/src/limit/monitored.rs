//! Resources of a monitored host at one load point, by name.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_model::limit::{Evidence, OtherPrograms, ServerCores};
use plimsoll_model::monitored::{MonitoredHost, SourceRole};
use plimsoll_model::result::PointResult;

use crate::host_roles::{SERVER, is_of_host};
use crate::point::SLOW_RATE;

/// Other programs on the server's cores are reported from this share on.
const TAKEN_MIN_RATIO: f64 = 0.3;
/// The largest of them is named if it used at least this part of their total.
const FOREMOST_MIN_RATIO: f64 = 0.5;

/// A monitored host: `None` is the generator's.
type Source<'a> = Option<&'a str>;

/// Resources of one host at one load point.
#[derive(Clone, Copy)]
pub(super) struct MonitoredPoint<'a> {
    pub(super) point: &'a PointResult,
    /// Whose resources count; `None` where only the server itself reported something.
    source: Option<Source<'a>>,
    /// Cores to which the server is pinned, as far as the run placed it.
    pinned_cores: &'a [u32],
}

impl<'a> MonitoredPoint<'a> {
    /// A host whose source, if it has one, is `source`.
    pub(super) fn of_host(
        point: &'a PointResult,
        source: Source<'a>,
        pinned_cores: &'a [u32],
    ) -> Self {
        Self { point, source: Some(source), pinned_cores }
    }

    /// What only the server itself reported; `None` if it reported nothing.
    fn of_server_alone(point: &'a PointResult) -> Option<Self> {
        let reports = point.resources.iter().any(|used| !is_of_host(used));
        reports.then_some(Self { point, source: None, pinned_cores: &[] })
    }

    /// Mean of a resource over the window.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.find(name).map(|resource| resource.mean)
    }

    fn find(&self, name: &str) -> Option<&'a ResourceUse> {
        self.all().find(|resource| resource.name == name)
    }

    fn all(&self) -> impl Iterator<Item = &'a ResourceUse> + use<'a> {
        let source = self.source;
        let is_there = move |resource: &&ResourceUse| Some(resource.source.as_deref()) == source;
        self.point.resources.iter().filter(is_there)
    }

    /// Resources of the host are known, not only the server's own reports.
    pub(super) const fn watches_host(&self) -> bool {
        self.source.is_some()
    }

    pub(super) fn process(&self, column: &str) -> Option<f64> {
        self.get(&format!("process.{SERVER}.{column}"))
    }

    pub(super) fn group(&self, column: &str) -> Option<f64> {
        self.get(&format!("cgroup.{SERVER}.{column}"))
    }

    pub(super) fn sockets(&self, column: &str) -> Option<f64> {
        self.get(&format!("socket.{SERVER}.{column}"))
    }

    /// The keys of a table that have this column: `vda` of `disk.vda.busy`.
    pub(super) fn keys(&self, table: &str, column: &str) -> Vec<&'a str> {
        self.all().filter_map(|resource| resource.key(table, column)).collect()
    }

    /// Cores that the server may use.
    pub(super) fn cores(&self) -> Option<f64> {
        let of_host = || {
            let all = self.own_cores().len();
            (all > 0).then_some(all as f64)
        };
        self.process("cores_allowed").or_else(of_host)
    }

    /// How many of these are busy, with any program.
    pub(super) fn cores_busy(&self) -> Option<f64> {
        let of_host = || {
            let cores = self.own_cores();
            let busy = cores.iter().filter_map(|core| self.get(&format!("cpu.{core}.busy")));
            (!cores.is_empty()).then(|| busy.sum())
        };
        self.process("cores_busy").or_else(of_host)
    }

    /// These `count` cores, with the number of a single one.
    pub(super) fn named_cores(&self, count: f64) -> ServerCores {
        let observed = self.process("core").map(|core| core as u32);
        let number = match self.pinned_cores {
            [core] => observed.or(Some(*core)),
            _ => observed,
        };
        let of_host = self.pinned_cores.is_empty() && self.process("cores_allowed").is_none();
        ServerCores { count, number: number.filter(|_| count <= 1.0), of_host }
    }

    /// Throughput changes a lot within a second.
    pub(super) fn swings(&self) -> bool {
        self.point.resources.iter().any(|resource| resource.name == SLOW_RATE)
    }

    /// Ops under way at the server, by Little's law.
    pub(super) fn in_flight(&self) -> Option<f64> {
        Some(self.point.achieved_ops_per_s? * self.point.service_ns?.mean? / 1e9)
    }

    /// Other programs on the server's cores, where they had a considerable share of them.
    pub(super) fn taken_by_others(&self) -> Option<OtherPrograms> {
        self.others().filter(|others| others.cores_ratio >= TAKEN_MIN_RATIO)
    }

    /// Work on the server's cores that was not the server's.
    pub(super) fn others(&self) -> Option<OtherPrograms> {
        let used = self.cores_busy()? - self.process("cpu")?;
        let cores_ratio = used / self.cores()?;
        (cores_ratio > 0.0).then(|| OtherPrograms { cores_ratio, foremost: self.foremost(used) })
    }

    /// The program that explains `used` cores. The list is of this host.
    fn foremost(&self, used: f64) -> Option<CoreUser> {
        let window_ns = self.point.seconds? * 1e9;
        let users = self.point.server_core_users.iter().filter(|_| self.source == Some(None));
        let most = users.max_by_key(|user| user.cpu_ns)?;
        (most.cpu_ns as f64 >= FOREMOST_MIN_RATIO * used * window_ns).then(|| most.clone())
    }

    fn own_cores(&self) -> Vec<u32> {
        let all = self.keys("cpu", "busy").into_iter().filter_map(|key| key.parse().ok());
        all.filter(|core| self.pinned_cores.is_empty() || self.pinned_cores.contains(core))
            .collect()
    }
}

/// One host at a load point and at the lowest of its ladder.
pub(super) struct Scene<'a> {
    /// Which host; `None` where only the server itself reported something.
    pub(super) host: Option<&'a MonitoredHost>,
    pub(super) now: MonitoredPoint<'a>,
    /// The most requests that a server of language models had in its batch, at any load with a
    /// queue.
    pub(super) most_running: Option<f64>,
    /// `None` where there is no lower load.
    pub(super) low: Option<MonitoredPoint<'a>>,
}

/// Hosts that may limit a load point, the most likely first.
pub(super) const LIMITING_ROLES: [SourceRole; 3] =
    [SourceRole::Server, SourceRole::Database, SourceRole::Network];

impl<'a> Scene<'a> {
    /// The scenes of `hosts` that may limit the point: the server's, the database's, the network's.
    pub(super) fn all(
        (point, lowest): (&'a PointResult, Option<&'a PointResult>),
        most_running: Option<f64>,
        hosts: &'a [MonitoredHost],
        disclosure: Option<&'a Disclosure>,
    ) -> Vec<Self> {
        let pinned_cores = match disclosure.map(|it| it.targets.as_slice()) {
            Some([target]) => target.cores.as_slice(),
            _ => &[],
        };
        let of_role = |role: SourceRole| hosts.iter().filter(move |host| host.role == role);
        let of_host = |host: &'a MonitoredHost| {
            let cores = if host.role == SourceRole::Server { pinned_cores } else { &[] };
            let at = |point| MonitoredPoint::of_host(point, host.source.as_deref(), cores);
            Self { host: Some(host), now: at(point), most_running, low: lowest.map(at) }
        };
        let scenes: Vec<Self> = LIMITING_ROLES.into_iter().flat_map(of_role).map(of_host).collect();
        if scenes.iter().any(Self::is_of_server) {
            return scenes;
        }
        let alone = MonitoredPoint::of_server_alone(point).map(|now| {
            let low = lowest.and_then(MonitoredPoint::of_server_alone);
            Self { host: None, now, most_running, low }
        });
        alone.into_iter().chain(scenes).collect()
    }

    /// A host of the server, or what the server itself reported.
    pub(super) fn is_of_server(&self) -> bool {
        self.host.is_none_or(|host| host.role == SourceRole::Server)
    }
}

impl Scene<'_> {
    /// A figure with its value at low load.
    pub(super) fn evidence(&self, name: &str, ceiling: Option<f64>) -> Option<Evidence> {
        let resource = self.now.find(name)?;
        Some(Evidence {
            name: name.to_owned(),
            value: resource.mean,
            unit: resource.unit.clone(),
            ceiling,
            low_load_value: self.low.and_then(|low| low.get(name)),
        })
    }

    /// It is clearly more than at the lowest load; without a lower load, it is present.
    pub(super) fn rose(
        &self,
        value: impl Fn(&MonitoredPoint<'_>) -> Option<f64>,
        least: f64,
    ) -> bool {
        let now = value(&self.now).unwrap_or_default();
        let low = self.low.as_ref().map(|low| value(low).unwrap_or_default());
        now >= least && low.is_none_or(|low| now >= low * ROSE_MIN_RATIO)
    }

    /// How much longer a service takes than at the lowest load.
    pub(super) fn slower(&self) -> Option<f64> {
        let mean = |point: &PointResult| point.service_ns?.mean;
        Some(mean(self.now.point)? / mean(self.low?.point)?)
    }
}

/// A rise by less may be scatter.
const ROSE_MIN_RATIO: f64 = 1.2;
