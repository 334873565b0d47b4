//! `cargo lab sizing`: what `plimsoll size` predicts for twice the CPU quota from a whole ladder,
//! compared with the measured peak, and from two fifths of the peak. And is a planted lock or pool
//! detected?

mod cases;

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
use plimsoll_smb::server::samba::{self, SambaRequest};
use serde_json::Value;
use xtask::verb::Result;
use xtask::workspace;

use crate::attribution::STAGED;
use crate::confinement::Group;
use crate::network::{Network, SERVER_CORE};
use crate::nginx::Nginx;
use crate::page::Table;
use crate::process::first_line;
use crate::{process, program};
use cases::{Case, Load, PLANTED, SOUND, Server};

const TABLE: Table<'static> = Table { page: "docs/sizing.md", name: "lab sizing" };
/// Shares of the peak at which the server is measured.
const SHARES: [f64; 4] = [0.1, 0.2, 0.3, 0.4];
const ROUNDS: usize = 3;
/// Largest error of a prediction, and the part of the intervals that may miss the truth.
const OFF_MAX_RATIO: f64 = 0.10;
const OUTSIDE_MAX_RATIO: f64 = 1.0 / 12.0;
const LADDER_WINDOW: &str = "profiles.quick.measure=\"3s\"";
/// Of a peak: eighty periods of the quota.
const PEAK_WINDOW: &str = "profiles.quick.measure=\"8s\"";
/// Of Samba's share, in memory.
const SHARE_BYTES: u64 = 1 << 30;
const RUN_LIMIT: Duration = Duration::from_secs(300);

/// Options of `cargo lab sizing`.
#[derive(Parser)]
pub struct Options {
    /// Servers whose names contain this.
    #[arg(long, value_name = "WORD", default_value = "", hide_default_value = true)]
    only: String,
    /// Program to measure instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Keep the bundles in this folder.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Replace the table in `docs/sizing.md`.
    #[arg(long)]
    write: bool,
    /// Further arguments for `plimsoll run`.
    #[arg(last = true)]
    more: Vec<String>,
}

/// Measures and predicts; an error where a prediction is too far off, intervals miss the truth too
/// often, or a planted limit is not noticed.
pub fn sizing(options: Options) -> Result<()> {
    let Options { only, program, keep, write, more } = options;
    if write {
        TABLE.check()?;
    }
    let program = program.map_or_else(program::plimsoll, Ok)?;
    let folder = program::temporary_in(&workspace::target())?;
    let scratch = keep.as_deref().unwrap_or(folder.path());
    let lab = Lab { program: &program, scratch, more: &more };
    let is_selected = |case: &&Case| case.name.contains(&only);
    let mut failures = Vec::new();
    let mut add = |text: &mut String, case: &Case, made: Result<(String, bool)>| {
        let (line, right) = made.unwrap_or_else(|problem| {
            eprintln!("not made: {} — {problem}", case.name);
            (String::new(), false)
        });
        failures.extend((!right).then_some(case.name));
        text.push_str(&line);
        eprint!("{line}");
    };
    let mut text = String::from(
        "| server | peak at 0.3, ops/s | at 0.6 predicted (95 %) | measured | off | from 10–40 % of \
         the load |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let (mut made, mut missed) = (0, 0);
    for case in SOUND.iter().filter(is_selected) {
        for _ in 0..ROUNDS {
            let round = lab.sound(case);
            made += 1;
            missed += usize::from(round.as_ref().is_ok_and(|round| !round.twice.contains_truth()));
            let line = |round: Round| (round.line(case.name), round.is_right());
            add(&mut text, case, round.map(line));
        }
    }
    text.push_str(
        "\n| planted | peak, ops/s | from the whole ladder | from 10–40 % of the load |\n\
         | --- | --- | --- | --- |\n",
    );
    for case in PLANTED.iter().filter(is_selected) {
        add(&mut text, case, lab.planted(case));
    }
    println!("{text}");
    if write {
        TABLE.write(&text)?;
    }
    if missed as f64 > OUTSIDE_MAX_RATIO * made as f64 {
        failures.push("intervals");
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("too far off, or not made: {}", failures.join(", "))),
    }
}

/// A peak as it was measured, and as it was predicted.
struct Pair {
    measured: f64,
    /// Value, low end, high end.
    predicted: [f64; 3],
    bound: String,
}

impl Pair {
    fn new(measured: f64, peak: &Value) -> Result<Self> {
        let figure = |name: &str| peak["ops_per_s"][name].as_f64();
        let figures = ["value", "low", "high"].map(figure);
        let [Some(value), Some(low), high] = figures else {
            return Err("no peak predicted".into());
        };
        let bound = peak["bound"].as_str().unwrap_or_default().to_owned();
        Ok(Self { measured, predicted: [value, low, high.unwrap_or(f64::INFINITY)], bound })
    }

    fn off(&self) -> f64 {
        self.predicted[0] / self.measured - 1.0
    }

    fn contains_truth(&self) -> bool {
        let [_, low, high] = self.predicted;
        (low..=high).contains(&self.measured)
    }

    fn text(&self) -> String {
        let [value, low, high] = self.predicted;
        match self.bound.as_str() {
            "at_least" => format!("at least {low:.0}"),
            "exact" => format!("{value:.0} ({low:.0}–{high:.0})"),
            other => other.to_owned(),
        }
    }
}

/// A server's peak, that of twice its quota, and what low loads say of the latter.
struct Round {
    peak: f64,
    twice: Pair,
    low: Option<Pair>,
}

impl Round {
    fn is_right(&self) -> bool {
        let Self { twice, low, .. } = self;
        let low_is_true = low.as_ref().is_none_or(|low| {
            low.bound == "at_least" && low.predicted[2].is_infinite() && low.contains_truth()
        });
        twice.bound == "exact" && twice.off().abs() <= OFF_MAX_RATIO && low_is_true
    }

    fn line(&self, name: &str) -> String {
        let Self { peak, twice, low } = self;
        let low = low.as_ref().map_or_else(|| "–".to_owned(), Pair::text);
        let (text, measured, off) = (twice.text(), twice.measured, twice.off() * 100.0);
        let missed = if twice.contains_truth() { "" } else { ", outside" };
        format!("| {name} | {peak:.0} | {text} | {measured:.0} | {off:+.1} %{missed} | {low} |\n")
    }
}

/// A server that was started; ends when it goes.
struct Started {
    pids: Vec<u32>,
    target: String,
    _server: Box<dyn Any>,
}

/// Loads of one size of a server.
struct Ladder {
    peak: f64,
    /// The low loads, then the peak.
    bundles: Vec<PathBuf>,
    /// A closed ladder has the peak among its loads.
    is_open: bool,
}

impl Ladder {
    fn low(&self) -> Option<&[PathBuf]> {
        self.is_open.then(|| &self.bundles[..1])
    }
}

/// Of a server in which something was planted.
struct Answer {
    text: String,
    noticed: bool,
}

impl Answer {
    fn new(sizing: &Value) -> Self {
        let named = sizing["unknown"].as_array().into_iter().flatten();
        let named = named.filter_map(|unknown| unknown["kind"].as_str());
        let named: Vec<&str> =
            named.filter(|kind| ["held_back", "waits", "queue"].contains(kind)).collect();
        let doubts = named.join(", ");
        let bound = sizing["peaks"][0]["bound"].as_str();
        let (text, noticed) = match (sizing["refused"].is_null(), bound) {
            (false, _) => ("refused".to_owned(), true),
            (true, Some("at_most")) => (format!("at most ({doubts})"), true),
            (true, None | Some("open")) => (format!("not known ({doubts})"), !named.is_empty()),
            (true, Some(bound)) => (format!("{bound} of its processors"), false),
        };
        Self { text, noticed }
    }
}

struct Lab<'l> {
    program: &'l Path,
    scratch: &'l Path,
    more: &'l [String],
}

impl Lab<'_> {
    fn sound(&self, case: &Case) -> Result<Round> {
        let started = self.start(case)?;
        let quota_us = case.quota_us.unwrap_or(100_000);
        let group = group(quota_us)?;
        // A helper may have ended since.
        let lives = |pid: &&u32| Path::new("/proc").join(pid.to_string()).exists();
        for pid in started.pids.iter().filter(lives) {
            group.add(*pid)?;
        }
        let ladder = self.ladder(case, &started)?;
        let sizing = self.sized(ladder.peak, &ladder.bundles)?;
        let low = ladder.low().map(|low| self.sized(ladder.peak, low)).transpose()?;
        // The same group with another quota.
        let _twice = self::group(2 * quota_us)?;
        let twice = self.peak(case, &started, &self.scratch.join("twice"))?;
        drop(started);
        let pair = |sizing: &Value| Pair::new(twice, &sizing["peaks"][1]);
        let low = low.as_ref().map(pair).transpose()?;
        Ok(Round { peak: ladder.peak, twice: pair(&sizing)?, low })
    }

    fn planted(&self, case: &Case) -> Result<(String, bool)> {
        let started = self.start(case)?;
        let ladder = self.ladder(case, &started)?;
        let whole = Answer::new(&self.sized(ladder.peak, &ladder.bundles)?);
        let low = ladder.low().map(|low| self.sized(ladder.peak, low)).transpose()?;
        let low = low.as_ref().map(Answer::new);
        let low = low.map_or_else(|| "–".to_owned(), |low| low.text);
        let line = format!("| {} | {:.0} | {} | {low} |\n", case.name, ladder.peak, whole.text);
        Ok((line, whole.noticed))
    }

    /// Loads below the peak, and one at which the server is saturated.
    fn ladder(&self, case: &Case, started: &Started) -> Result<Ladder> {
        let slug: String = case.name.chars().filter(char::is_ascii_alphanumeric).collect();
        let [low, high] = ["low", "peak"].map(|name| self.scratch.join(format!("{name}-{slug}")));
        let peak = self.peak(case, started, &high)?;
        let (loads, is_open) = match case.load {
            Load::Open { .. } => (SHARES.map(|share| (share * peak).round()).to_vec(), true),
            Load::Closed { clients_max } => {
                let doubled = std::iter::successors(Some(1), |clients| Some(2 * clients));
                let below = doubled.take_while(|clients| *clients <= clients_max);
                (below.map(f64::from).collect(), false)
            }
        };
        let loads: Vec<String> = loads.iter().map(f64::to_string).collect();
        self.measured(case, started, (&loads.join(","), LADDER_WINDOW), &low)?;
        Ok(Ladder { peak, bundles: vec![low, high], is_open })
    }

    /// The server's throughput under overload.
    fn peak(&self, case: &Case, started: &Started, bundle: &Path) -> Result<f64> {
        let load = match case.load {
            Load::Open { beyond_ops_per_s } => beyond_ops_per_s,
            Load::Closed { clients_max } => clients_max,
        };
        let result = self.measured(case, started, (&load.to_string(), PEAK_WINDOW), bundle)?;
        let achieved = result["points"][0]["achieved_ops_per_s"].as_f64();
        achieved.filter(|peak| *peak > 0.0).ok_or_else(|| "no peak".to_owned())
    }

    /// `plimsoll size` of these runs.
    fn sized(&self, peak: f64, bundles: &[PathBuf]) -> Result<Value> {
        let mut command = Command::new(self.program);
        let load = (0.6 * peak).to_string();
        command.arg("size").args(bundles).args(["--load", &load, "--json"]);
        let finished = process::run(&mut command, RUN_LIMIT, |_, _| ())?;
        eprintln!("{}", finished.errors);
        serde_json::from_str(&finished.output).map_err(|_| finished.failure())
    }

    fn measured(
        &self,
        case: &Case,
        started: &Started,
        (loads, window): (&str, &str),
        bundle: &Path,
    ) -> Result<Value> {
        let _ = fs::remove_dir_all(bundle);
        let [suite, options @ ..] = case.run else { return Err("no suite".to_owned()) };
        let suite = match suite.ends_with(".toml") {
            true => workspace::root().join(suite).display().to_string(),
            false => (*suite).to_owned(),
        };
        let mut command = Command::new(self.program);
        command.args(["run", &suite, &started.target, "--points", loads, "--progress", "none"]);
        command
            .args(["--profile", "quick", "--set", window])
            .args(options)
            .args(self.more)
            .arg("--out")
            .arg(bundle);
        let finished = process::run(&mut command, RUN_LIMIT, |_, _| ())?;
        program::result(bundle, &finished)
    }

    fn start(&self, case: &Case) -> Result<Started> {
        let (command, path) = match &case.server {
            Server::Nginx => {
                let nginx = Nginx::start(&Network::Host)?;
                let (pids, target) = (nginx.ids(), nginx.url("/1k"));
                return Ok(Started { pids, target, _server: Box::new(nginx) });
            }
            Server::Ganesha => {
                let cores = vec![SERVER_CORE];
                let request = GaneshaRequest { cores, ..GaneshaRequest::default() };
                let server = ganesha::start(&request).map_err(|e| e.to_string())?;
                let pids = server.pids().map_err(|e| e.to_string())?;
                let target = server.url();
                return Ok(Started { pids, target, _server: Box::new(server) });
            }
            Server::Samba => {
                let cores = vec![SERVER_CORE];
                let share_bytes = Some(SHARE_BYTES);
                let request = SambaRequest { cores, share_bytes, ..SambaRequest::default() };
                let server = samba::start(&request).map_err(|e| e.to_string())?;
                let pids = server.pids().map_err(|e| e.to_string())?;
                let target = server.url();
                return Ok(Started { pids, target, _server: Box::new(server) });
            }
            Server::Staged(arguments) => {
                let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
                let mut command = Command::new("taskset");
                command.args(["-c", &SERVER_CORE.to_string()]).arg(own).arg(STAGED);
                command.arg("127.0.0.1:0").args(arguments.split(' '));
                (command, None)
            }
            Server::Plimsoll(protocol, arguments) => {
                let mut command = Command::new(self.program);
                command.args(["serve", protocol, "--listen", "127.0.0.1:0"]).args(*arguments);
                command.env("TMPDIR", self.scratch);
                (command, Some(if *protocol == "web" { "bytes/100" } else { "" }))
            }
        };
        let (running, line) = first_line(command)?;
        let url = line.split_whitespace().find(|word| word.contains("://"));
        let target = match (path, url) {
            (None, _) => format!("http://127.0.0.1:{}/", line.trim()),
            (Some(path), Some(url)) => format!("{url}{path}"),
            (Some(_), None) => return Err(format!("no address in {line:?}")),
        };
        Ok(Started { pids: vec![running.0.id()], target, _server: Box::new(running) })
    }
}

fn group(quota_us: u32) -> Result<Group> {
    Group::new("cpu", &[("cpu.cfs_quota_us", quota_us.to_string())])
}
