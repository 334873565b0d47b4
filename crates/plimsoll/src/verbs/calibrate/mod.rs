//! `plimsoll calibrate`: holds the instrument against servers of known behaviour on this host, by
//! the path an ordinary run takes, and writes a certificate. `docs/calibration.md` explains it.

mod bench;
mod hosts;
mod text;
mod wires;

use std::path::Path;

use plimsoll_calibration::{FULL, Findings, QUICK, concerns, find};
use plimsoll_model::assignment::Priority;
use plimsoll_model::certificate::{CERTIFICATE_FORMAT, Certificate, CertifiedHost, Instrument};

use crate::certificates;
use crate::cli::CalibrateArgs;
use crate::clock::{Stopwatch, unix_ns};
use crate::coordinator::cores_of_program;
use crate::coordinator::placement::{Placement, ServerPlace, place};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::terminal::{self, Live};
use bench::Bench;

/// Makes a certificate, keeps it and prints it.
pub(crate) fn perform(args: &CalibrateArgs) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
    if !args.agents.is_empty() {
        return hosts::perform(args, &signals);
    }
    if args.stop_with_stdin {
        signals.ask_when_stdin_ends()?;
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
    let wires = wires::beside(&args.protocol);
    let started = Stopwatch::start();
    let mut say = |text: &str| {
        live.line(&format!("{:>4} s  {text}", started.elapsed().as_secs()));
    };
    let findings = find(&bench, &timing.scaled(args.scale), &wires, &mut say);
    let findings = findings.map_err(|error| in_our_words(error.into()))?;
    drop(live);
    warnings.extend(concerns(&findings));
    let certificate = certificate(args, &placement, findings, warnings);
    let kept = certificates::keep(&certificate);
    show(args, &certificate, kept);
    Ok(if certificate.all_held { Exit::Valid } else { Exit::Invalid })
}

fn scratch_directory() -> Result<tempfile::TempDir, Failure> {
    let made = tempfile::Builder::new().prefix("plimsoll-calibrate-").tempdir();
    made.map_err(|e| {
        Failure::unusable(format!(
            "cannot make a temporary directory: {e}; set TMPDIR to one you can write to, or name \
             a place with --out"
        ))
    })
}

/// Wherever Ctrl-C was heard.
fn in_our_words(failure: Failure) -> Failure {
    match failure.exit() {
        Exit::Interrupted => {
            Failure::interrupted("calibration interrupted; no certificate was made")
        }
        _ => failure,
    }
}

/// Cores for both sides, as a run against a server of ours has them.
fn settle(args: &CalibrateArgs) -> Result<(Placement, Vec<String>), Failure> {
    // A run keeps its workers on the same ones: it sees where the server was put.
    let available = cores_of_program()?;
    let placement = place(available, &ServerPlace::Ours, args.workers, args.pacing.into());
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
            protocols: wires::protocols_of(&args.protocol),
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

fn show(args: &CalibrateArgs, certificate: &Certificate, kept: Result<std::path::PathBuf, String>) {
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
