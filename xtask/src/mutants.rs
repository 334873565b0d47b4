//! `cargo xtask mutants`: does a test notice when a line of the engine or the analysis is wrong?
//! `docs/testing.md` says what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use plimsoll_engine::rng::{Random, Stream};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::{Value, json};

use crate::{Result, command, workspace};

/// What is mutated, and which of its tests judge: those that need neither sockets nor minutes.
struct Crate {
    name: &'static str,
    files: &'static [&'static str],
    tests: &'static [&'static str],
}

const CRATES: [Crate; 2] = [
    Crate {
        name: "plimsoll-engine",
        files: &["pacer.rs", "recorder.rs", "worker/*.rs"],
        tests: &["--lib", "--test", "schedule", "--test", "pipelines", "--test", "leaving"],
    },
    Crate {
        name: "plimsoll-analysis",
        files: &[
            "validity/*.rs",
            "times.rs",
            "blocks.rs",
            "stated.rs",
            "search.rs",
            "search/*.rs",
            "overall.rs",
        ],
        tests: &["--lib", "--", "--skip", "queueing::"],
    },
];

const FOLDER: &str = "target/mutants";
/// Mutants between two savings of what came out.
const CHUNK: usize = 20;
/// A sound run takes 3 s; a mutant that loops is stopped after this long.
const TIMEOUT_S: u32 = 60;
/// A mutant that loops may also fill the memory.
const MEMORY_BYTES_MAX: u64 = 8 << 30;
/// Less of the sample caught is an error.
const CAUGHT_RATIO_MIN: f64 = 0.9;

/// Runs a seeded sample of all mutants, on from where it was: those missed run again.
pub fn mutants(rest: &[&str]) -> Result<()> {
    let (mut seed, mut sample) = (1_u64, 300_usize);
    for pair in rest.chunks(2) {
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is not a number"));
        match pair {
            ["--seed", text] => seed = number(text)?,
            ["--sample", text] => sample = number(text)? as usize,
            _ => return Err("usage: cargo xtask mutants [--seed 1] [--sample 300]".to_owned()),
        }
    }
    if command::find("cargo-mutants").is_none() {
        return Err("cargo-mutants is missing; cargo install cargo-mutants --locked".to_owned());
    }
    let limit = Some(MEMORY_BYTES_MAX);
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit })
        .map_err(|e| format!("cannot limit the memory of mutants: {e}"))?;
    let tree = copy()?;
    let sample = pick(listed(&tree)?, seed, sample);
    let log = workspace::root().join(FOLDER).join(format!("seed-{seed}.jsonl"));
    let known = outcomes(&log)?;
    let settled =
        |name: &str| matches!(known.get(name).map(String::as_str), Some(CAUGHT | UNVIABLE));
    let run = |part: &Crate| {
        let of_part = sample.iter().filter(|name| name.contains(part.name));
        let left: Vec<&String> = of_part.filter(|name| !settled(name)).collect();
        left.chunks(CHUNK).try_for_each(|chunk| test(part, chunk, &tree, &log))
    };
    // A crate's mutant is no concern of the other's tests, so both work in one tree.
    thread::scope(|scope| {
        let runs = CRATES.each_ref().map(|part| scope.spawn(move || run(part)));
        runs.into_iter().try_for_each(|run| run.join().expect("a panic has been shown"))
    })?;
    judge(&sample, &outcomes(&log)?)
}

const CAUGHT: &str = "CaughtMutant";
const UNVIABLE: &str = "Unviable";
const SUMMARIES: [&str; 4] = [CAUGHT, "Timeout", "MissedMutant", UNVIABLE];

/// The workspace as it is now, beside it, so that it can be edited meanwhile. What has not changed
/// is left alone: it need not be built again.
fn copy() -> Result<PathBuf> {
    let tree = workspace::root().join(FOLDER).join("tree");
    for source in workspace::sources(workspace::root(), "")? {
        let to = tree.join(&source.path);
        let same = fs::read_to_string(&to).is_ok_and(|text| text == source.text);
        if !same {
            let fault = |e| format!("{}: {e}", to.display());
            fs::create_dir_all(to.parent().unwrap_or(&tree)).map_err(fault)?;
            fs::write(&to, source.text).map_err(fault)?;
        }
    }
    Ok(tree)
}

fn cargo_mutants(tree: &Path) -> std::process::Command {
    let mut cargo = command::cargo();
    cargo.current_dir(tree).env("CARGO_TARGET_DIR", tree.with_file_name("build"));
    cargo.args(["mutants", "--no-config", "--colors", "never"]);
    cargo
}

fn listed(tree: &Path) -> Result<Vec<String>> {
    let mut cargo = cargo_mutants(tree);
    cargo.args(["--list", "--json"]);
    for part in &CRATES {
        cargo.args(["--package", part.name]);
        cargo.args(part.files.iter().map(|file| format!("--file=crates/{}/src/{file}", part.name)));
    }
    let list: Vec<Value> = serde_json::from_str(&command::output(&mut cargo)?)
        .map_err(|e| format!("cargo mutants --list --json: {e}"))?;
    Ok(list.iter().filter_map(|mutant| Some(mutant["name"].as_str()?.to_owned())).collect())
}

/// By a draw of each one's own, so that a change to one function changes little of the sample.
fn pick(names: Vec<String>, seed: u64, sample: usize) -> Vec<String> {
    let mut alike: BTreeMap<u64, u64> = BTreeMap::new();
    let mut draw = |name: &str| {
        // FILE:LINE:COLUMN: WHAT, without line and column.
        let what = name.splitn(4, ':').enumerate().filter(|(at, _)| [0, 3].contains(at));
        let key = what.flat_map(|(_, text)| text.bytes()).fold(0xcbf2_9ce4_8422_2325, fnv_1a);
        let before = alike.entry(key).or_default();
        *before += 1;
        Random::new(seed, Stream::Script, key.wrapping_add(*before)).bits()
    };
    let mut drawn: Vec<(u64, String)> = names.into_iter().map(|n| (draw(&n), n)).collect();
    drawn.sort();
    drawn.into_iter().take(sample).map(|(_, name)| name).collect()
}

fn fnv_1a(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

fn test(part: &Crate, names: &[&String], tree: &Path, log: &Path) -> Result<()> {
    let out = tree.with_file_name(part.name);
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut cargo = cargo_mutants(tree);
    cargo.args(["--in-place", "--baseline", "skip", "--profile", "mutants", "--timeout"]);
    cargo.arg(TIMEOUT_S.to_string()).arg("--output").arg(&out).args(["--package", part.name]);
    cargo.args(names.iter().map(|name| format!("--re=^{}$", escaped(name))));
    // Its exit status tells what it found; what it could not do is missing in its outcomes.
    let _ = cargo.arg("--").args(part.tests).status();
    let file = out.join("mutants.out/outcomes.json");
    let fault = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let text = fs::read_to_string(&file).map_err(|e| fault(&e))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| fault(&e))?;
    let mut lines = String::new();
    for outcome in value["outcomes"].as_array().into_iter().flatten() {
        let (name, summary) = (&outcome["scenario"]["Mutant"]["name"], &outcome["summary"]);
        lines += &format!("{}\n", json!({ "name": name, "summary": summary }));
    }
    let mut log_file = fs::OpenOptions::new().create(true).append(true).open(log);
    let written = log_file.as_mut().map(|file| file.write_all(lines.as_bytes()));
    written.map(|_| ()).map_err(|e| format!("{}: {e}", log.display()))
}

fn escaped(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || " _/:".contains(c);
    name.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// What came out, by the mutant's name; the last line counts.
fn outcomes(log: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let entry = |line| {
        let value: Value = serde_json::from_str(line).ok()?;
        Some((value["name"].as_str()?.to_owned(), value["summary"].as_str()?.to_owned()))
    };
    let bad = |line| format!("{}: cannot read {line:?}; remove the line", log.display());
    text.lines().map(|line| entry(line).ok_or_else(|| bad(line))).collect()
}

fn judge(sample: &[String], outcomes: &BTreeMap<String, String>) -> Result<()> {
    let mut files: BTreeMap<&str, [usize; SUMMARIES.len()]> = BTreeMap::new();
    let mut survivors = Vec::new();
    for name in sample {
        let Some(summary) = outcomes.get(name) else { continue };
        let Some(at) = SUMMARIES.iter().position(|known| known == summary) else { continue };
        files.entry(name.split(':').next().unwrap_or(name)).or_default()[at] += 1;
        if at == 2 {
            survivors.push(name.as_str());
        }
    }
    println!(
        "\n| file | caught | timeout | missed | does not build |\n| --- | --: | --: | --: | --: |"
    );
    let mut total = [0; SUMMARIES.len()];
    for (file, counts) in &files {
        println!("| `{file}` | {} | {} | {} | {} |", counts[0], counts[1], counts[2], counts[3]);
        (0..total.len()).for_each(|at| total[at] += counts[at]);
    }
    println!("| all | {} | {} | {} | {} |", total[0], total[1], total[2], total[3]);
    println!("\nsurvivors:\n{}", survivors.join("\n"));
    let ratio = (total[0] + total[1]) as f64 / (total[0] + total[1] + total[2]).max(1) as f64;
    let done = total.iter().sum::<usize>();
    println!("\n{done} of {} run, {:.1} % caught", sample.len(), ratio * 100.0);
    if done < sample.len() || ratio < CAUGHT_RATIO_MIN {
        return Err(format!("wanted: all run, {:.0} % caught", CAUGHT_RATIO_MIN * 100.0));
    }
    Ok(())
}
