//! `cargo xtask mutants`: does a test notice when a line of the engine or the analysis is wrong?
//! `docs/testing.md` says what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_engine::rng::{Random, Stream};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, setrlimit};
use serde_json::Value;

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
        tests: &[
            "--lib",
            "--test",
            "schedule",
            "--test",
            "pipelines",
            "--test",
            "leaving",
            "--test",
            "accounts",
        ],
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
/// A sound run takes 3 s; a mutant that loops is stopped after this long.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A mutant that loops may also fill the memory.
const MEMORY_BYTES_MAX: u64 = 8 << 30;
/// Less of the sample caught is an error.
const CAUGHT_RATIO_MIN: f64 = 0.9;

/// A change to one place of a file, as `cargo mutants --list --json` describes it.
struct Mutant {
    name: String,
    file: String,
    /// Line and column of its first character, and of the one behind its last.
    span: [(usize, usize); 2],
    replacement: String,
}

/// What a mutant came to.
const CAUGHT: &str = "caught";
const TIMED_OUT: &str = "timeout";
const MISSED: &str = "missed";
const UNVIABLE: &str = "does not build";
const OUTCOMES: [&str; 4] = [CAUGHT, TIMED_OUT, MISSED, UNVIABLE];

/// Runs a seeded sample of all mutants, on from where it was: those not caught run again.
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
    let log = workspace::root().join(FOLDER).join(format!("seed-{seed}.tsv"));
    let known = outcomes(&log);
    let run = |part: &Crate| {
        let of_part = sample.iter().filter(|mutant| mutant.file.contains(part.name));
        let known = |mutant: &Mutant| known.get(&mutant.name).map(String::as_str);
        let (again, new): (Vec<_>, Vec<_>) = of_part
            .filter(|mutant| !matches!(known(mutant), Some(CAUGHT | UNVIABLE)))
            .partition(|mutant| known(mutant).is_some());
        new.into_iter().chain(again).try_for_each(|mutant| {
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
    judge(&sample, &outcomes(&log))
}

fn fault(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The workspace as it is now, beside it, so that it can be edited meanwhile. What has not changed
/// is left alone: it need not be built again.
fn copy() -> Result<PathBuf> {
    let tree = workspace::root().join(FOLDER).join("tree");
    for source in workspace::sources(workspace::root(), "")? {
        let to = tree.join(&source.path);
        let same = fs::read_to_string(&to).is_ok_and(|text| text == source.text);
        if !same {
            fs::create_dir_all(to.parent().unwrap_or(&tree)).map_err(|e| fault(&to, e))?;
            fs::write(&to, source.text).map_err(|e| fault(&to, e))?;
        }
    }
    Ok(tree)
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
        cargo.args(part.files.iter().map(|file| format!("--file=crates/{}/src/{file}", part.name)));
    }
    let list: Vec<Value> = serde_json::from_str(&command::output(&mut cargo)?)
        .map_err(|e| format!("cargo mutants --list --json: {e}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let place = |value: &Value| {
        let number = |value: &Value| value.as_u64().unwrap_or_default() as usize;
        (number(&value["line"]), number(&value["column"]))
    };
    let mutant = |value: &Value| Mutant {
        name: text(&value["name"]),
        file: text(&value["file"]),
        span: [place(&value["span"]["start"]), place(&value["span"]["end"])],
        replacement: text(&value["replacement"]),
    };
    Ok(list.iter().map(mutant).collect())
}

/// By a draw of each one's own, so that a change to one function changes little of the sample.
fn pick(all: Vec<Mutant>, seed: u64, sample: usize) -> Vec<Mutant> {
    let mut alike: BTreeMap<u64, u64> = BTreeMap::new();
    let mut draw = |name: &str| {
        // FILE:LINE:COLUMN: WHAT, without line and column.
        let what = name.splitn(4, ':').enumerate().filter(|(at, _)| [0, 3].contains(at));
        let key = what.flat_map(|(_, text)| text.bytes()).fold(0xcbf2_9ce4_8422_2325, fnv_1a);
        let before = alike.entry(key).or_default();
        *before += 1;
        Random::new(seed, Stream::Script, key.wrapping_add(*before)).bits()
    };
    let mut drawn: Vec<(u64, Mutant)> = all.into_iter().map(|m| (draw(&m.name), m)).collect();
    drawn.sort_by_key(|(draw, _)| *draw);
    drawn.into_iter().take(sample).map(|(_, mutant)| mutant).collect()
}

fn fnv_1a(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Puts the mutant into the tree, asks the tests, and takes it out again.
fn test(part: &Crate, mutant: &Mutant, tree: &Path) -> Result<&'static str> {
    let path = tree.join(&mutant.file);
    let text = fs::read_to_string(&path).map_err(|e| fault(&path, e))?;
    let at = |(line, column): (usize, usize)| {
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
    let test = ["test", "--quiet", "--profile", "mutants", "--package", part.name];
    if run_for(cargo(tree).args(test).arg("--no-run").args(part.tests), Duration::MAX)?
        != Some(true)
    {
        return Ok(UNVIABLE);
    }
    Ok(match run_for(cargo(tree).args(test).args(part.tests), TIMEOUT)? {
        Some(true) => MISSED,
        Some(false) => CAUGHT,
        None => TIMED_OUT,
    })
}

/// Did it succeed? `None` when it was stopped, with all it started.
fn run_for(command: &mut Command, limit: Duration) -> Result<Option<bool>> {
    let shown = command::shown(command);
    let failed = |e| format!("{shown}: {e}");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let begin = now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(Some(status.success()));
        }
        if begin.elapsed() > limit {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// By the mutant's name; the last line counts.
fn outcomes(log: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let entries = text.lines().filter_map(|line| line.split_once('\t'));
    entries.map(|(outcome, name)| (name.to_owned(), outcome.to_owned())).collect()
}

fn judge(sample: &[Mutant], outcomes: &BTreeMap<String, String>) -> Result<()> {
    let mut files: BTreeMap<&str, [usize; OUTCOMES.len()]> = BTreeMap::new();
    for Mutant { name, file, .. } in sample {
        let Some(outcome) = outcomes.get(name) else { continue };
        let Some(at) = OUTCOMES.iter().position(|known| known == outcome) else { continue };
        files.entry(file).or_default()[at] += 1;
        if outcome == MISSED {
            println!("missed: {name}");
        }
    }
    println!("\n| file | {} |\n| --- | --: | --: | --: | --: |", OUTCOMES.join(" | "));
    let mut total = [0; OUTCOMES.len()];
    for (file, [caught, timeout, missed, unviable]) in &files {
        println!("| `{file}` | {caught} | {timeout} | {missed} | {unviable} |");
    }
    files.values().for_each(|counts| (0..counts.len()).for_each(|at| total[at] += counts[at]));
    let [caught, timeout, missed, unviable] = total;
    println!("| all | {caught} | {timeout} | {missed} | {unviable} |");
    let ratio = (caught + timeout) as f64 / (caught + timeout + missed).max(1) as f64;
    let done = caught + timeout + missed + unviable;
    println!("\n{done} of {} run, {:.1} % caught", sample.len(), ratio * 100.0);
    if done < sample.len() || ratio < CAUGHT_RATIO_MIN {
        return Err(format!("wanted: all run, {:.0} % caught", CAUGHT_RATIO_MIN * 100.0));
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a developer command limits its own steps")]
fn now() -> Instant {
    Instant::now()
}
