//! `plimsoll calibrate --agents`: each agent's host calibrates itself. Its certificate is kept on
//! this host, for the disclosure of runs with agents there.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use plimsoll_fleet::launcher::child::{AgentProcess, ChildEvent, End, end_all};
use plimsoll_fleet::launcher::command::LaunchCommand;
use plimsoll_fleet::launcher::explain::explain;
use plimsoll_fleet::launcher::spec::AgentSpec;
use plimsoll_model::certificate::{CERTIFICATE_FORMAT, Certificate};
use plimsoll_run::fleet::{Fleet, own_program};
use plimsoll_run::{Signals, certificates};

use super::{CalibrateArgs, text};
use crate::exit::{Exit, Failure};
use crate::terminal::{self, Live};

/// Longest certificate that is read; one of all protocols has 30 KB.
const CERTIFICATE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Interval of checks for Ctrl-C.
const LOOK_UP: Duration = Duration::from_millis(100);

/// A host that calibrates itself.
struct Calibrating {
    spec: AgentSpec,
    /// Its output so far.
    printed: Vec<u8>,
    end: Option<End>,
}

/// Calibrates all hosts at the same time.
pub(super) fn perform(args: &CalibrateArgs, signals: &Signals) -> Result<Exit, Failure> {
    let specs = one_a_host(args, signals)?;
    let program = own_program()?;
    let (events, heard) = channel();
    let mut processes = Vec::new();
    for (at, spec) in specs.iter().enumerate() {
        processes.push(start(at, spec, args, (&program, &events))?);
    }
    drop(events);
    let of = |spec| Calibrating { spec, printed: Vec::new(), end: None };
    let mut hosts: Vec<Calibrating> = specs.into_iter().map(of).collect();
    let heard_all = listen(&mut hosts, &heard, signals);
    end_all(&mut processes);
    heard_all?;
    finish(&hosts, args)
}

/// The first agent of each host. The agents have ended when this returns: their cores are free.
fn one_a_host(args: &CalibrateArgs, signals: &Signals) -> Result<Vec<AgentSpec>, Failure> {
    let mut live = Live::new(args.progress);
    let fleet = Fleet::launch(&args.options(), None, (signals, &mut live))?;
    let mut hosts = BTreeSet::new();
    let first = fleet.living().filter(|(_, member)| {
        let greeting = member.greeting.as_ref();
        greeting.is_some_and(|greeting| hosts.insert(greeting.boot_id.clone()))
    });
    Ok(first.map(|(_, member)| member.spec.clone()).collect())
}

fn start(
    at: usize,
    spec: &AgentSpec,
    args: &CalibrateArgs,
    (program, events): (&PathBuf, &Sender<(usize, ChildEvent)>),
) -> Result<AgentProcess, Failure> {
    let arguments = arguments(args);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let command = LaunchCommand::verb(spec, program, &arguments);
    let events = events.clone();
    let sink = move |event| {
        let _ = events.send((at, event));
    };
    AgentProcess::start(&command, Box::new(sink))
        .map_err(|e| Failure::unusable(format!("agent {}: {e}", spec.name)))
}

/// Arguments of each host's calibration: those of this program.
fn arguments(args: &CalibrateArgs) -> Vec<String> {
    let CalibrateArgs { quick, protocol, http, scale, seed, workers, pacing, .. } = args;
    let mut all: Vec<String> = ["calibrate", "--json", "--stop-with-stdin", "--progress", "plain"]
        .map(String::from)
        .into();
    all.extend(["--protocol".to_owned(), protocol.clone()]);
    all.extend(http.iter().flat_map(|version| ["--http".to_owned(), version.clone()]));
    all.extend(["--scale".to_owned(), scale.to_string(), "--seed".to_owned(), seed.to_string()]);
    all.extend(["--pacing".to_owned(), pacing.as_str().to_owned()]);
    all.extend(quick.then(|| "--quick".to_owned()));
    all.extend(workers.iter().flat_map(|n| ["--workers".to_owned(), n.to_string()]));
    all
}

/// Reads until all have ended.
fn listen(
    hosts: &mut [Calibrating],
    heard: &Receiver<(usize, ChildEvent)>,
    signals: &Signals,
) -> Result<(), Failure> {
    while hosts.iter().any(|host| host.end.is_none()) {
        if signals.is_stop_requested() {
            return Err(Failure::interrupted("calibration interrupted; no certificate was kept"));
        }
        let Ok((at, event)) = heard.recv_timeout(LOOK_UP) else { continue };
        let host = &mut hosts[at];
        match event {
            ChildEvent::Line(line) => {
                terminal::note(&format!("agent {}: {line}", host.spec.name));
            }
            ChildEvent::Bytes(bytes) => {
                let room = CERTIFICATE_BYTES_MAX.saturating_sub(host.printed.len());
                host.printed.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            ChildEvent::Ended(end) => host.end = Some(end),
        }
    }
    Ok(())
}

/// Keeps and prints the certificates; names hosts that delivered none.
fn finish(hosts: &[Calibrating], args: &CalibrateArgs) -> Result<Exit, Failure> {
    let (mut certificates, mut missing) = (Vec::new(), Vec::new());
    for host in hosts {
        match certificate(host) {
            Ok(certificate) => certificates.push(certificate),
            Err(why) => missing.push(format!("agent {}: {why}", host.spec.name)),
        }
    }
    for certificate in &certificates {
        let kept = certificates::keep(certificate);
        if args.json {
            terminal::note(&text::kept(kept));
        } else {
            let text = text::certificate(certificate, terminal::stdout_style());
            terminal::print(&(text + &text::kept(kept)));
        }
    }
    if args.json {
        terminal::print(&certificates::json(&certificates));
    }
    match missing.is_empty() {
        true if certificates.iter().all(|certificate| certificate.all_held) => Ok(Exit::Valid),
        true => Ok(Exit::Invalid),
        false => Err(Failure::unusable(missing.join("\n"))),
    }
}

fn certificate(host: &Calibrating) -> Result<Certificate, String> {
    let read = serde_json::from_slice::<Certificate>(&host.printed);
    match (read, &host.end) {
        (Ok(certificate), _) if certificate.format == CERTIFICATE_FORMAT => Ok(certificate),
        (Ok(_), _) => Err("its certificate has another format; use the same release there".into()),
        (Err(_), Some(end)) => {
            Err(format!("it made no certificate: {}", explain(&host.spec.launcher, end)))
        }
        (Err(_), None) => Err("it made no certificate".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use plimsoll_model::assignment::Pacing;

    use super::*;
    use crate::verbs::{Cli, Verb};

    fn read(arguments: &[String]) -> CalibrateArgs {
        let line = std::iter::once("plimsoll".to_owned()).chain(arguments.iter().cloned());
        match Cli::parse_from(line).verb {
            Verb::Calibrate(args) => args,
            _ => panic!("{arguments:?} is another verb"),
        }
    }

    #[test]
    fn a_host_is_asked_for_what_this_program_was() {
        let line = "calibrate --agents local --quick --protocol http --http 2 --scale 0.5 --seed 7 \
                     --workers 3 --pacing precise";
        let tokens: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let there = read(&arguments(&read(&tokens)));
        assert!(there.json && there.stop_with_stdin && there.quick && there.agents.is_empty());
        let requested = (there.protocol.as_str(), there.scale, there.seed, there.workers);
        assert_eq!(requested, ("http", 0.5, 7, Some(3)));
        assert_eq!(there.http.as_deref(), Some("2"));
        assert_eq!(there.pacing, Pacing::Precise);
    }
}
