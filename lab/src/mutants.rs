//! `cargo lab mutants`: does a test notice when a line of the engine or the analysis is wrong?
//! `docs/testing.md` has the results.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;

use clap::Parser;
use plimsoll_engine::rng::{Random, Stream};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;
use xtask::verb::Result;
use xtask::{command, workspace};

use crate::program;

/// What is mutated, and which of its tests decide: those that need neither sockets nor minutes.
struct Crate {
    name: &'static str,
    files: &'static str,
    tests: &'static str,
}

const CRATES: [Crate; 2] = [
    Crate {
        name: "plimsoll-engine",
        files: "pacer.rs recorder.rs worker/*.rs",
        tests: "--lib --test simulated",
    },
    Crate {
        name: "plimsoll-analysis",
        files: "validity/*.rs times.rs blocks.rs stated.rs climb.rs search.rs search/*.rs \
                curve.rs",
        tests: "--lib -- --skip queueing:: --skip simulation:: --skip compare::",
    },
];

const FOLDER: &str = "target/mutants";
/// What came out, kept with the sources: `docs/testing.md` counts it.
const LISTS: &str = "lab/mutants";
/// Of CPU, for one process: a sound one takes three. A mutant may loop.
const CPU_SECONDS_MAX: u64 = 60;
/// A mutant that loops may also fill the memory.
const MEMORY_BYTES_MAX: u64 = 8 << 30;
/// Less of the sample caught is an error.
const CAUGHT_RATIO_MIN: f64 = 0.9;

/// A change to one span of a file, as `cargo mutants --list --json` describes it.
struct Mutant {
    /// File and change, without line and column, which move with every edit above them.
    name: String,
    file: String,
    /// Line and column of its first character, and of the one behind its last.
    span: [[usize; 2]; 2],
    replacement: String,
}

/// What a mutant comes to.
const OUTCOMES: [&str; 4] = [CAUGHT, "timeout", MISSED, UNVIABLE];
const CAUGHT: &str = "caught";
const MISSED: &str = "missed";
const UNVIABLE: &str = "does not build";

/// Options of `cargo lab mutants`.
#[derive(Parser)]
pub struct Options {
    /// Seed of the sample.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mutants in it.
    #[arg(long, default_value_t = 300)]
    sample: usize,
}

/// Runs a seeded sample of all mutants, on from where it was: those not caught run again.
pub fn mutants(options: &Options) -> Result<()> {
    let Options { seed, sample } = *options;
    if command::find("cargo-mutants").is_none() {
        return Err("cargo-mutants is missing; cargo install cargo-mutants --locked".to_owned());
    }
    for (what, limit) in [(Resource::As, MEMORY_BYTES_MAX), (Resource::Cpu, CPU_SECONDS_MAX)] {
        setrlimit(what, Rlimit { current: Some(limit), maximum: Some(limit) })
            .map_err(|e| format!("cannot limit what a mutant takes: {e}"))?;
    }
    // Outside the workspace, which can be edited meanwhile.
    let tree = workspace::root().join(FOLDER).join("tree");
    program::copy_sources(&tree)?;
    let sample = pick(listed(&tree)?, seed, sample);
    let lists = workspace::root().join(LISTS);
    fs::create_dir_all(&lists).map_err(|e| fault(&lists, e))?;
    let log = lists.join(format!("seed-{seed}.tsv"));
    let recorded = outcomes(&log);
    let run = |part: &Crate| {
        if tested(part, &tree)? != MISSED {
            return Err(format!("the tests of {} fail as they are", part.name));
        }
        let settled = |mutant: &&Mutant| {
            matches!(recorded.get(&mutant.name).map(String::as_str), Some(CAUGHT | UNVIABLE))
        };
        let of_part = sample.iter().filter(|mutant| mutant.file.contains(part.name));
        of_part.filter(|mutant| !settled(mutant)).try_for_each(|mutant| {
            let line = format!("{}\t{}\n", test(part, mutant, &tree)?, mutant.name);
            print!("{line}");
            let file = fs::OpenOptions::new().create(true).append(true).open(&log);
            file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|e| fault(&log, e))
        })
    };
    // A crate's mutant is no concern of the other's tests, so both work in one tree.
    thread::scope(|scope| {
        let runs = CRATES.each_ref().map(|part| scope.spawn(move || run(part)));
        runs.into_iter().try_for_each(|run| run.join().expect("a panic has been shown"))
    })?;
    let recorded = outcomes(&log);
    let kept: BTreeMap<_, _> =
        sample.iter().filter_map(|mutant| recorded.get_key_value(&mutant.name)).collect();
    let lines: String = kept.iter().map(|(name, outcome)| format!("{outcome}\t{name}\n")).collect();
    fs::write(&log, lines).map_err(|e| fault(&log, e))?;
    check_outcomes(&sample, &recorded)
}

fn fault(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn cargo(tree: &Path) -> Command {
    let mut cargo = command::cargo();
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", tree.with_file_name("build"));
    cargo
}

fn listed(tree: &Path) -> Result<Vec<Mutant>> {
    let mut cargo = cargo(tree);
    cargo.args(["mutants", "--no-config", "--list", "--json"]);
    for part in &CRATES {
        cargo.args(["--package", part.name]);
        let files = part.files.split(' ');
        cargo.args(files.map(|file| format!("--file=crates/{}/src/{file}", part.name)));
    }
    let list: Vec<Value> = serde_json::from_str(&command::output(&mut cargo)?)
        .map_err(|e| format!("cargo mutants --list --json: {e}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mutant = |value: &Value| Mutant {
        name: placeless(&text(&value["name"])),
        file: text(&value["file"]),
        span: ["start", "end"].map(|end| {
            ["line", "column"].map(|of| value["span"][end][of].as_u64().unwrap_or(1) as usize)
        }),
        replacement: text(&value["replacement"]),
    };
    Ok(list.iter().map(mutant).collect())
}

/// FILE:LINE:COLUMN: WHAT, without line and column.
fn placeless(name: &str) -> String {
    let parts: Vec<&str> = name.splitn(4, ':').collect();
    [parts[0], parts[parts.len() - 1]].join(":")
}

/// By a draw of each one's own, so that a change to one function changes little of the sample.
fn pick(all: Vec<Mutant>, seed: u64, sample: usize) -> Vec<Mutant> {
    let mut alike: BTreeMap<String, u64> = BTreeMap::new();
    let mut draw = |mutant: &mut Mutant| {
        let key = mutant.name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv_1a);
        let nth = alike.entry(mutant.name.clone()).or_default();
        *nth += 1;
        if *nth > 1 {
            mutant.name = format!("{} (place {nth})", mutant.name);
        }
        Random::new(seed, Stream::Script, key.wrapping_add(*nth)).bits()
    };
    let mut drawn: Vec<(u64, Mutant)> = all.into_iter().map(|mut m| (draw(&mut m), m)).collect();
    drawn.sort_by_key(|(draw, _)| *draw);
    drawn.into_iter().take(sample).map(|(_, mutant)| mutant).collect()
}

fn fnv_1a(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Applies the mutant to the tree, runs the tests, and reverts it.
fn test(part: &Crate, mutant: &Mutant, tree: &Path) -> Result<&'static str> {
    let path = tree.join(&mutant.file);
    let text = fs::read_to_string(&path).map_err(|e| fault(&path, e))?;
    let at = |[line, column]: [usize; 2]| {
        let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        before + text[before..].chars().take(column - 1).map(char::len_utf8).sum::<usize>()
    };
    let [from, to] = mutant.span.map(at);
    let changed = format!("{}{}{}", &text[..from], mutant.replacement, &text[to..]);
    fs::write(&path, changed).map_err(|e| fault(&path, e))?;
    let outcome = tested(part, tree);
    fs::write(&path, &text).map_err(|e| fault(&path, e))?;
    outcome
}

fn tested(part: &Crate, tree: &Path) -> Result<&'static str> {
    let outcome = |more: &[&str]| {
        let mut cargo = cargo(tree);
        cargo.args(["test", "--quiet", "--profile", "mutants", "--package", part.name]);
        let output = cargo.args(more).args(part.tests.split(' ')).output();
        output.map_err(|e| format!("cannot start {}: {e}", command::shown(&cargo)))
    };
    if !outcome(&["--no-run"])?.status.success() {
        return Ok(UNVIABLE);
    }
    let output = outcome(&[])?;
    let stopped = String::from_utf8_lossy(&output.stderr).contains("SIGXCPU");
    Ok(match output.status.success() {
        true => MISSED,
        false if stopped => OUTCOMES[1],
        false => CAUGHT,
    })
}

/// By the mutant's name; the last line counts.
fn outcomes(log: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let entries = text.lines().filter_map(|line| line.split_once('\t'));
    entries.map(|(outcome, name)| (name.to_owned(), outcome.to_owned())).collect()
}

fn check_outcomes(sample: &[Mutant], outcomes: &BTreeMap<String, String>) -> Result<()> {
    let mut files: BTreeMap<&str, [usize; OUTCOMES.len()]> = BTreeMap::new();
    for Mutant { name, file, .. } in sample {
        let Some(outcome) = outcomes.get(name) else { continue };
        let Some(at) = OUTCOMES.iter().position(|kind| kind == outcome) else { continue };
        files.entry(file).or_default()[at] += 1;
        if outcome == MISSED {
            println!("missed: {name}");
        }
    }
    let row = |file: &str, [caught, timeout, missed, unviable]: [usize; 4]| {
        println!("| {file} | {caught} | {timeout} | {missed} | {unviable} |");
    };
    println!("\n| file | {} |\n| --- | --: | --: | --: | --: |", OUTCOMES.join(" | "));
    files.iter().for_each(|(file, counts)| row(&format!("`{file}`"), *counts));
    let total = [0, 1, 2, 3].map(|at| files.values().map(|counts| counts[at]).sum());
    row("all", total);
    let [caught, timeout, missed, unviable] = total;
    let ratio = (caught + timeout) as f64 / (caught + timeout + missed).max(1) as f64;
    let done = caught + timeout + missed + unviable;
    println!("\n{done} of {} run, {:.1} % caught", sample.len(), ratio * 100.0);
    if done < sample.len() || ratio < CAUGHT_RATIO_MIN {
        return Err(format!("wanted: all run, {:.0} % caught", CAUGHT_RATIO_MIN * 100.0));
    }
    Ok(())
}
