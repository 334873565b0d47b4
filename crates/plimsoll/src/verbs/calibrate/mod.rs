//! `plimsoll calibrate`: checks the instrument against servers of known behaviour on this host, by
//! the same code path as an ordinary run, and writes a certificate. `docs/calibration.md` explains
//! it.

mod bench;
mod hosts;
mod text;
mod wires;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use plimsoll_calibration::{FULL, Findings, QUICK, concerns, find};
use plimsoll_model::assignment::{Pacing, Priority};
use plimsoll_model::certificate::{CERTIFICATE_FORMAT, Certificate, CertifiedHost, Instrument};
use plimsoll_model::event::AgentOptions;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::DEFAULT_SEED;
use plimsoll_protocol::host::Registration;

use crate::exit::{Exit, Failure};
use crate::flags::values::{parse_share, parse_span_arg};
use crate::flags::{Progress, pacing};
use crate::interrupts;
use crate::terminal::{self, Live};
use bench::Bench;
use plimsoll_run::clock::{Stopwatch, unix_ns};
use plimsoll_run::coordinator::cores_of_program;
use plimsoll_run::coordinator::placement::{Placement, ServerLocation, choose_placement};
use plimsoll_run::{FailureKind, RunProgress as _, certificates, protocols};
use wires::{Requested, VERSIONS};

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Calibrate the hosts of these agents, as for run, each once; their certificates are kept here
    /// [default: this host]
    #[arg(long, value_name = "WHERE")]
    pub agents: Vec<String>,
    /// How long to wait for agents to arrive
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = parse_span_arg)]
    pub agents_wait: Nanos,
    /// Copy this program to agents' hosts that do not have it
    #[arg(long, requires = "agents")]
    pub deploy: bool,
    /// End when standard input ends
    #[arg(long, hide = true)]
    pub stop_with_stdin: bool,
    /// Two minutes instead of eight: less precise tails
    #[arg(long)]
    pub quick: bool,
    /// Protocols to speak; that of the calibrated server is always among them
    #[arg(long, value_parser = parse_protocol(), default_value = "all", value_name = "PROTOCOL")]
    pub protocol: String,
    /// Version of HTTP [default: 1.1 with --protocol http, all of them with --protocol all]
    #[arg(long, value_parser = PossibleValuesParser::new(VERSIONS), value_name = "VERSION")]
    pub http: Option<String>,
    /// Share of the full time to use
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share, hide = true)]
    pub scale: f64,
    /// Keep the bundles here; must be empty or absent [default: a temporary directory]
    #[arg(long, value_name = "DIR", conflicts_with = "agents")]
    pub out: Option<PathBuf>,
    /// One seed draws the same arrivals and service times again
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// Worker threads of the generator [default: depends on the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,
    /// How workers wait for the next due time
    #[arg(long, default_value = "auto", value_name = "HOW", value_parser = pacing())]
    pub pacing: Pacing,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
    /// Print the certificate as JSON on standard output, everything else on standard error; of
    /// agents' hosts a list
    #[arg(long)]
    pub json: bool,
}

impl CalibrateArgs {
    /// The agents on whose hosts calibration runs.
    pub(crate) fn options(&self) -> AgentOptions {
        let (at, wait) = (self.agents.clone(), self.agents_wait);
        AgentOptions { at, wait, deploy: self.deploy, min: None }
    }

    fn requested(&self) -> Requested<'_> {
        Requested { protocol: &self.protocol, http: self.http.as_deref() }
    }
}

/// The protocols that can be calibrated, and `all`.
fn parse_protocol() -> PossibleValuesParser {
    let able = protocols::all().filter(|one| !one.calibration.is_empty());
    let value = |one: &'static Registration| {
        let names: Vec<_> = one.calibration.iter().map(|wire| wire.name).collect();
        PossibleValue::new(one.protocol.name).help(format!("over {}", names.join(" and ")))
    };
    let all = PossibleValue::new("all").help("all of them");
    PossibleValuesParser::new(able.map(value).chain([all]))
}

/// Makes a certificate, keeps it and prints it.
pub(crate) fn perform(args: &CalibrateArgs) -> Result<Exit, Failure> {
    if let Some(refusal) = args.requested().refusal() {
        return Err(Failure::wrong(refusal));
    }
    let signals = interrupts::listen()?;
    if !args.agents.is_empty() {
        return hosts::perform(args, &signals);
    }
    if args.stop_with_stdin {
        interrupts::ask_when_stdin_ends(&signals)?;
    }
    let scratch;
    let dir = match &args.out {
        Some(out) => {
            plimsoll_model::bundle::BundleWriter::refuse_occupied(out)?;
            std::fs::create_dir_all(out).map_err(|e| {
                Failure::unusable(format!(
                    "{}: cannot make this directory: {e}; name one you can write to with --out",
                    out.display()
                ))
            })?;
            out.as_path()
        }
        None => {
            scratch = scratch_directory()?;
            scratch.path()
        }
    };
    let (placement, mut warnings) = settle(args)?;
    let mut live = Live::new(args.progress);
    let bench = Bench { dir, placement: &placement, seed: args.seed, signals: &signals };
    let timing = if args.quick { QUICK } else { FULL };
    let wires = args.requested().wires();
    let started = Stopwatch::start();
    let mut report = |text: &str| {
        live.line(&format!("{:>4} s  {text}", started.elapsed().as_secs()));
    };
    let findings = find(&bench, &timing.scaled(args.scale), &wires, &mut report);
    let findings = findings.map_err(|error| as_calibration_failure(error.into()))?;
    drop(live);
    warnings.extend(concerns(&findings));
    let certificate = certificate(args, &placement, findings, warnings);
    let kept = certificates::keep(&certificate);
    show(args, &certificate, kept);
    Ok(if certificate.all_held { Exit::Valid } else { Exit::Invalid })
}

fn scratch_directory() -> Result<tempfile::TempDir, Failure> {
    tempfile::Builder::new().prefix("plimsoll-calibrate-").tempdir().map_err(|e| {
        Failure::unusable(format!(
            "cannot make a temporary directory: {e}; set TMPDIR to one you can write to, or name \
             a place with --out"
        ))
    })
}

/// Converts a failure; Ctrl-C stays an interruption.
fn as_calibration_failure(failure: Failure) -> Failure {
    match failure.kind() {
        FailureKind::Interrupted => {
            Failure::interrupted("calibration interrupted; no certificate was made")
        }
        _ => failure,
    }
}

/// Cores for both sides, as in a run against a server started by it.
fn settle(args: &CalibrateArgs) -> Result<(Placement, Vec<String>), Failure> {
    // A run keeps its workers on the same cores: it sees where the server runs.
    let available = cores_of_program()?;
    let placement = choose_placement(available, &ServerLocation::Ours, args.workers, args.pacing);
    let mut warnings = Vec::new();
    if available.len() < 2 {
        warnings.push(
            "generator and calibrated server share the only core: each waits for the other, and \
             the figures say more of that than of the instrument"
                .to_owned(),
        );
    }
    if args.scale < 1.0 {
        warnings.push(format!(
            "every case was given {} of its time, to test the program: this certifies nothing of \
             the instrument; calibrate without --scale",
            args.scale
        ));
    }
    if cfg!(debug_assertions) {
        warnings.push("a debug build: slower than what is measured with".to_owned());
    }
    Ok((placement, warnings))
}

fn certificate(
    args: &CalibrateArgs,
    placement: &Placement,
    findings: Findings,
    warnings: Vec<String>,
) -> Certificate {
    let host = plimsoll_monitor::inventory(&[("here", Path::new("."))]);
    let Findings { floor, queues, closed, stall, punctual } = findings;
    let mut certificate = Certificate {
        format: CERTIFICATE_FORMAT,
        made_unix_ns: unix_ns(),
        host: CertifiedHost {
            name: certificates::host_name(),
            governor: certificates::governor(&host),
            processor: certificates::processor(&host),
            kernel: host.kernel,
            cpu_model: host.cpu_model,
            cpus_online: host.cpus_online,
        },
        instrument: Instrument {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug".into() } else { "release".into() },
            driver: "epoll".to_owned(),
            workers: placement.workers,
            pacing: placement.pacing.as_str().to_owned(),
            priority: certificates::priority_word(Priority::Auto).to_owned(),
            protocols: args.requested().spoken(),
            generator_cores: placement.generator_cores.clone(),
            server_cores: placement.server_cores.clone(),
        },
        seed: args.seed,
        quick: args.quick,
        time_share: args.scale,
        floor,
        queues,
        closed,
        stall,
        punctual,
        warnings,
        all_held: false,
    };
    certificate.all_held = certificate.broken().is_empty();
    certificate
}

fn show(args: &CalibrateArgs, certificate: &Certificate, kept: Result<PathBuf, String>) {
    let style = if args.json { terminal::stderr_style() } else { terminal::stdout_style() };
    let mut text = text::certificate(certificate, style);
    text.push_str(&text::kept(kept));
    if let Some(out) = &args.out {
        text.push_str(&format!("Bundles of the runs: {}\n", out.display()));
    }
    if args.json {
        terminal::note(text.trim_end());
        terminal::print(&certificates::json(certificate));
    } else {
        terminal::print(&text);
    }
}
