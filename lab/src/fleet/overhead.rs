//! `cargo lab fleet overhead`: CPU per op of four agents, compared with that of one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use xtask::verb::Result;

use super::{Options, PAGE};
use crate::bench::median;
use crate::network::{GENERATOR_CORE, Network};
use crate::nginx::Nginx;
use crate::page::Table;
use crate::{process, program};

const TABLE: Table<'_> = Table { page: PAGE, name: "fleet overhead" };
const RUN_LIMIT: Duration = Duration::from_secs(120);
/// Of a core, for each agent.
const SHARE: f64 = 0.15;
const AGENTS: u32 = 4;
/// At most this many times the cost of one.
const LIMIT: f64 = 1.1;
/// A run that was further behind its load, on a host that others use too, is no measurement.
const SUSTAINED_RATIO: f64 = 0.95;
/// The first guess of the rate that takes this share.
const FIRST_RATE: f64 = 5_000.0;

/// The generators of the load, and their part of it.
#[derive(Clone, Copy)]
struct GeneratorSetup {
    name: &'static str,
    /// `None`: the program alone.
    agents: Option<u32>,
    /// Of the rate of four agents.
    part: f64,
}

const FOUR: GeneratorSetup =
    GeneratorSetup { name: "four agents", agents: Some(AGENTS), part: 1.0 };
/// What four are compared with, the first for the verdict: a worker that is woken late has more to
/// do each time, so that the same load in all costs one agent less per op.
const OTHERS: [GeneratorSetup; 3] = [
    GeneratorSetup { name: "one agent, a quarter of the load", agents: Some(1), part: 0.25 },
    GeneratorSetup { name: "one agent, the same load in all", agents: Some(1), part: 1.0 },
    GeneratorSetup { name: "no agents, the same load in all", agents: None, part: 1.0 },
];

/// A run: CPU time of its generators per op, and the share of a core that they had.
#[derive(Clone, Copy)]
struct Cost {
    ns_per_op: f64,
    cores: f64,
}

struct Bench<'b> {
    program: &'b Path,
    url: String,
    folder: &'b Path,
}

/// Makes the runs alternately and prints the table.
pub fn overhead(program: &Path, options: &Options) -> Result<()> {
    if options.write {
        TABLE.check()?;
    }
    let (folder, server) = (program::temporary()?, Nginx::start(&Network::Host)?);
    let bench = Bench { program, url: server.url("/1k"), folder: folder.path() };
    let rate = bench.rate()?;
    let mut four = Vec::new();
    let mut others: [Vec<Cost>; 3] = Default::default();
    for round in 1..=options.rounds {
        let costs: Result<Vec<Cost>> =
            [FOUR].iter().chain(&OTHERS).map(|setup| bench.cost(*setup, rate)).collect();
        match costs.as_deref() {
            Ok([cost, rest @ ..]) => {
                four.push(*cost);
                others.iter_mut().zip(rest).for_each(|(costs, cost)| costs.push(*cost));
            }
            Ok([]) => {}
            Err(message) => eprintln!("NOT COUNTED: {message}"),
        }
        eprintln!("round {round} of {} done", options.rounds);
    }
    let text = table(rate, &four, &others);
    println!("{text}");
    if options.write {
        TABLE.write(&text)?;
    }
    match ratio(&four, &others[0]) {
        Some(ratio) if ratio <= LIMIT => Ok(()),
        ratio => Err(format!("four agents compared with one: {ratio:?}, the limit is {LIMIT}")),
    }
}

impl Bench<'_> {
    /// The rate of four agents that each have their share of a core.
    fn rate(&self) -> Result<f64> {
        let mut each = FIRST_RATE;
        for _ in 0..2 {
            let cost = self.cost(OTHERS[0], each * f64::from(AGENTS))?;
            each *= SHARE / cost.cores;
        }
        Ok((each * f64::from(AGENTS)).round())
    }

    fn cost(&self, setup: GeneratorSetup, rate: f64) -> Result<Cost> {
        let bundle = self.folder.join("run");
        let _ = fs::remove_dir_all(&bundle);
        let rate = (rate * setup.part).round();
        let own = self.program.to_string_lossy();
        let mut command = Network::Host.pinned(GENERATOR_CORE, &own);
        command.args(["run", "web-url", &self.url, "--workers", "1", "--pacing", "precise"]);
        for _ in 0..setup.agents.unwrap_or(0) {
            command.args(["--agents", "exec:env"]);
        }
        command.args(["--points", &rate.to_string()]);
        for setting in [
            "load.mode=\"open\"",
            "load.clients=256",
            "profiles.standard.warm_up=\"1s\"",
            "profiles.standard.measure=\"5s\"",
        ] {
            command.args(["--set", setting]);
        }
        command.args(["--progress", "none", "--out"]).arg(&bundle);
        let finished = process::run(&mut command, RUN_LIMIT, |_, _| ())?;
        let result = program::result(&bundle, &finished)?;
        let point = &result["points"][0];
        let cost = cost(point).ok_or_else(|| finished.failure())?;
        let achieved = point["achieved_ops_per_s"].as_f64().unwrap_or(0.0);
        if achieved < rate * SUSTAINED_RATIO {
            return Err(format!("{}: {achieved:.0} of {rate} requests/s", setup.name));
        }
        eprintln!(
            "{}: {:.2} µs per op, {:.2} cores at {rate}/s",
            setup.name,
            cost.ns_per_op / 1e3,
            cost.cores
        );
        Ok(cost)
    }
}

fn cost(point: &Value) -> Option<Cost> {
    let ns_per_op = point["generator"]["cpu_ns_per_op"].as_f64()?;
    let rate = point["achieved_ops_per_s"].as_f64()?;
    Some(Cost { ns_per_op, cores: ns_per_op * rate / 1e9 })
}

/// Median of the pairs.
fn ratio(four: &[Cost], other: &[Cost]) -> Option<f64> {
    let pairs = four.iter().zip(other);
    median(&pairs.map(|(four, other)| four.ns_per_op / other.ns_per_op).collect::<Vec<_>>())
}

fn table(rate: f64, four: &[Cost], others: &[Vec<Cost>]) -> String {
    let middle =
        |costs: &[Cost], of: fn(&Cost) -> f64| median(&costs.iter().map(of).collect::<Vec<_>>());
    let us = |costs: &[Cost]| middle(costs, |cost| cost.ns_per_op / 1e3);
    let cores = |costs: &[Cost]| middle(costs, |cost| cost.cores);
    let cell = |value: Option<f64>| value.map_or_else(|| "—".to_owned(), |it| format!("{it:.2}"));
    let mut text = format!(
        "{} rounds in turns, nginx on core 1, generators on core {GENERATOR_CORE}, {rate} \
         requests/s of 1 KB in all.\n\n| load by | CPU µs per op, median | cores | four agents ÷ \
         these, median of pairs |\n| --- | --- | --- | --- |\n| {} | {} | {} | |\n",
        four.len(),
        FOUR.name,
        cell(us(four)),
        cell(cores(four))
    );
    for (setup, costs) in OTHERS.iter().zip(others) {
        let ratio = cell(ratio(four, costs));
        let (us, cores) = (cell(us(costs)), cell(cores(costs)));
        text.push_str(&format!("| {} | {us} | {cores} | {ratio} |\n", setup.name));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_compared_one_by_one() {
        let costs = |all: &[f64]| -> Vec<Cost> {
            all.iter().map(|ns_per_op| Cost { ns_per_op: *ns_per_op, cores: 0.6 }).collect()
        };
        let (four, one) = (costs(&[11.0, 30.0, 22.0]), costs(&[10.0, 20.0, 21.0]));
        assert_eq!(ratio(&four, &one), Some(1.1));
        assert_eq!(ratio(&four, &[]), None);
    }

    #[test]
    fn the_cost_of_a_run_is_in_its_result() {
        let point = serde_json::json!({
            "achieved_ops_per_s": 10_000.0, "generator": {"cpu_ns_per_op": 15_000.0}
        });
        assert!((cost(&point).unwrap().cores - 0.15).abs() < 1e-9);
        assert!(cost(&serde_json::json!({})).is_none());
    }
}
