//! `cargo lab llm-faults`: what clients of language models report of servers that reproduce known
//! problems of other clients. The truth is the server's script and log.

mod reports;
mod run;
mod scenarios;
mod table;

use std::path::PathBuf;

use clap::Parser;
use xtask::verb::Result;

use crate::bench::{facts, record};
use crate::clients::client::{Client, InstalledClient};
use crate::page::Table;
use crate::program;
use scenarios::Scenario;

/// The page that holds the tables.
const PAGE: &str = "docs/llm-faults.md";

/// Options of `cargo lab llm-faults`.
#[derive(Parser)]
pub struct Options {
    /// Folder of the rivals: virtual environments `aiperf`, `guidellm`, `endpoints`, and the
    /// program `vllm-bench`. Each is used if it is there.
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Tables to measure: broken, mixed, first, tokens, connections. [default: all]
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    only: Vec<String>,
    /// Clients to measure, by the names of their folders; ours is `plimsoll`. [default: all]
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    clients: Vec<String>,
    /// Replace the measured tables in docs/llm-faults.md.
    #[arg(long)]
    write: bool,
}

/// Groups of scenarios, each with its name on the command line and in the page's markers.
const TABLES: [(&str, &[Scenario]); 5] = [
    ("broken", &scenarios::BROKEN),
    ("mixed", &scenarios::MIXED),
    ("first", &scenarios::FIRST),
    ("tokens", &scenarios::TOKENS),
    ("connections", &scenarios::CONNECTIONS),
];

/// In the order of the columns.
const CLIENTS: [Client; 5] =
    [Client::Plimsoll, Client::VllmBench, Client::Endpoints, Client::AiPerf, Client::GuideLlm];

/// Runs every client once on every requested scenario, and prints the tables.
pub fn llm_faults(options: &Options) -> Result<()> {
    if options.write {
        record::writable()?;
    }
    let installed = find(options)?;
    let is_meant = |name: &str| options.only.is_empty() || options.only.iter().any(|it| it == name);
    for (name, scenarios) in TABLES.into_iter().filter(|(name, _)| is_meant(name)) {
        let rows: Vec<Vec<run::Outcome>> = scenarios
            .iter()
            .map(|scenario| run::run_scenario(scenario, &installed))
            .collect::<Result<_>>()?;
        let text = format!(
            "Command: `cargo lab llm-faults --rivals DIR --only {name}`.\n\n{}\n{}",
            facts::facts("clients"),
            table::table(scenarios, &installed, &rows)
        );
        println!("{text}");
        if options.write {
            Table { page: PAGE, name: &format!("llm-faults {name}") }.write(&text)?;
        }
    }
    Ok(())
}

/// The clients that are installed; the others are named.
fn find(options: &Options) -> Result<Vec<InstalledClient>> {
    let plimsoll = program::plimsoll()?;
    let is_meant = |client: &Client| {
        options.clients.is_empty() || options.clients.iter().any(|it| it == client.folder())
    };
    let mut installed = Vec::new();
    for client in CLIENTS.into_iter().filter(is_meant) {
        match client.find(options.rivals.as_deref(), &plimsoll) {
            Some(one) => installed.push(one),
            None => eprintln!("SKIPPED, not installed: {}", client.name()),
        }
    }
    Ok(installed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_every_table() {
        for (name, _) in TABLES {
            assert_eq!(Table { page: PAGE, name: &format!("llm-faults {name}") }.check(), Ok(()));
        }
    }
}
