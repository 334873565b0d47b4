//! `cargo lab sizing`: what `plimsoll size` predicts from two fifths of a server's peak, compared
//! with the measured peak, and with that of twice the quota. And is a planted lock or pool
//! detected?

mod cases;

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use plimsoll_nfs::server::ganesha::{self, GaneshaRequest};
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
use cases::{Case, PLANTED, SOUND, Server};

const TABLE: Table<'static> = Table { page: "docs/sizing.md", name: "lab sizing" };
/// Shares of the peak at which the server is measured.
const SHARES: [f64; 6] = [0.1, 0.16, 0.22, 0.28, 0.34, 0.4];
/// A scripted server does not live long.
const SHARES_STAGED: [f64; 4] = [0.1, 0.2, 0.3, 0.4];
/// Largest error of the prediction: of the peak, and of that of twice the quota.
const OFF_MAX_RATIO: [f64; 2] = [0.10, 0.15];
const WINDOW: [&str; 4] = ["--profile", "quick", "--set", "profiles.quick.measure=8s"];
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

/// Measures and predicts; an error where a prediction is too far off, or a planted limit is not
/// owned up to.
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
    let mut text = String::from(
        "| server | peak, ops/s | predicted (95 %) | off | of twice the quota | predicted (95 %) | \
         off |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for case in SOUND.iter().filter(is_selected) {
        match lab.sound(case) {
            Ok(row) => {
                failures.extend((!row.holds()).then_some(case.name));
                text.push_str(&row.line(case.name));
            }
            Err(problem) => {
                eprintln!("not made: {} — {problem}", case.name);
                failures.push(case.name);
            }
        }
        eprintln!("{}", text.lines().last().unwrap_or_default());
    }
    text.push_str(
        "\n| planted | peak, ops/s | predicted of its processors | said |\n\
         | --- | --- | --- | --- |\n",
    );
    for case in PLANTED.iter().filter(is_selected) {
        match lab.planted(case) {
            Ok((line, owned)) => {
                failures.extend((!owned).then_some(case.name));
                text.push_str(&line);
            }
            Err(problem) => {
                eprintln!("not made: {} — {problem}", case.name);
                failures.push(case.name);
            }
        }
        eprintln!("{}", text.lines().last().unwrap_or_default());
    }
    println!("{text}");
    if write {
        TABLE.write(&text)?;
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

    fn cells(&self) -> String {
        let [value, low, high] = self.predicted;
        let text = match self.bound.as_str() {
            "at_least" => format!("at least {low:.0} ({value:.0} by the law)"),
            "at_most" => format!("at most {value:.0} ({low:.0}–{high:.0})"),
            _ => format!("{value:.0} ({low:.0}–{high:.0})"),
        };
        format!("{:.0} | {text} | {:+.1} %", self.measured, self.off() * 100.0)
    }
}

/// The peak of a server, and that of twice its quota.
struct Row([Pair; 2]);

impl Row {
    fn holds(&self) -> bool {
        let within = |(pair, most): (&Pair, f64)| match pair.bound.as_str() {
            "exact" => pair.off().abs() <= most,
            "at_least" => pair.measured >= pair.predicted[1],
            _ => false,
        };
        self.0.iter().zip(OFF_MAX_RATIO).all(within)
    }

    fn line(&self, name: &str) -> String {
        format!("| {name} | {} | {} |\n", self.0[0].cells(), self.0[1].cells())
    }
}

/// A server that was started; ends when it goes.
struct Started {
    pids: Vec<u32>,
    target: String,
    _server: Box<dyn Any>,
}

struct Lab<'l> {
    program: &'l Path,
    scratch: &'l Path,
    more: &'l [String],
}

impl Lab<'_> {
    fn sound(&self, case: &Case) -> Result<Row> {
        let started = self.start(case)?;
        let quota_us = case.quota_us.unwrap_or(100_000);
        let group = group(quota_us)?;
        for pid in &started.pids {
            group.add(*pid)?;
        }
        let peak = self.peak(case, &started)?;
        let sizing = self.sized(case, &started, peak, &SHARES)?;
        let peaks = &sizing["peaks"];
        let first = Pair::new(peak, &peaks[0])?;
        // The same group with another quota.
        let _twice = self::group(2 * quota_us)?;
        let second = Pair::new(self.peak(case, &started)?, &peaks[1])?;
        drop(started);
        Ok(Row([first, second]))
    }

    fn planted(&self, case: &Case) -> Result<(String, bool)> {
        let started = self.start(case)?;
        let peak = self.peak(case, &started)?;
        let sizing = self.sized(case, &started, peak, &SHARES_STAGED)?;
        let predicted = &sizing["peaks"][0];
        let doubts = ["held_back", "waits", "queue"];
        let named: Vec<&str> = sizing["unknown"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|unknown| unknown["kind"].as_str())
            .filter(|kind| doubts.contains(kind))
            .collect();
        let (answer, owned) = match (sizing["refused"].is_null(), predicted["bound"].as_str()) {
            (false, _) => ("refused".to_owned(), true),
            (true, Some("at_most")) => (format!("at most ({})", named.join(", ")), true),
            (true, None | Some("open")) => (format!("not known ({})", named.join(", ")), true),
            (true, Some(_)) => ("its processors alone".to_owned(), false),
        };
        let value = predicted["ops_per_s"]["value"].as_f64();
        let value = value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"));
        Ok((format!("| {} | {peak:.0} | {value} | {answer} |\n", case.name), owned))
    }

    /// The server's throughput under overload.
    fn peak(&self, case: &Case, started: &Started) -> Result<f64> {
        let bundle = self.scratch.join("peak");
        let loads = case.beyond_ops_per_s.to_string();
        let result = self.measured(case, started, &loads, &bundle)?;
        let achieved = result["points"][0]["achieved_ops_per_s"].as_f64();
        achieved.filter(|peak| *peak > 0.0).ok_or_else(|| "no peak".to_owned())
    }

    /// `plimsoll size` of a run at these shares of the peak.
    fn sized(&self, case: &Case, started: &Started, peak: f64, shares: &[f64]) -> Result<Value> {
        let slug: String = case.name.chars().filter(char::is_ascii_alphanumeric).collect();
        let bundle = self.scratch.join(format!("low-{slug}"));
        let loads: Vec<String> =
            shares.iter().map(|share| (share * peak).round().to_string()).collect();
        self.measured(case, started, &loads.join(","), &bundle)?;
        let mut command = Command::new(self.program);
        command.arg("size").arg(&bundle).args(["--load", &(0.6 * peak).to_string(), "--json"]);
        let finished = process::run(&mut command, RUN_LIMIT, |_, _| ())?;
        eprintln!("{}", finished.errors);
        serde_json::from_str(&finished.output).map_err(|_| finished.failure())
    }

    fn measured(
        &self,
        case: &Case,
        started: &Started,
        loads: &str,
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
        command.args(WINDOW).args(options).args(self.more).arg("--out").arg(bundle);
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
