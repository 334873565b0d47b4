//! The generator's own health, from what its workers say of themselves.

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{OpTimes, PointRecord, Times, WorkerHealth};
use plimsoll_model::result::GeneratorResult;

use crate::times::quantile_ns;

/// An interval of a worker with its place in the point.
struct Placed<'a> {
    middle_ns: u64,
    health: &'a WorkerHealth,
}

/// A worker's intervals follow each other without a gap from the start of the point.
fn placed(worker: &[WorkerHealth]) -> impl Iterator<Item = Placed<'_>> {
    worker.iter().scan(0u64, |start_ns, health| {
        let middle_ns = *start_ns + health.wall_ns / 2;
        *start_ns += health.wall_ns;
        Some(Placed { middle_ns, health })
    })
}

fn in_window<'a>(
    record: &PointRecord,
    worker: &'a [WorkerHealth],
) -> impl Iterator<Item = &'a WorkerHealth> {
    let window = record.warm_up_ns.0..record.warm_up_ns.0 + record.measured_ns.0;
    placed(worker).filter(move |p| window.contains(&p.middle_ns)).map(|p| p.health)
}

/// Busy share of the busiest worker, mean over the window. `None` when a worker says nothing.
pub(crate) fn busy_ratio_max(record: &PointRecord) -> Option<f64> {
    let busy = record.workers.iter().map(|worker| {
        let mut sum = WorkerHealth::default();
        for health in in_window(record, worker) {
            sum.cpu_ns += health.cpu_ns;
            sum.empty_poll_ns += health.empty_poll_ns;
            sum.wall_ns += health.wall_ns;
        }
        (sum.wall_ns > 0).then(|| sum.busy_ratio())
    });
    busy.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// Largest share of the window in which a worker was ready and another thread had its core.
/// `None` when a worker's kernel does not say.
pub(crate) fn run_delay_ratio_max(record: &PointRecord) -> Option<f64> {
    let delayed = record.workers.iter().map(|worker| {
        let (mut delay_ns, mut wall_ns) = (0, 0);
        for health in in_window(record, worker) {
            delay_ns += health.run_delay_ns?;
            wall_ns += health.wall_ns;
        }
        (wall_ns > 0).then(|| delay_ns as f64 / wall_ns as f64)
    });
    delayed.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// What the worker that asked most asked of its core: its work, and the time it was ready and
/// another thread had the core. `None` when a worker does not say.
pub(crate) fn asked_ratio_max(record: &PointRecord) -> Option<f64> {
    let asked = record.workers.iter().map(|worker| {
        let (mut asked, mut wall_ns) = (0.0, 0);
        for health in in_window(record, worker) {
            asked += health.busy_ratio() * health.wall_ns as f64 + health.run_delay_ns? as f64;
            wall_ns += health.wall_ns;
        }
        (wall_ns > 0).then(|| asked / wall_ns as f64)
    });
    asked.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// Largest share of the window that a worker lost in gaps between empty polls, and the longest.
pub(crate) fn gaps(record: &PointRecord) -> Option<(f64, u64)> {
    let lost = record.workers.iter().filter_map(|worker| {
        let healths = || in_window(record, worker);
        let wall_ns: u64 = healths().map(|health| health.wall_ns).sum();
        let gap_ns: u64 = healths().map(|health| health.gap_ns).sum();
        let longest = healths().map(|health| health.gap_ns_max).max()?;
        (wall_ns > 0).then(|| (gap_ns as f64 / wall_ns as f64, longest))
    });
    lost.max_by(|a, b| a.0.total_cmp(&b.0))
}

/// Empty polls of all workers as a share of their time, and their work in nanoseconds.
fn polls_and_work(record: &PointRecord) -> Option<(f64, f64)> {
    let healths = record.workers.iter().flat_map(|worker| in_window(record, worker));
    let (mut polls, mut work, mut wall) = (0.0, 0.0, 0.0);
    for health in healths {
        polls += health.empty_poll_ns as f64;
        work += health.busy_ratio() * health.wall_ns as f64;
        wall += health.wall_ns as f64;
    }
    (wall > 0.0).then(|| (polls / wall, work))
}

/// Busy share of the busiest worker in part of the point, `from..to` nanoseconds from its start.
pub(crate) fn busy_ratio_between(record: &PointRecord, from_ns: u64, to_ns: u64) -> Option<f64> {
    record
        .workers
        .iter()
        .flat_map(|worker| placed(worker))
        .filter(|p| (from_ns..to_ns).contains(&p.middle_ns))
        .map(|p| p.health.busy_ratio())
        .reduce(f64::max)
}

/// The health section of a point.
pub(crate) fn generator_result(record: &PointRecord) -> GeneratorResult {
    let done = record.totals.done_in_window;
    let measured_ns = record.measured_ns.0;
    let (gaps, spent) = (gaps(record), polls_and_work(record));
    GeneratorResult {
        cpu_busy_ratio_max: busy_ratio_max(record),
        cpu_ns_per_op: (done > 0).then(|| record.process_cpu_ns as f64 / done as f64),
        monitor_cpu_ratio: (measured_ns > 0)
            .then(|| record.monitor_cpu_ns as f64 / measured_ns as f64),
        run_delay_ratio_max: run_delay_ratio_max(record),
        asked_ratio_max: asked_ratio_max(record),
        gap_ratio_max: gaps.map(|(ratio, _)| ratio),
        gap_ns_max: gaps.map(|(_, longest)| longest),
        empty_poll_ratio: spent.map(|(polls, _)| polls),
        work_ns_per_op: spent.filter(|_| done > 0).map(|(_, work)| work / done as f64),
        pacing: Some(record.pacing.as_str().to_owned()),
        ..GeneratorResult::default()
    }
}

/// Response p50, and how far the generator's own delays may have moved it. `None` without ops or
/// without their arrivals.
pub(crate) fn generator_part_of_p50(total: &OpTimes) -> Option<(f64, f64)> {
    if !has_bounds(total) {
        return None;
    }
    let [value, low] = [&total.response, &total.response_low].map(|t| quantile_ns(t, 5_000) as f64);
    Some((value, (value - low).max(0.0)))
}

/// Is it known of each op what the generator's own delays were at most?
fn has_bounds(total: &OpTimes) -> bool {
    !total.response.is_empty() && total.response_low.len() == total.response.len()
}

/// What the clients of a closed load spent their time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientTime {
    clients: u32,
    /// All of it; several ops in flight of one client add up.
    spent_ns: f64,
    /// Of it, from due to done.
    at_work_ns: f64,
    /// Of that, the generator's own delays: of each op its own, not what it may have met, so that
    /// each delay counts once.
    pub(crate) own_ns: f64,
}

impl ClientTime {
    /// `None` of an open load, without ops or without their arrivals.
    pub(crate) fn of(record: &PointRecord, total: &OpTimes) -> Option<Self> {
        let Load::Closed { clients, .. } = record.load else { return None };
        if !has_bounds(total) {
            return None;
        }
        let all_ns = |times: &Times| times.mean() * times.len() as f64;
        let at_work_ns = all_ns(&total.response);
        let own_ns = (at_work_ns - all_ns(&total.response_low)).max(0.0);
        let own_ns = own_ns.min(all_ns(&total.receive_lag) + all_ns(&total.lateness));
        let present_ns = f64::from(clients) * record.measured_ns.0 as f64;
        let spent_ns = present_ns.max(at_work_ns + record.totals.think_ns_total as f64);
        Some(Self { clients, spent_ns, at_work_ns, own_ns })
    }

    /// From due to done without the generator's own delays.
    pub(crate) fn answering_ns(&self) -> f64 {
        self.at_work_ns - self.own_ns
    }

    /// What is left of the server's queue without these delays. Where clients think, ops that take
    /// longer keep more of them at work at a time, and a queue is at worst in proportion to their
    /// number. A client alone meets nobody.
    pub(crate) fn queue_ratio(&self) -> f64 {
        if self.clients <= 1 {
            return 1.0;
        }
        let share = self.answering_ns() / (self.spent_ns - self.own_ns).max(f64::MIN_POSITIVE);
        (share * self.spent_ns / self.at_work_ns.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }

    /// By what factor the same work takes the clients longer than without these delays, at most.
    pub(crate) fn longer_ratio(&self) -> f64 {
        let thinking_ns = self.spent_ns - self.at_work_ns;
        let least_ns = thinking_ns + self.answering_ns() * self.queue_ratio();
        self.spent_ns / least_ns.max(self.spent_ns * f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::PointBuilder;

    #[test]
    fn only_the_window_counts_towards_the_busiest_worker() {
        let mut point = PointBuilder::open(1_000.0).build();
        let second = |cpu_ns| WorkerHealth { cpu_ns, wall_ns: 1_000_000_000, ..Default::default() };
        let warm_up = second(1_000_000_000);
        let whole_seconds = |ns: plimsoll_model::units::Nanos| (ns.0 / 1_000_000_000) as usize;
        let before = whole_seconds(point.record.warm_up_ns);
        let seconds = whole_seconds(point.record.measured_ns);
        let worker = |cpu_ns| {
            let mut worker = vec![warm_up; before];
            worker.extend((0..seconds).map(|_| second(cpu_ns)));
            worker.push(warm_up);
            worker
        };
        point.record.workers = vec![worker(300_000_000), worker(400_000_000)];
        assert_eq!(busy_ratio_max(&point.record), Some(0.4));
        assert_eq!(busy_ratio_between(&point.record, 0, 1_000_000_000), Some(1.0));
    }

    #[test]
    fn a_worker_without_health_leaves_the_figure_open() {
        let mut point = PointBuilder::open(1_000.0).build();
        point.record.workers.push(Vec::new());
        assert_eq!(busy_ratio_max(&point.record), None);
    }

    #[test]
    fn what_a_worker_asks_of_its_core_is_work_and_waiting_and_no_empty_polls() {
        let (second, tenth) = (1_000_000_000, 100_000_000);
        let mut health = WorkerHealth { wall_ns: second, ..WorkerHealth::default() };
        // Half of the time somebody else had the core, seen as gaps; a tenth was work.
        (health.cpu_ns, health.empty_poll_ns, health.gap_ns) = (5 * tenth, 4 * tenth, 5 * tenth);
        let mut point = PointBuilder::open(1_000.0).build();
        let mut set = |health: WorkerHealth| {
            point.record.workers.iter_mut().flatten().for_each(|h| *h = health);
            point.record.clone()
        };
        assert_eq!(asked_ratio_max(&set(health)), None, "nobody said how long it waited");
        health.run_delay_ns = Some(5 * tenth);
        let record = set(health);
        assert!((busy_ratio_max(&record).unwrap() - 0.1).abs() < 1e-9);
        assert!((asked_ratio_max(&record).unwrap() - 0.6).abs() < 1e-9);
        assert_eq!(gaps(&record), Some((0.5, 0)));
    }
}
