//! Which resource a plateau is owed to, for servers that tell how busy their service threads are.
//!
//! A resource is named only if, where throughput had stopped growing, it was near its ceiling, its
//! queue had risen, and what each op took of it at lower load predicts the plateau. Whatever lacks
//! a part of that is shown as a figure, without a name. `%util` of a disk that serves several
//! requests at once says little; the prediction from lower load then fails, and it is not named.

use plimsoll_model::disclosure::Disclosure;
use plimsoll_model::result::PointResult;

/// Share of its ceiling from which a resource may be the limit.
const FULL_MIN_RATIO: f64 = 0.9;
/// The same of service threads, whose ceiling is known exactly.
const THREADS_FULL_MIN_RATIO: f64 = 0.95;
/// Below this share a processor or disk is not what the service threads wait for.
const IDLE_MAX_RATIO: f64 = 0.7;
/// Of the server's processors' busy time, the part that must be the server's own.
const OWN_MIN_RATIO: f64 = 0.8;
/// Requests that must wait for a thread, and in a disk's queue, to call it a queue.
const QUEUE_MIN: f64 = 1.0;
const DISK_QUEUE_MIN: f64 = 2.0;
/// The plateau may differ by this share from what the demand at lower load predicts.
const PREDICTION_TOLERANCE_RATIO: f64 = 0.15;
/// Above this share of the busy threads, what they do is wait for storage.
const FDATASYNC_MAX_RATIO: f64 = 0.5;
/// The same of the time in which some thread of the host waited for storage, for reads; a disk that
/// is held back by a limit shows there and nowhere else.
const STORAGE_STALL_MAX_RATIO: f64 = 0.5;
/// Less of it is not worth a word.
const STORAGE_STALL_SHOWN_RATIO: f64 = 0.1;
/// Where the kernel says so.
const STORAGE_STALL: &str = "host.pressure_io_some";

/// Said where it was full at every load.
const UNCONFIRMED: &str = "; it was so at every load, so that what an op takes of it at a lower one \
    could not confirm it";

/// Where throughput had stopped growing, and what was measured at lower loads.
pub(super) struct Plateau<'a> {
    pub at: &'a PointResult,
    /// In rising order of load; `at` is not among them.
    pub below: &'a [&'a PointResult],
    /// The place of `at` in words.
    pub place: String,
}

impl Plateau<'_> {
    /// What limited the server, with the evidence; nothing when it tells no figures.
    pub fn resource(&self, disclosure: Option<&Disclosure>) -> Option<String> {
        let threads = Threads::of(self.at)?;
        let hardware = Hardware::of(self, disclosure);
        let claims = |hardware| {
            [self.processors(hardware), self.disk(hardware), self.threads(&threads, hardware)]
        };
        let named: Vec<String> = hardware.as_ref().into_iter().flat_map(claims).flatten().collect();
        if !named.is_empty() {
            return Some(format!("the limit is {}", named.join("; and ")));
        }
        let hardware = hardware.as_ref();
        Some(format!(
            "which resource is not known; at {} {}, and {}",
            self.place,
            threads.text(),
            hardware.map_or_else(|| "the server's host was not watched".to_owned(), Hardware::text),
        ))
    }

    /// All at work with requests waiting for them, while no hardware was busy.
    fn threads(&self, threads: &Threads, hardware: &Hardware) -> Option<String> {
        let full = threads.busy >= THREADS_FULL_MIN_RATIO * threads.all;
        let queued = threads.queue >= QUEUE_MIN;
        let idle = hardware.processors <= IDLE_MAX_RATIO && hardware.disk_busy() <= IDLE_MAX_RATIO;
        let syncing = mean(self.at, "server.threads_in_fdatasync").unwrap_or_default();
        let stalled = mean(self.at, "host.pressure_io_some").unwrap_or_default();
        let at_work =
            syncing <= FDATASYNC_MAX_RATIO * threads.busy && stalled <= STORAGE_STALL_MAX_RATIO;
        if !(full && queued && idle && at_work) {
            return None;
        }
        let room = |seen: &Threads| seen.busy < FULL_MIN_RATIO * seen.all;
        let lower = self.highest_below(|point| Threads::of(point).as_ref().is_some_and(room));
        let unconfirmed = match lower {
            // Their number is a ceiling that is known exactly.
            None => UNCONFIRMED,
            Some(lower) => {
                let risen = Threads::of(lower).is_some_and(|seen| seen.queue < threads.queue);
                let predicted = self.is_predicted(threads.all, thread_seconds_per_op(lower)?);
                if !(risen && predicted) {
                    return None;
                }
                ""
            }
        };
        Some(format!(
            "the service threads: at {} {}, while {}{unconfirmed}",
            self.place,
            threads.text(),
            hardware.text(),
        ))
    }

    /// The server's processors were full, by its own work, and others waited for them.
    fn processors(&self, hardware: &Hardware) -> Option<String> {
        const OWN: &str = "process.server.cpu";
        let cores = hardware.cores as f64;
        let used = mean(self.at, OWN).filter(|used| *used >= OWN_MIN_RATIO * cores)?;
        let room = |used: f64| used < FULL_MIN_RATIO * cores;
        let lower = self.highest_below(|p| mean(p, OWN).is_some_and(room));
        let unconfirmed = match lower {
            // Their number is a ceiling that is known exactly.
            None => UNCONFIRMED,
            Some(lower) if self.is_predicted(cores, per_op(lower, OWN)?) => "",
            Some(_) => return None,
        };
        let lowest = lower.or_else(|| self.below.first().copied())?;
        let waiting = ["host.pressure_cpu_some", "host.runnable"];
        let waited = waiting.iter().any(|name| self.rose(name, lowest));
        if hardware.processors < FULL_MIN_RATIO || !waited {
            return None;
        }
        Some(format!(
            "the processors: at {} those of the server were {} busy, {used:.2} of {cores} by the \
             server itself, and runnable threads waited for them{unconfirmed}",
            self.place,
            percent(hardware.processors),
        ))
    }

    /// The busiest disk had no time left, and a queue.
    fn disk(&self, hardware: &Hardware) -> Option<String> {
        let (name, busy) = hardware.disk.as_ref()?;
        let [queue, share] = ["queue_mean", "busy"].map(|column| format!("disk.{name}.{column}"));
        let queued = mean(self.at, &queue).filter(|queue| *queue >= DISK_QUEUE_MIN)?;
        let lower = self.highest_below(|p| mean(p, &share).is_some_and(|b| b < FULL_MIN_RATIO))?;
        let full = *busy >= FULL_MIN_RATIO && self.rose(&queue, lower);
        if !(full && self.is_predicted(1.0, per_op(lower, &share)?)) {
            return None;
        }
        Some(format!(
            "the disk {name}: at {} it was {} busy with {queued:.1} requests in its queue",
            self.place,
            percent(*busy),
        ))
    }

    /// The highest of the lower loads at which a resource still had room: what an op took of it
    /// there says where it must end.
    fn highest_below(&self, has_room: impl Fn(&PointResult) -> bool) -> Option<&PointResult> {
        self.below.iter().copied().rfind(|point| has_room(point))
    }

    /// `places` of a resource of which each op takes `demand_s` carry no more than this plateau.
    fn is_predicted(&self, places: f64, demand_s: f64) -> bool {
        let Some(rate) = self.at.achieved_ops_per_s else { return false };
        let predicted = places / demand_s;
        (predicted - rate).abs() <= PREDICTION_TOLERANCE_RATIO * rate
    }

    fn rose(&self, name: &str, lower: &PointResult) -> bool {
        let before = mean(lower, name).unwrap_or_default();
        mean(self.at, name).is_some_and(|at| at > before)
    }
}

/// Seconds of a resource that one op takes: busy places over ops per second.
fn per_op(point: &PointResult, busy: &str) -> Option<f64> {
    let rate = point.achieved_ops_per_s.filter(|rate| *rate > 0.0)?;
    Some(mean(point, busy)? / rate)
}

/// Time of a service thread that one op takes. A server that does not count it took as long as its
/// answers did, where no request waited.
fn thread_seconds_per_op(point: &PointResult) -> Option<f64> {
    let answered = || {
        let waiting = Threads::of(point)?.queue;
        let mean_ns = point.service_ns?.mean?;
        (waiting < QUEUE_MIN).then_some(mean_ns / 1e9)
    };
    per_op(point, "server.threads_busy_mean").or_else(answered)
}

/// The server's service threads.
struct Threads {
    all: f64,
    busy: f64,
    queue: f64,
}

impl Threads {
    fn of(point: &PointResult) -> Option<Self> {
        let either = |counted: &str, seen: &str| mean(point, counted).or_else(|| mean(point, seen));
        Some(Self {
            all: mean(point, "server.threads").filter(|all| *all >= 1.0)?,
            busy: either("server.threads_busy_mean", "server.threads_busy")?,
            queue: either("server.queue_mean", "server.queue")?,
        })
    }

    fn text(&self) -> String {
        format!(
            "{:.1} of {} service threads were busy and {:.1} requests waited for one",
            self.busy.min(self.all),
            self.all,
            self.queue,
        )
    }
}

/// The server's hardware, which is this host's.
struct Hardware {
    cores: usize,
    /// Busy share of the processors the server may use, their mean.
    processors: f64,
    /// The busiest and its share; absent when no disk did anything.
    disk: Option<(String, f64)>,
    /// Share of the time in which some thread waited for storage.
    storage_stall: f64,
}

impl Hardware {
    /// Of a single server on the host that was watched.
    fn of(plateau: &Plateau<'_>, disclosure: Option<&Disclosure>) -> Option<Self> {
        let [target] = disclosure?.targets.as_slice() else { return None };
        if !target.same_host {
            return None;
        }
        let watched = plateau.at.resources.iter();
        let all = watched.filter_map(|r| Some((part(&r.name, "cpu.")?.parse().ok()?, r.mean)));
        let held = |core: &u32| target.cores.is_empty() || target.cores.contains(core);
        let busy: Vec<f64> =
            all.filter(|(core, _): &(u32, f64)| held(core)).map(|(_, busy)| busy).collect();
        if busy.is_empty() {
            return None;
        }
        let disks = plateau.at.resources.iter();
        let disks = disks.filter_map(|r| Some((part(&r.name, "disk.")?.to_owned(), r.mean)));
        Some(Self {
            cores: busy.len(),
            processors: busy.iter().sum::<f64>() / busy.len() as f64,
            disk: disks.max_by(|a, b| a.1.total_cmp(&b.1)),
            storage_stall: mean(plateau.at, STORAGE_STALL).unwrap_or_default(),
        })
    }

    fn disk_busy(&self) -> f64 {
        self.disk.as_ref().map_or(0.0, |(_, busy)| *busy)
    }

    fn text(&self) -> String {
        let disk = match &self.disk {
            Some((name, busy)) => format!("the busiest disk ({name}) {}", percent(*busy)),
            None => "the disks did nothing".to_owned(),
        };
        let waits = match self.storage_stall {
            ..STORAGE_STALL_SHOWN_RATIO => String::new(),
            stall => format!(", with threads waiting for storage {} of the time", percent(stall)),
        };
        format!("the server's processors were {} busy and {disk}{waits}", percent(self.processors))
    }
}

/// Which part of a table the busy share is of: `1` of `cpu.1.busy`.
fn part<'n>(name: &'n str, table: &str) -> Option<&'n str> {
    name.strip_prefix(table)?.strip_suffix(".busy")
}

fn mean(point: &PointResult, name: &str) -> Option<f64> {
    point.resources.iter().find(|resource| resource.name == name).map(|resource| resource.mean)
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

#[cfg(test)]
mod tests;
