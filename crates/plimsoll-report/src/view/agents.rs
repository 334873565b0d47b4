//! The agents of each load point: the work and the health of each.

use plimsoll_model::result::RunResult;
use plimsoll_model::units::three_digits;

use crate::table::{Rows, Table};
use crate::text::{count, number};

/// One agent of one load point a row; empty where one program made the load.
pub(super) fn table(run: &RunResult) -> Table {
    let percent = |ratio: Option<f64>| ratio.map(|it| three_digits(it * 100.0));
    let micros = |nanos: u64| three_digits(nanos as f64 / 1e3);
    let agents = run.points.iter().flat_map(|point| {
        let position = point.position;
        point.agents.iter().map(move |agent| (position, agent))
    });
    let caption = "The agents at each load point. Each start is known within the clock bound, \
                   which may be 1 ms, or 1 % of the window if that is less.";
    Rows::new(caption, agents)
        .figures("point", "", |(position, _)| *position)
        .text("agent", |(_, agent)| agent.name.clone())
        .text("host", |(_, agent)| agent.host.clone())
        .figures("workers", "", |(_, agent)| agent.workers)
        .figures("throughput", "ops/s", |(_, agent)| number(agent.achieved_ops_per_s))
        .figures("share", "%", |(_, agent)| percent(agent.share_ratio))
        .figures("errors", "", |(_, agent)| count(Some(agent.errors)))
        .figures("busiest worker", "%", |(_, agent)| percent(agent.cpu_busy_ratio_max))
        .figures("waiting for a core", "%", |(_, agent)| percent(agent.run_delay_ratio_max))
        .figures("clock bound", "µs", |(_, agent)| micros(agent.clock.bound.0))
        .figures("drift", "µs", |(_, agent)| {
            let sign = if agent.clock.drift_ns < 0 { "−" } else { "" };
            format!("{sign}{}", micros(agent.clock.drift_ns.unsigned_abs()))
        })
        .table()
}

/// One route of one agent to a server a row; empty where one program made the load.
pub(super) fn networks(run: &RunResult) -> Table {
    let agents = run.disclosure.iter().flat_map(|disclosure| &disclosure.agents);
    let routes = agents.flat_map(|agent| agent.ways.iter().map(move |route| (agent, route)));
    Rows::new("The agents and their ways to the servers.", routes)
        .text("agent", |(agent, _)| agent.agent.clone())
        .text("host", |(agent, _)| agent.host.clone())
        .figures("workers", "", |(agent, _)| agent.workers)
        .text("cores", |(agent, _)| {
            let cores: Vec<String> = agent.cores.iter().map(u32::to_string).collect();
            cores.join(", ")
        })
        .text("from", |(agent, route)| match &agent.sources[..] {
            [] => route.source.clone(),
            sources => Some(sources.join(", ")),
        })
        .text("link", |(_, route)| {
            let speed = route.speed_mbit_per_s.map(|speed| format!(", {speed} Mbit/s"));
            let name = route.interface.as_ref()?;
            Some(format!("{name}{}", speed.unwrap_or_default()))
        })
        .text("target", |(_, route)| route.target.clone())
        .text("at", |(_, route)| route.address.clone())
        .table()
}
