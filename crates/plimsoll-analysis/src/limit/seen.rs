//! What the monitors saw of the server and its host at one load point, by the resources' names.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::event::{CoreUser, ResourceUse};
use plimsoll_model::limit::{Evidence, OtherPrograms, ServerCores};
use plimsoll_model::result::PointResult;

use crate::bursts::SLOW_RATE;

/// Other programs on the server's cores are worth a word from this share on.
const TAKEN_MIN_RATIO: f64 = 0.3;
/// The foremost of them is named where it used this part of what they had, at least.
const FOREMOST_MIN_RATIO: f64 = 0.5;
/// The name under which a run watches its (first) server.
const SERVER: &str = "server";

/// A host that was watched: `None` is the generator's.
type Source<'a> = Option<&'a str>;

/// Tables of what servers and exporters of GPUs tell, whose source is not the server's host.
const NO_HOST: [&str; 2] = ["model.", "gpu."];

/// One load point as the monitors of the server's host saw it.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) point: &'a PointResult,
    /// Whose resources count; `None` where only the server itself told something.
    source: Option<Source<'a>>,
    /// Cores the server is held to, as far as the run placed it.
    placed: &'a [u32],
}

impl<'a> Seen<'a> {
    /// `None` where nothing was seen of the server and its host. Resources of the generator's host
    /// are the server's where it runs there.
    pub(super) fn of(point: &'a PointResult, disclosure: Option<&'a Disclosure>) -> Option<Self> {
        let target = disclosure.and_then(|disclosure| match disclosure.targets.as_slice() {
            [target] => Some(target),
            _ => None,
        });
        let placed = target.map(|target| target.cores.as_slice()).unwrap_or_default();
        let is_process = |use_: &&ResourceUse| use_.name.starts_with("process.server.");
        let is_of_host =
            |use_: &&ResourceUse| !NO_HOST.iter().any(|table| use_.name.starts_with(table));
        let resources = || point.resources.iter();
        let source = match resources().find(is_process) {
            Some(found) => Some(found.source.as_deref()),
            None => {
                match resources().filter(is_of_host).find_map(|found| found.source.as_deref()) {
                    Some(remote) => Some(Some(remote)),
                    None if target.is_some_and(|target| target.same_host) => Some(None),
                    None if resources().all(|found| is_of_host(&found)) => return None,
                    None => None,
                }
            }
        };
        Some(Self { point, source, placed })
    }

    /// Mean of a resource over the window.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.find(name).map(|found| found.mean)
    }

    fn find(&self, name: &str) -> Option<&'a ResourceUse> {
        self.all().find(|found| found.name == name)
    }

    fn all(&self) -> impl Iterator<Item = &'a ResourceUse> + use<'a> {
        let source = self.source;
        let is_there = move |found: &&ResourceUse| Some(found.source.as_deref()) == source;
        self.point.resources.iter().filter(is_there)
    }

    /// Something is known of the host, not only what the server tells.
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

    /// The things of a table of which the monitors saw this column: `vda` of `disk.vda.busy`.
    pub(super) fn keys(&self, table: &str, column: &str) -> Vec<&'a str> {
        let key = |found: &'a ResourceUse| {
            let rest = found.name.strip_prefix(table)?.strip_prefix('.')?;
            rest.strip_suffix(column)?.strip_suffix('.')
        };
        self.all().filter_map(key).collect()
    }

    /// Cores that the server may use.
    pub(super) fn cores(&self) -> Option<f64> {
        let of_host = || {
            let all = self.own_cores().len();
            (all > 0).then_some(all as f64)
        };
        self.process("cores_allowed").or_else(of_host)
    }

    /// How many of these are busy, with whatever runs there.
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
        let seen = self.process("core").map(|core| core as u32);
        let number = match self.placed {
            [core] => seen.or(Some(*core)),
            _ => seen,
        };
        ServerCores { count, number: number.filter(|_| count <= 1.0) }
    }

    /// Throughput changes a lot within a second.
    pub(super) fn swings(&self) -> bool {
        self.point.resources.iter().any(|found| found.name == SLOW_RATE)
    }

    /// Ops under way at the server, by Little's law.
    pub(super) fn in_flight(&self) -> Option<f64> {
        Some(self.point.achieved_ops_per_s? * self.point.service_ns?.mean? / 1e9)
    }

    /// Other programs on the server's cores, where they had a considerable share of them.
    pub(super) fn taken_by_others(&self) -> Option<OtherPrograms> {
        self.others().filter(|others| others.cores_ratio >= TAKEN_MIN_RATIO)
    }

    /// What was done on the server's cores that was not the server's work.
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
        all.filter(|core| self.placed.is_empty() || self.placed.contains(core)).collect()
    }
}

/// A load point beside the lowest of its ladder.
pub(super) struct Scene<'a> {
    pub(super) now: Seen<'a>,
    /// The most requests that a server of language models had in its batch, at any load with a queue.
    pub(super) most_running: Option<f64>,
    /// `None` where there is no lower load.
    pub(super) low: Option<Seen<'a>>,
}

impl Scene<'_> {
    /// One figure with its place at low load.
    pub(super) fn evidence(&self, name: &str, ceiling: Option<f64>) -> Option<Evidence> {
        let found = self.now.find(name)?;
        Some(Evidence {
            name: name.to_owned(),
            value: found.mean,
            unit: found.unit.clone(),
            ceiling,
            low_load_value: self.low.and_then(|low| low.get(name)),
        })
    }

    /// It is more than at the lowest load, clearly; with no lower load, it is there.
    pub(super) fn rose(&self, value: impl Fn(&Seen<'_>) -> Option<f64>, least: f64) -> bool {
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

/// What rose by less may be scatter.
const ROSE_MIN_RATIO: f64 = 1.2;
