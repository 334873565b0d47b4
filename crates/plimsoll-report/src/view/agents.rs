//! The agents of each load point: what each did, and how it fared.

use plimsoll_model::disclosure::{AgentDisclosure, WayDisclosure};
use plimsoll_model::result::{AgentResult, RunResult};
use plimsoll_model::units::{Nanos, three_digits};

use crate::table::{Table, figures, words};
use crate::text::{ABSENT, count, number};

/// One agent of one load point a row; empty where one program made the load.
pub(super) fn table(run: &RunResult) -> Table {
    let mut table = Table::new(
        "The agents at each load point. Each start is known within the clock bound, which may be \
         1 ms, or 1 % of the window if that is less."
            .to_owned(),
        vec![
            figures("point", ""),
            words("agent"),
            words("host"),
            figures("workers", ""),
            figures("throughput", "ops/s"),
            figures("share", "%"),
            figures("errors", ""),
            figures("busiest worker", "%"),
            figures("waiting for a core", "%"),
            figures("clock bound", "µs"),
            figures("drift", "µs"),
        ],
    );
    for point in &run.points {
        for agent in &point.agents {
            table.push(row(point.position, agent));
        }
    }
    table
}

/// One way of one agent to a server a row; empty where one program made the load.
pub(super) fn networks(run: &RunResult) -> Table {
    let mut table = Table::new(
        "The agents and their ways to the servers.".to_owned(),
        vec![
            words("agent"),
            words("host"),
            figures("workers", ""),
            words("cores"),
            words("from"),
            words("link"),
            words("target"),
            words("at"),
        ],
    );
    for agent in run.disclosure.iter().flat_map(|disclosure| &disclosure.agents) {
        for way in &agent.ways {
            table.push(way_row(agent, way));
        }
    }
    table
}

fn way_row(agent: &AgentDisclosure, way: &WayDisclosure) -> Vec<String> {
    let known = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
    let cores: Vec<String> = agent.cores.iter().map(u32::to_string).collect();
    let from = match &agent.sources[..] {
        [] => known(way.source.clone()),
        sources => sources.join(", "),
    };
    let speed = way.speed_mbit_per_s.map(|speed| format!(", {speed} Mbit/s"));
    let link = way.interface.as_ref().map(|name| format!("{name}{}", speed.unwrap_or_default()));
    vec![
        agent.agent.clone(),
        agent.host.clone(),
        agent.workers.to_string(),
        cores.join(", "),
        from,
        known(link),
        way.target.clone(),
        way.address.clone(),
    ]
}

fn row(position: u32, agent: &AgentResult) -> Vec<String> {
    let percent =
        |ratio: Option<f64>| ratio.map_or(ABSENT.to_owned(), |it| three_digits(it * 100.0));
    let micros = |time: Nanos| three_digits(time.0 as f64 / 1e3);
    let drift = micros(Nanos(agent.clock.drift_ns.unsigned_abs()));
    let sign = if agent.clock.drift_ns < 0 { "−" } else { "" };
    vec![
        position.to_string(),
        agent.name.clone(),
        agent.host.clone(),
        agent.workers.to_string(),
        number(agent.achieved_ops_per_s),
        percent(agent.share_ratio),
        count(Some(agent.errors)),
        percent(agent.cpu_busy_ratio_max),
        percent(agent.run_delay_ratio_max),
        micros(agent.clock.bound),
        format!("{sign}{drift}"),
    ]
}
