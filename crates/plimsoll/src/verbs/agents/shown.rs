//! Checked agents for a person: a table, or a list if the table is too wide.

use std::fmt::Write as _;

use plimsoll_model::disclosure::Network;
use plimsoll_model::units::{Bytes, counted, grouped};
use plimsoll_report::text_columns;

use super::{AgentProperties, CheckedAgent};
use crate::terminal::Style;

const TITLES: [&str; 10] = [
    "agent",
    "host",
    "version",
    "cores",
    "memory",
    "network",
    "open files",
    "ports < 1024",
    "clock within",
    "round trip",
];
/// Interfaces that are named; the others are counted.
const NETWORKS_MAX: usize = 2;

/// All facts about the agents, and their number.
pub(super) fn text(agents: &[CheckedAgent], style: Style) -> String {
    let rows: Vec<Vec<String>> =
        agents.iter().filter_map(|agent| Some(cells(agent, agent.found.as_ref()?))).collect();
    let lines = text_columns(&TITLES, rows.clone());
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or_default();
    let fits = style.screen().is_none_or(|screen| width <= screen.columns);
    let mut out = match lines.split_first() {
        Some((titles, lines)) if fits && !lines.is_empty() => {
            format!("{}\n{}\n", style.bold(titles), lines.join("\n"))
        }
        _ => list(&rows, style),
    };
    for (what, who) in notes(agents) {
        let who =
            if who.len() > 1 && who.len() == rows.len() { "all".into() } else { who.join(", ") };
        let _ = writeln!(out, "{} {who}: {what}", style.mixed("note:"));
    }
    for agent in agents {
        if let Some(why) = &agent.failed {
            let _ = writeln!(out, "{} {}: {why}", style.bad("failed:"), agent.agent);
        }
    }
    let _ = writeln!(out, "{}", last_line(agents));
    out
}

/// What a run may lack, each item once, with the agents that lack it.
fn notes(agents: &[CheckedAgent]) -> Vec<(&str, Vec<&str>)> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for agent in agents {
        for what in &agent.missing {
            match notes.iter_mut().find(|(note, _)| note == what) {
                Some((_, who)) => who.push(&agent.agent),
                None => notes.push((what, vec![&agent.agent])),
            }
        }
    }
    notes
}

fn last_line(agents: &[CheckedAgent]) -> String {
    let available: Vec<&AgentProperties> =
        agents.iter().filter_map(|agent| agent.found.as_ref()).collect();
    let mut hosts: Vec<&str> =
        available.iter().map(|properties| properties.boot_id.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let (agents, hosts) = (counted(agents.len(), "agent"), counted(hosts.len(), "host"));
    format!("{} of {agents} can be used, on {hosts}", available.len())
}

fn cells(agent: &CheckedAgent, properties: &AgentProperties) -> Vec<String> {
    let unknown = || "not known".to_owned();
    vec![
        agent.agent.clone(),
        properties.host.clone(),
        properties.version.clone(),
        cores_text(&properties.cores),
        properties.memory_bytes.map_or_else(unknown, |bytes| Bytes(bytes).to_string()),
        networks_text(&properties.networks),
        properties.open_files_max.map_or_else(|| "any".to_owned(), |max| grouped(max as f64)),
        if properties.reserves_ports { "yes" } else { "no" }.to_owned(),
        properties.clock_bound_ns.to_string(),
        properties.round_trip_ns.to_string(),
    ]
}

/// `4 (0-2,5)`.
fn cores_text(cores: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let range = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    let ranges: Vec<String> = ranges.iter().map(range).collect();
    format!("{} ({})", cores.len(), ranges.join(","))
}

/// Links with a known speed; without one, those that are up; else all.
fn networks_text(networks: &[Network]) -> String {
    let is_up = |network: &Network| {
        network.details.iter().any(|detail| detail.name == "link" && detail.value == "up")
    };
    let of = |is_included: &dyn Fn(&Network) -> bool| -> Vec<&Network> {
        networks.iter().filter(|network| is_included(network)).collect()
    };
    let kinds = [of(&|network| network.speed_mbit_per_s.is_some()), of(&is_up), of(&|_| true)];
    let shown = kinds.into_iter().find(|kind| !kind.is_empty()).unwrap_or_default();
    let text = |network: &&Network| match network.speed_mbit_per_s {
        Some(mbit) if mbit % 1_000 == 0 => format!("{} {} Gbit/s", network.name, mbit / 1_000),
        Some(mbit) => format!("{} {mbit} Mbit/s", network.name),
        None => network.name.clone(),
    };
    let mut texts: Vec<String> = shown.iter().take(NETWORKS_MAX).map(text).collect();
    if shown.len() > NETWORKS_MAX {
        texts.push(format!("{} more", shown.len() - NETWORKS_MAX));
    }
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

fn list(rows: &[Vec<String>], style: Style) -> String {
    let width = TITLES.map(str::len).into_iter().max().unwrap_or_default();
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(out, "{}", style.bold(&row[0]));
        for (title, cell) in TITLES.iter().zip(row).skip(1) {
            let _ = writeln!(out, "  {title:<width$}  {cell}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use plimsoll_model::disclosure::Setting;
    use plimsoll_model::units::Nanos;

    use super::*;
    use crate::terminal::Screen;

    fn agent(name: &str) -> CheckedAgent {
        let network = |name: &str, speed_mbit_per_s| Network {
            name: name.to_owned(),
            speed_mbit_per_s,
            ..Network::default()
        };
        let properties = AgentProperties {
            version: "1.2.3".to_owned(),
            program_sha256: String::new(),
            same_program: true,
            host: "node1".to_owned(),
            boot_id: "b".to_owned(),
            system: String::new(),
            cores: vec![0, 1, 2, 5],
            memory_bytes: Some(64 << 30),
            networks: vec![network("docker0", None), network("eth0", Some(25_000))],
            open_files_max: Some(1_048_576),
            reserves_ports: true,
            clock_bound_ns: Nanos(45_000),
            round_trip_ns: Nanos(90_000),
        };
        CheckedAgent {
            agent: name.to_owned(),
            found: Some(properties),
            failed: None,
            missing: vec![],
        }
    }

    fn failed(name: &str) -> CheckedAgent {
        let failed = Some("no way".to_owned());
        CheckedAgent { agent: name.to_owned(), found: None, failed, missing: vec![] }
    }

    #[test]
    fn agents_are_a_table_where_it_fits() {
        let agents = [agent("ssh://a"), agent("ssh://long-name"), failed("local")];
        let plain = Style::new(false);
        let wide = text(&agents, plain);
        let lines: Vec<&str> = wide.lines().collect();
        assert_eq!(
            lines[1],
            "ssh://a          node1  1.2.3    4 (0-2,5)  64.0 GiB  eth0 25 Gbit/s  1,048,576   \
             yes           45.0 µs       90.0 µs"
        );
        assert_eq!(lines[0].find("host"), lines[2].find("node1"));
        assert_eq!(lines[3..], ["failed: local: no way", "2 of 3 agents can be used, on 1 host"]);
        let narrow = text(&agents, plain.on(Some(Screen { columns: 80, rows: 24 })));
        assert!(narrow.starts_with("ssh://a\n  host          node1\n"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }

    #[test]
    fn where_no_agent_can_be_used_there_is_no_table() {
        let all = text(&[failed("local")], Style::new(false));
        assert_eq!(all, "failed: local: no way\n0 of 1 agent can be used, on 0 hosts\n");
    }

    #[test]
    fn what_several_agents_miss_is_said_once() {
        let mut agents = ["a", "b", "c"].map(agent);
        agents.iter_mut().for_each(|agent| agent.missing.push("it may open 9 files".to_owned()));
        agents[2].missing.push("it is slow".to_owned());
        let all = text(&agents, Style::new(false));
        let notes: Vec<&str> = all.lines().filter(|line| line.starts_with("note: ")).collect();
        assert_eq!(notes, ["note: all: it may open 9 files", "note: c: it is slow"]);
    }

    #[test]
    fn of_many_links_the_first_are_named() {
        let named = |name: &str| Network { name: name.to_owned(), ..Network::default() };
        let mut four = ["a", "b", "c", "d"].map(named);
        assert_eq!(networks_text(&four), "a, b, 2 more");
        four[2].details = vec![Setting::new("link", "up")];
        assert_eq!(networks_text(&four), "c");
        assert_eq!(networks_text(&[]), "none");
    }
}
