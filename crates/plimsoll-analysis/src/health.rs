//! The generator's own health, from the reports of its workers; of many agents, one by one.

use plimsoll_model::assignment::Load;
use plimsoll_model::event::{AgentPoint, OpTimes, PointRecord, Times, WorkerHealth};
use plimsoll_model::result::{AgentResult, GeneratorResult};

use crate::times::quantile_ns;

/// An interval of a worker with its time in the point.
struct TimedHealth<'a> {
    middle_ns: u64,
    health: &'a WorkerHealth,
}

/// A worker's intervals are contiguous from the start of the point.
fn timed_intervals(worker: &[WorkerHealth]) -> impl Iterator<Item = TimedHealth<'_>> {
    worker.iter().scan(0u64, |start_ns, health| {
        let middle_ns = *start_ns + health.wall_ns / 2;
        *start_ns += health.wall_ns;
        Some(TimedHealth { middle_ns, health })
    })
}

fn in_window<'a>(
    record: &PointRecord,
    worker: &'a [WorkerHealth],
) -> impl Iterator<Item = &'a WorkerHealth> {
    let window = record.warm_up_ns.0..record.warm_up_ns.0 + record.measured_ns.0;
    timed_intervals(worker).filter(move |p| window.contains(&p.middle_ns)).map(|p| p.health)
}

/// Busy share of the busiest worker, mean over the window. `None` when a worker reports none.
pub(crate) fn busy_ratio_max(record: &PointRecord) -> Option<f64> {
    let busy = record.workers.iter().map(|worker| {
        let mut sum = WorkerHealth::default();
        let mut delay_ns = 0;
        for health in in_window(record, worker) {
            sum.cpu_ns += health.cpu_ns;
            sum.empty_poll_ns += health.empty_poll_ns;
            sum.wall_ns += health.wall_ns;
            sum.sleep_ns += health.sleep_ns;
            sum.gap_ns += health.gap_ns;
            delay_ns += health.run_delay_ns.unwrap_or_default();
        }
        (sum.wall_ns > 0).then(|| work_ratio(&sum, delay_ns))
    });
    busy.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// If other threads use this share of a core, it shows in the length of polls.
const SHARED_MIN_RATIO: f64 = 0.1;

/// Share of a worker's time in which it worked. Polls are timed by the clock: on a core that other
/// threads use too, they include time slices of those, and take more CPU time than they had. The
/// work is then the rest of the clock time.
fn work_ratio(sum: &WorkerHealth, delay_ns: u64) -> f64 {
    let wall_ns = sum.wall_ns as f64;
    if (delay_ns as f64) < SHARED_MIN_RATIO * wall_ns {
        return sum.busy_ratio();
    }
    let idle_ns = sum.sleep_ns.saturating_add(sum.empty_poll_ns).saturating_add(sum.gap_ns);
    let left_ns = sum.cpu_ns.min(sum.wall_ns.saturating_sub(idle_ns));
    sum.busy_ratio().max(left_ns as f64 / wall_ns)
}

/// Largest share of the window in which a worker was ready and another thread had its core. `None`
/// when a worker's kernel does not report it.
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

/// The largest demand of a worker for its core: its work, and the time it was ready and another
/// thread had the core. `None` when a worker does not report it.
pub(crate) fn cpu_demand_ratio_max(record: &PointRecord) -> Option<f64> {
    let demands = record.workers.iter().map(|worker| {
        let (mut demand_ns, mut wall_ns) = (0.0, 0);
        for health in in_window(record, worker) {
            demand_ns += health.busy_ratio() * health.wall_ns as f64 + health.run_delay_ns? as f64;
            wall_ns += health.wall_ns;
        }
        (wall_ns > 0).then(|| demand_ns / wall_ns as f64)
    });
    demands.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// Largest share of the window that a worker lost in pauses between empty polls, and the longest.
pub(crate) fn poll_pauses(record: &PointRecord) -> Option<(f64, u64)> {
    let lost = record.workers.iter().filter_map(|worker| {
        let healths = || in_window(record, worker);
        let wall_ns: u64 = healths().map(|health| health.wall_ns).sum();
        let pause_ns: u64 = healths().map(|health| health.gap_ns).sum();
        let longest = healths().map(|health| health.gap_ns_max).max()?;
        (wall_ns > 0).then(|| (pause_ns as f64 / wall_ns as f64, longest))
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
        .flat_map(|worker| timed_intervals(worker))
        .filter(|p| (from_ns..to_ns).contains(&p.middle_ns))
        .map(|p| p.health.busy_ratio())
        .reduce(f64::max)
}

/// The health section of a point.
pub(crate) fn generator_result(record: &PointRecord) -> GeneratorResult {
    let done = record.totals.done_in_window;
    let measured_ns = record.measured_ns.0;
    let (pauses, spent) = (poll_pauses(record), polls_and_work(record));
    GeneratorResult {
        cpu_busy_ratio_max: busy_ratio_max(record),
        cpu_ns_per_op: (done > 0).then(|| record.process_cpu_ns as f64 / done as f64),
        monitor_cpu_ratio: (measured_ns > 0)
            .then(|| record.monitor_cpu_ns as f64 / measured_ns as f64),
        run_delay_ratio_max: run_delay_ratio_max(record),
        asked_ratio_max: cpu_demand_ratio_max(record),
        gap_ratio_max: pauses.map(|(ratio, _)| ratio),
        gap_ns_max: pauses.map(|(_, longest)| longest),
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

/// Does each op have an upper bound of the generator's own delays?
fn has_bounds(total: &OpTimes) -> bool {
    !total.response.is_empty() && total.response_low.len() == total.response.len()
}

/// How the clients of a closed load spent their time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientTime {
    clients: u32,
    /// All of it; several ops in flight of one client add up.
    spent_ns: f64,
    /// Of it, from due to done.
    at_work_ns: f64,
    /// The generator's own delays in that. Each op counts its own, not those it may have met, so
    /// that each delay counts once.
    pub(crate) own_ns: f64,
}

impl ClientTime {
    /// `None` of an open load, without ops or without their arrivals.
    pub(crate) fn from_record(record: &PointRecord, total: &OpTimes) -> Option<Self> {
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

    /// The part of the server's queue that is left without these delays. Where clients think, ops
    /// that take longer keep more of them at work at a time, and a queue is at worst proportional
    /// to their number. A single client meets no queue.
    pub(crate) fn queue_ratio(&self) -> f64 {
        if self.clients <= 1 {
            return 1.0;
        }
        let share = self.answering_ns() / (self.spent_ns - self.own_ns).max(f64::MIN_POSITIVE);
        (share * self.spent_ns / self.at_work_ns.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }

    /// By what factor the clients take longer for the same work than without these delays, at most.
    pub(crate) fn longer_ratio(&self) -> f64 {
        let thinking_ns = self.spent_ns - self.at_work_ns;
        let least_ns = thinking_ns + self.answering_ns() * self.queue_ratio();
        self.spent_ns / least_ns.max(self.spent_ns * f64::EPSILON)
    }
}

/// The load point with the workers and host of that agent alone. Totals and seconds are those of
/// all agents.
pub(crate) fn part_of(record: &PointRecord, index: usize) -> PointRecord {
    let agent = &record.agents[index];
    let before: u32 = record.agents[..index].iter().map(|agent| agent.workers).sum();
    let workers = record.workers.iter().skip(before as usize).take(agent.workers as usize);
    let of_agent = |source: &Option<String>| source.as_ref() == Some(&agent.name);
    let mut resources: Vec<_> =
        record.resources.iter().filter(|resource| of_agent(&resource.source)).cloned().collect();
    resources.iter_mut().for_each(|resource| resource.source = None);
    PointRecord {
        workers: workers.cloned().collect(),
        process_cpu_ns: agent.process_cpu_ns,
        monitor_cpu_ns: agent.monitor_cpu_ns,
        clock_step_ns: agent.clock_step_ns,
        core_users: agent.core_users.clone(),
        resources,
        ..record.clone()
    }
}

/// Figures and health of each agent.
pub(crate) fn agent_results(record: &PointRecord) -> Vec<AgentResult> {
    let all: u64 = record.agents.iter().map(|agent| agent.done).sum();
    let of = |(index, agent): (usize, &AgentPoint)| {
        let part = part_of(record, index);
        let seconds = record.measured_ns.as_secs_f64();
        AgentResult {
            name: agent.name.clone(),
            host: agent.host.clone(),
            workers: agent.workers,
            achieved_ops_per_s: (seconds > 0.0).then(|| agent.done as f64 / seconds),
            share_ratio: (all > 0).then(|| agent.done as f64 / all as f64),
            errors: agent.errors,
            cpu_busy_ratio_max: busy_ratio_max(&part),
            run_delay_ratio_max: run_delay_ratio_max(&part),
            start_skew_ns: agent.start_skew_ns,
            clock: agent.clock,
        }
    };
    record.agents.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests;
