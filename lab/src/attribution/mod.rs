//! `cargo lab attribution`: is the right limit named? Runs whose limit was imposed, one or two at a
//! time, and what the program reported.

mod cases;
mod server;

use std::any::Any;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use xtask::verb::Result;
use xtask::workspace;

use crate::confinement::{Group, INSIDE, Namespace};
use crate::network::Network;
use crate::nginx::Nginx;
use crate::page::Table;
use crate::process::first_line;
use crate::remote::Remote;
use crate::{process, program};
use cases::{CASES, Case, Server};
use server::Staged;

/// Verb that makes this program the scripted server.
pub const STAGED: &str = "attribution-server";
/// The page that holds the tables.
const PAGE: &str = "docs/attribution.md";
/// Blocks are read from a file of this size.
const FILE_BYTES: usize = 64 * 1024 * 1024;
/// No run takes longer.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// Runs the scripted server.
pub fn serve(address: &str, arguments: &[String]) -> Result<()> {
    server::serve(address, Staged::parse(arguments)?)
}

/// Options of `cargo lab attribution`.
#[derive(Parser)]
pub struct Options {
    /// Cases whose names contain this.
    #[arg(long, value_name = "WORD", default_value = "", hide_default_value = true)]
    only: String,
    /// Put each server into a network namespace that is watched through its sshd alone.
    #[arg(long, value_parser = ["ssh"])]
    through: Option<String>,
    /// Program to measure instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Replace the table in docs/attribution.md.
    #[arg(long)]
    write: bool,
}

/// What came of one case.
struct Outcome {
    case: &'static Case,
    kind: String,
    location: String,
    also: Vec<String>,
    text: String,
}

impl Outcome {
    fn is_right(&self, disk: &str) -> bool {
        let location = self.case.location.replace("DISK", disk);
        match (self.case.also, self.also.as_slice()) {
            (None, []) => self.kind == self.case.kind && self.location.contains(&location),
            // Of two at once either may be named first.
            (Some(other), [also]) => {
                let named = [self.kind.as_str(), also];
                named == [self.case.kind, other] || named == [other, self.case.kind]
            }
            _ => false,
        }
    }

    fn word(&self, disk: &str) -> &'static str {
        match self.kind.as_str() {
            _ if self.is_right(disk) => "right",
            "unknown" => "unknown",
            _ => "WRONG",
        }
    }
}

/// Runs the cases and prints the table.
pub fn attribution(options: Options) -> Result<()> {
    let Options { only, through, program, write } = options;
    let program = program.map_or_else(program::plimsoll, Ok)?;
    let folder = program::temporary_in(&workspace::target())?;
    let blocks = folder.path().join("blocks");
    fs::write(&blocks, vec![7; FILE_BYTES]).map_err(|e| format!("{}: {e}", blocks.display()))?;
    let disk = Disk::from_path(folder.path())?;
    let remote = through.map(|_| Remote::new(folder.path(), "")).transpose()?;
    let runner = CaseRunner { program, scratch: folder.path(), disk: &disk, remote };
    let mut outcomes = Vec::new();
    let fits = |case: &&Case| runner.remote.is_none() || case.server.may_be_elsewhere();
    for case in CASES.iter().filter(|case| case.name.contains(&only)).filter(fits) {
        match runner.make(case) {
            Ok(outcome) => {
                let word = outcome.word(&disk.name);
                eprintln!("{word}: {} — {} {}", case.name, outcome.kind, outcome.text);
                outcomes.push(outcome);
            }
            Err(problem) => eprintln!("not made: {} — {problem}", case.name),
        }
    }
    let text = table(&outcomes, &disk.name);
    println!("{text}");
    if write {
        let name = match runner.remote {
            None => "attribution",
            Some(_) => "attribution through ssh",
        };
        Table { page: PAGE, name }.write(&text)?;
    }
    Ok(())
}

/// The disk of a directory: its name and number (`254:0`).
struct Disk {
    name: String,
    number: String,
}

impl Disk {
    fn from_path(path: &Path) -> Result<Self> {
        let device = rustix::fs::stat(path).map_err(|e| e.to_string())?.st_dev;
        let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let link = PathBuf::from(format!("/sys/dev/block/{number}"));
        let target = fs::read_link(&link).map_err(|e| format!("{}: {e}", link.display()))?;
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_default(), number })
    }
}

/// Where cases are made.
struct CaseRunner<'s> {
    program: PathBuf,
    scratch: &'s Path,
    disk: &'s Disk,
    /// Servers are in this namespace, and watched through it.
    remote: Option<Remote>,
}

/// A server that was started, and its target.
struct Started {
    /// Its process, which is the one that groups hold.
    pid: u32,
    target: String,
    /// Ends it when it goes.
    _server: Box<dyn Any>,
}

impl CaseRunner<'_> {
    fn make(&self, case: &'static Case) -> Result<Outcome> {
        let number = CASES.iter().position(|one| std::ptr::eq(one, case)).unwrap_or_default();
        let link = match (&case.server, &self.remote) {
            (Server::Shaped(..), None) => Some(Namespace::new(number)?),
            _ => None,
        };
        let namespace = link.as_ref().or(self.remote.as_ref().map(|remote| &remote.namespace));
        if let (Server::Shaped(rate, ..), Some(namespace)) = (&case.server, namespace) {
            namespace.shape(rate)?;
        }
        let started = self.start(case, namespace)?;
        let mut groups = Vec::new();
        for (controller, file, value) in case.groups {
            let value = value.replace("DISK", &self.disk.number);
            let group = Group::new(controller, &[(file, value)])?;
            if let Some(started) = &started {
                group.add(started.pid)?;
            }
            groups.push(group);
        }
        let outcome = self.run(case, started.as_ref());
        drop((started, groups));
        if let (Server::Shaped(..), Some(remote)) = (&case.server, &self.remote) {
            remote.namespace.unshape()?;
        }
        outcome
    }

    fn run(&self, case: &'static Case, started: Option<&Started>) -> Result<Outcome> {
        let (suite, target) = match (&case.server, started) {
            (Server::Managed(suite, target), _) => (*suite, *target),
            (_, Some(started)) => ("web-url", started.target.as_str()),
            _ => return Err("no server".to_owned()),
        };
        let (suite, options) = match case.run {
            [first, rest @ ..] if !first.starts_with("--") => (*first, rest),
            all => (suite, all),
        };
        let bundle = self.scratch.join("run");
        let _ = fs::remove_dir_all(&bundle);
        let mut command = match self.remote {
            // What would be another machine has the server's core for itself, and the program must
            // not see the server's processes but through ssh.
            Some(_) => {
                let mut command = Command::new("unshare");
                command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
                command.args(["taskset", "-c", "0"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(["run", suite, target, "--profile", "quick", "--progress", "none", "--json"]);
        command.args(options).arg("--out").arg(&bundle);
        if let Some(remote) = &self.remote {
            remote.watch(&mut command);
        }
        let throttle = case
            .generator_quota
            .map(|quota| Group::new("cpu", &[("cpu.cfs_quota_us", quota.to_owned())]));
        let throttle = throttle.transpose()?;
        let mut put_in = false;
        let finished = process::run(&mut command, RUN_LIMIT, |pid, since| {
            // The set-up is not what is to be slow.
            if !put_in && since > Duration::from_millis(800) {
                let mut all = std::iter::once(pid).chain(process::children(pid));
                put_in = throttle.as_ref().is_some_and(|group| all.all(|p| group.add(p).is_ok()));
            }
        })?;
        outcome(case, &program::result(&bundle, &finished)?)
    }

    /// The server, and where it is; the run starts a managed one itself.
    fn start(&self, case: &Case, namespace: Option<&Namespace>) -> Result<Option<Started>> {
        let address = namespace.map_or("127.0.0.1", |_| INSIDE);
        let command = |program: &Path| {
            namespace.map_or_else(|| Command::new(program), |namespace| namespace.inside(program))
        };
        let (command, protocol) = match &case.server {
            Server::Managed(..) => return Ok(None),
            Server::Nginx => {
                let nginx = Nginx::start(&Network::Host)?;
                let (pid, target) = (nginx.id(), nginx.url("/1k"));
                return Ok(Some(Started { pid, target, _server: Box::new(nginx) }));
            }
            Server::Staged(cores, arguments) | Server::Shaped(_, cores, arguments) => {
                let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
                let mut command = command(Path::new("taskset"));
                command.args(["-c", cores]).arg(own).arg(STAGED).arg(format!("{address}:0"));
                command.args(arguments.split(' '));
                command.arg(format!("file={}", self.scratch.join("blocks").display()));
                (command, None)
            }
            Server::Plimsoll(protocol, arguments) => {
                let mut command = command(&self.program);
                command.args(["serve", protocol, "--listen", &format!("{address}:0")]);
                command.args(*arguments).env("TMPDIR", self.scratch);
                (command, Some(*protocol))
            }
        };
        let (running, line) = first_line(command)?;
        let target = match protocol {
            None => format!("http://{address}:{}/", line.trim()),
            Some(protocol) => {
                let url = line.split_whitespace().find(|word| word.contains("://"));
                let url = url.ok_or_else(|| format!("no address in {line:?}"))?;
                if protocol == "web" { format!("{url}bytes/100") } else { url.to_owned() }
            }
        };
        let pid = running.0.id();
        Ok(Some(Started { pid, target, _server: Box::new(running) }))
    }
}

fn outcome(case: &'static Case, result: &Value) -> Result<Outcome> {
    let points = result["points"].as_array().ok_or("no points")?;
    let limit = &points.last().ok_or("no points")?["limit"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let also = limit["also"].as_array().into_iter().flatten();
    Ok(Outcome {
        case,
        kind: text(&limit["kind"]),
        location: text(&limit["place"]),
        also: also.map(|also| text(&also["kind"])).collect(),
        text: text(&limit["text"]),
    })
}

fn table(outcomes: &[Outcome], disk: &str) -> String {
    let mut text = String::from(
        "| staged | expected | named | place | verdict |\n| --- | --- | --- | --- | --- |\n",
    );
    for outcome in outcomes {
        let pair = |kind: &str, also: &[&str]| [&[kind], also].concat().join(" + ");
        let also: Vec<&str> = outcome.also.iter().map(String::as_str).collect();
        let expected: Vec<&str> = outcome.case.also.into_iter().collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            outcome.case.name,
            pair(outcome.case.kind, &expected),
            pair(&outcome.kind, &also),
            outcome.location,
            outcome.word(disk),
        ));
    }
    let count = |word: &str| outcomes.iter().filter(|outcome| outcome.word(disk) == word).count();
    text.push_str(&format!(
        "\n{} runs: {} right, {} unknown, {} wrong.\n",
        outcomes.len(),
        count("right"),
        count("unknown"),
        count("WRONG")
    ));
    text
}
