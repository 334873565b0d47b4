//! A load point of many agents, one by one.

use plimsoll_model::event::{AgentPoint, PointRecord};
use plimsoll_model::result::AgentResult;

use crate::health::{busy_ratio_max, run_delay_ratio_max};

/// The load point as that agent alone would tell it of its workers and its host. Totals and seconds
/// are those of all agents.
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

/// What each agent did, and how it fared.
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
