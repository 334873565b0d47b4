//! The laboratory: `cargo lab VERB` measures Plimsoll itself. What a change must pass is
//! `cargo xtask`.
//!
//! | verb, module | question | time | results |
//! | --- | --- | --- | --- |
//! | `bench web` | CPU per request and lateness, compared with wrk, h2load, ab, oha and a bare client, on nginx | 20 min | `docs/performance.md` |
//! | `bench nfs` | CPU per operation, compared with libnfs; the reference server compared with NFS-Ganesha | 6 min | `docs/performance.md` |
//! | `bench smb` | CPU per load-file line and per echo, compared with smbtorture, on Samba | 8 min | `docs/performance.md` |
//! | `bench app` | CPU per transaction, compared with a bare client; what a second core brings the server | 5 min | `docs/performance.md` |
//! | `bench memory` | memory growth at full speed, memory per idle client | 11 min | `docs/performance.md` |
//! | `bench web --against PROGRAM` | CPU time and instructions per op, compared with another build of plimsoll; also `nfs`, `smb` | 5 min | printed, `--out FILE` |
//! | `clients` | What do clients of language models report of a server whose times are known, and what do they cost? | 25 min | `docs/llm-clients.md` |
//! | `coverage` | Do the uncertainty intervals contain the true percentiles? | 1 h | `docs/calibration.md` |
//! | `coverage simulated` | The same of 48 kinds of simulated load and server: neither less nor more often than they claim? | 35 min | `docs/calibration.md` |
//! | `faults` | Does the certificate refuse a program that was broken on purpose (`lab/faults/*.patch`)? | 25 min | `docs/calibration.md` |
//! | `llm-faults` | What do clients of language models report of servers that reproduce known faults? | 15 min | `docs/llm-faults.md` |
//! | `attribution` | Is the limit of a server named correctly when the limit was imposed? | 6 min | `docs/attribution.md` |
//! | `capacity` | Does a claim of `plimsoll capacity` hold, and is it not too low? | 10 min on nginx, 1 h on the queue | printed; discussed in `docs/capacity.md` |
//! | `dashboard` | Does each query of the Grafana dashboard find what a run exports to Prometheus? Needs one (`--collector`) | 1 min | printed |
//! | `embednfsd` | Do the suites of NFSv4.1 measure a server that shares no code with ours? | 2 min | printed; named in `docs/nfs-server.md` |
//! | `experiments` | Of simulated experiments: do the intervals contain the truth, are real interactions found, and no absent ones? | 4 min | `docs/experiments.md` |
//! | `fleet failures` | Does a fleet lose a finished point, count a spoilt one or continue its load when agents, links or the controller fail? | 15 min | `docs/fleet.md` |
//! | `fleet scale` | What do 16, 64 and 256 agents cost the controller, and how close do they start? | 2 min | `docs/fleet.md` |
//! | `fleet overhead` | CPU per op of four agents, compared with one | 5 min | `docs/fleet.md` |
//! | `monitors` | Do the monitors agree with sar, iostat and vmstat? | 1 min | `docs/monitors.md` |
//! | `mutants` | Do the tests notice a wrong line? A sample, kept in `lab/mutants/seed-N.tsv` | hours | `docs/testing.md` |
//! | `pairs` | Do features work in pairs? A covering array of runs on servers of every kind | 35 min | `docs/pairs.md` |
//! | `sizing` | Does `plimsoll size` predict the peak at twice the CPU quota, and detect a lock or a pool? | 12 min | `docs/sizing.md` |
//! | `pictures` | the pictures of the README, from real runs | 2 min | `docs/pictures/` |
//!
//! Times are those of a machine with two cores, without the release build that most verbs begin
//! with. With `--write` a verb replaces its table in the page. Three more verbs make this program
//! one half of a measurement: the scripted server of `attribution`, the disturber of `coverage`,
//! the meter of `fleet scale`. `src/bin/bare.rs` is the bare client.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the developer's terminal"
)]

mod attribution;
mod bench;
mod capacity;
mod clients;
mod confinement;
mod coverage;
mod dashboard;
mod embednfsd;
mod experiments;
mod faults;
mod fleet;
mod lines;
mod llm_faults;
mod monitors;
mod mutants;
mod network;
mod nginx;
mod page;
mod pairs;
mod pictures;
mod process;
mod program;
mod remote;
mod sizing;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::verb::{self, Result};

/// Measures Plimsoll itself. What a change must pass is `cargo xtask`.
#[derive(Parser)]
#[command(name = "cargo lab", bin_name = "cargo lab")]
struct Lab {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compare CPU time and memory with other generators.
    Bench(bench::Options),
    /// Compare clients of language models on a server whose times are known.
    Clients(clients::Options),
    /// Check how often the uncertainty intervals contain the true percentiles.
    Coverage(coverage::Options),
    /// Check that the queries of the Grafana dashboard find what is exported; needs Prometheus 3.
    Dashboard(dashboard::Options),
    /// Check that the certificate refuses a program that was broken on purpose.
    Faults(faults::Options),
    /// Compare what clients of language models report when known faults are reproduced.
    LlmFaults(llm_faults::Options),
    /// Check that imposed limits are named correctly; needs root.
    Attribution(attribution::Options),
    /// Check that a claim of `plimsoll capacity` holds and is not too low; needs root.
    Capacity(capacity::Options),
    /// Measure a foreign server of NFSv4.1; port 2049 has to be free.
    Embednfsd,
    /// Check what is said of simulated experiments whose truth is known.
    Experiments(experiments::Options),
    /// Check many agents under one controller: failures, scale, overhead.
    Fleet(fleet::Options),
    /// Compare the monitors with sar, iostat and vmstat; needs sysstat.
    Monitors(monitors::Options),
    /// Check whether the tests notice wrong lines; needs cargo-mutants.
    Mutants(mutants::Options),
    /// Check features in pairs, by a covering array of runs; needs root.
    Pairs(pairs::Options),
    /// Check what `plimsoll size` predicts against the truth; needs root, nginx, Ganesha and Samba.
    Sizing(sizing::Options),
    /// Make the pictures of the README; needs nginx and a Chromium.
    Pictures,
    #[command(name = fleet::METER, hide = true)]
    Meter {
        file: PathBuf,
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command_line: Vec<OsString>,
    },
    #[command(name = attribution::STAGED, hide = true)]
    Staged { address: String, arguments: Vec<String> },
    #[command(name = coverage::DISTURBER, hide = true)]
    Disturber,
}

fn main() -> ExitCode {
    verb::ended(lab(Lab::parse().verb))
}

fn lab(verb: Verb) -> Result<()> {
    match verb {
        Verb::Bench(options) => bench::bench(&options),
        Verb::Clients(options) => clients::clients(&options),
        Verb::Coverage(options) => coverage::coverage(&options),
        Verb::Dashboard(options) => dashboard::dashboard(&options),
        Verb::Faults(options) => faults::faults(&options),
        Verb::LlmFaults(options) => llm_faults::llm_faults(&options),
        Verb::Attribution(options) => attribution::attribution(options),
        Verb::Capacity(options) => capacity::capacity(options),
        Verb::Embednfsd => embednfsd::embednfsd(),
        Verb::Experiments(options) => experiments::experiments(&options),
        Verb::Fleet(options) => fleet::fleet(options),
        Verb::Meter { file, command_line } => fleet::meter(&file, &command_line),
        Verb::Monitors(options) => monitors::monitors(&options),
        Verb::Mutants(options) => mutants::mutants(&options),
        Verb::Pairs(options) => pairs::pairs(&options),
        Verb::Sizing(options) => sizing::sizing(options),
        Verb::Pictures => pictures::pictures(),
        Verb::Staged { address, arguments } => attribution::serve(&address, &arguments),
        Verb::Disturber => {
            coverage::disturb();
            Ok(())
        }
    }
}
