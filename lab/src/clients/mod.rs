//! `cargo lab clients`: what clients of language models report of a server whose times are known,
//! and what each of them costs.
//!
//! The server is `plimsoll serve llm` under a law that treats every request alone, on a core of its
//! own. Its log has the instants at which each request arrived and its first chunk was handed to
//! the kernel: the truth that each client's report is compared with.

pub mod client;
pub mod hub;
mod picture;
mod report;
mod run;
pub mod server;
mod table;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use xtask::verb::Result;
use xtask::workspace;

use crate::bench::{facts, record};
use crate::network::{GENERATOR_CORE, SERVER_CORE};
use crate::page::Table;
use crate::program;
use client::{Client, InstalledClient};
use run::Row;
use server::Law;

/// The page that holds the figures.
const PAGE: &str = "docs/llm-clients.md";
const PICTURE: &str = "docs/pictures/llm-clients.svg";

/// Options of `cargo lab clients`.
#[derive(Parser)]
pub struct Options {
    /// Folder of the rivals: virtual environments `aiperf`, `guidellm`, `infperf`, `endpoints`, and
    /// the program `vllm-bench`. Each is used if it is there.
    #[arg(long, value_name = "DIR")]
    rivals: Option<PathBuf>,
    /// Runs of each client at each load.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// About how long a run measures.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(3..))]
    seconds: u64,
    /// Sections to measure: one-core, log, open, all-cores. [default: all]
    #[arg(long, value_name = "SECTION", value_delimiter = ',')]
    only: Vec<String>,
    /// Clients to measure, by the names of their folders; ours is `plimsoll`. [default: all]
    #[arg(long, value_name = "CLIENT", value_delimiter = ',')]
    clients: Vec<String>,
    /// Replace the tables of the measured sections in docs/llm-clients.md, and the picture.
    #[arg(long)]
    write: bool,
}

/// One table: one law, several numbers of streams, the same cores for every client.
struct Section {
    /// Its name on the command line and in the page's markers.
    name: &'static str,
    title: &'static str,
    law: Law,
    streams: &'static [u32],
    cores: &'static [u32],
    /// Clients other than these are left out; empty for all.
    clients: &'static [Client],
}

const FAST: Law = Law { first_ms: 80, step_ms: 10, chunks: 50 };

const SECTIONS: [Section; 4] = [
    Section {
        name: "one-core",
        title: "One core for the client",
        law: FAST,
        streams: &[1, 100, 400],
        cores: &[GENERATOR_CORE],
        clients: &[],
    },
    Section {
        name: "log",
        title: "50 chunks/s a stream, one core for the client",
        law: Law { step_ms: 20, ..FAST },
        streams: &[1, 64, 1_000],
        cores: &[GENERATOR_CORE],
        clients: &[],
    },
    Section {
        name: "open",
        title: "10,000 open streams, one core for the client",
        law: Law { step_ms: 500, ..FAST },
        streams: &[10_000],
        cores: &[GENERATOR_CORE],
        clients: &[Client::Plimsoll, Client::VllmBench],
    },
    Section {
        name: "all-cores",
        title: "All cores for the client, one of them shared with the server",
        law: FAST,
        streams: &[400],
        cores: &[GENERATOR_CORE, SERVER_CORE],
        clients: &[],
    },
];

impl Options {
    fn wants(&self, section: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == section)
    }

    fn wants_client(&self, client: Client) -> bool {
        self.clients.is_empty() || self.clients.iter().any(|name| name == client.folder())
    }
}

/// Measures the requested sections and prints a table of each.
pub fn clients(options: &Options) -> Result<()> {
    if options.write {
        record::writable()?;
    }
    let plimsoll = program::plimsoll()?;
    let installed = find(options, &plimsoll);
    for section in SECTIONS.iter().filter(|section| options.wants(section.name)) {
        eprintln!("\n== {} ==", section.title);
        let rows = run::rows(section, &installed, &plimsoll, options)?;
        let text = shown(section, &rows, options);
        println!("{text}");
        if options.write {
            write(section, &rows, &text)?;
        }
    }
    let commands = table::commands(&installed)?;
    println!("{commands}");
    match options.write {
        true => Table { page: PAGE, name: "clients commands" }.write(&commands),
        false => Ok(()),
    }
}

/// The clients that are installed; the others are named.
fn find(options: &Options, plimsoll: &Path) -> Vec<InstalledClient> {
    let mut installed = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| options.wants_client(*client)) {
        match client.find(options.rivals.as_deref(), plimsoll) {
            Some(one) => installed.push(one),
            None => eprintln!("SKIPPED, not installed: {}", client.name()),
        }
    }
    installed
}

/// A section's table with what a reader must know of the run.
fn shown(section: &Section, rows: &[Row], options: &Options) -> String {
    let cores: Vec<String> = section.cores.iter().map(u32::to_string).collect();
    format!(
        "Command: `cargo lab clients --rivals DIR --rounds {} --seconds {} --only {}`. Server on core \
         {SERVER_CORE}, client on {} {}, loopback.\n\n{}\n{}",
        options.rounds,
        options.seconds,
        section.name,
        if cores.len() == 1 { "core" } else { "cores" },
        cores.join(" and "),
        facts::facts("clients"),
        table::table(&section.law, rows).trim_end(),
    )
}

fn write(section: &Section, rows: &[Row], text: &str) -> Result<()> {
    Table { page: PAGE, name: &format!("clients {}", section.name) }.write(text)?;
    if section.name != "one-core" {
        return Ok(());
    }
    let path = workspace::root().join(PICTURE);
    fs::write(&path, picture::svg(&section.law, rows)).map_err(|e| format!("{PICTURE}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_every_section() {
        let names = SECTIONS.iter().map(|section| section.name).chain(["commands"]);
        for name in names {
            assert_eq!(Table { page: PAGE, name: &format!("clients {name}") }.check(), Ok(()));
        }
    }
}
