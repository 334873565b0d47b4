//! `plimsoll calibrate`: holds the instrument against servers of known behaviour on this host, by
//! the path an ordinary run takes, and writes a certificate. `docs/calibration.md` explains it.

mod bench;
mod cases;
mod judge;
mod open;
mod over;
mod pauses;
mod punctual;
mod readings;
mod server_log;
mod text;
mod wire;
mod witness;

use std::path::Path;

use plimsoll_model::assignment::Priority;
use plimsoll_model::certificate::{
    CERTIFICATE_FORMAT, Certificate, CertifiedHost, ClosedCase, Floor, Instrument, PunctualRate,
    QueueCase, StallCase, Statistic,
};
use plimsoll_model::units::{Nanos, grouped};

use crate::certificates;
use crate::cli::CalibrateArgs;
use crate::coordinator::clock::{Stopwatch, unix_ns};
use crate::coordinator::cores_of_program;
use crate::coordinator::placement::{Placement, ServerPlace, place};
use crate::coordinator::signals::Signals;
use crate::exit::{Exit, Failure};
use crate::terminal::{self, Live};
use bench::Bench;
use wire::Wire;

/// For how long each case is held.
struct Timing {
    warm_up: Nanos,
    floor: Nanos,
    window: Nanos,
    closed: Nanos,
    stall: Nanos,
    over_warm_up: Nanos,
    over_constant: Nanos,
    over_queue: Nanos,
    probe_warm_up: Nanos,
    probe: Nanos,
}

/// About eight minutes.
const FULL: Timing = Timing {
    warm_up: Nanos::from_secs(2),
    floor: Nanos::from_secs(10),
    window: Nanos::from_secs(30),
    closed: Nanos::from_secs(20),
    stall: Nanos::from_secs(15),
    over_warm_up: Nanos::from_secs(2),
    over_constant: Nanos::from_secs(10),
    over_queue: Nanos::from_secs(20),
    probe_warm_up: Nanos::from_millis(500),
    probe: Nanos::from_secs(2),
};

/// Under two minutes.
const QUICK: Timing = Timing {
    warm_up: Nanos::from_millis(700),
    floor: Nanos::from_secs(3),
    window: Nanos::from_secs(3),
    closed: Nanos::from_secs(3),
    stall: Nanos::from_secs(5),
    over_warm_up: Nanos::from_millis(800),
    over_constant: Nanos::from_secs(2),
    over_queue: Nanos::from_secs(3),
    probe_warm_up: Nanos::from_millis(200),
    probe: Nanos::from_millis(800),
};

impl Timing {
    /// Everything shorter, for tests of the program.
    fn scaled(&self, scale: f64) -> Self {
        let short = |span: Nanos| Nanos::from_secs_f64(span.as_secs_f64() * scale);
        Self {
            warm_up: short(self.warm_up),
            floor: short(self.floor),
            window: short(self.window),
            closed: short(self.closed),
            stall: short(self.stall),
            over_warm_up: short(self.over_warm_up),
            over_constant: short(self.over_constant),
            over_queue: short(self.over_queue),
            probe_warm_up: short(self.probe_warm_up),
            probe: short(self.probe),
        }
    }
}

/// A quiet host stays below it, virtual machines included.
const FLOOR_P99_QUIET: Nanos = Nanos::from_millis(1);

/// What all cases found.
struct Findings {
    floor: Floor,
    queues: Vec<QueueCase>,
    closed: ClosedCase,
    stall: StallCase,
    punctual: PunctualRate,
}

/// Makes a certificate, keeps it and prints it.
pub(crate) fn perform(args: &CalibrateArgs) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
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
    let timing = if args.quick { &QUICK } else { &FULL };
    let wires = Wire::beside(&args.protocol);
    let findings = find(&bench, &timing.scaled(args.scale), &wires, &mut live);
    let findings = findings.map_err(in_our_words)?;
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

/// All cases, one after the other.
fn find(
    bench: &Bench<'_>,
    timing: &Timing,
    wires: &[Wire],
    live: &mut Live,
) -> Result<Findings, Failure> {
    let started = Stopwatch::start();
    let mut say = |text: &str| {
        live.line(&format!("{:>4} s  {text}", started.elapsed().as_secs()));
    };
    say("the way there and back: a server where nobody waits");
    let way = cases::there_and_back(bench, timing)?;
    let mut queues = Vec::new();
    for index in 0..cases::queue_count() {
        say(&format!("{} at 30, 60 and 90 % of its capacity", cases::queue_name(index)));
        queues.extend(cases::queue(bench, timing, index, &way)?);
    }
    say("a worker that looks for replies now and then");
    queues.push(cases::unread(bench, timing, &way)?);
    for wire in wires {
        say(&format!("over {}: a constant delay, and a queue", wire.name()));
        queues.extend(over::cases(bench, timing, (*wire, &way))?);
    }
    say("clients that wait and think");
    let closed = cases::closed(bench, timing, &way.floor)?;
    say("a server that pauses for 1.4 s");
    let stall = cases::stall(bench, timing)?;
    let punctual = punctual::search(bench, timing, |rate| {
        say(&format!("does it send on time at {} ops/s?", grouped(rate)));
    })?;
    Ok(Findings { floor: way.floor, queues, closed, stall, punctual })
}

/// What the findings themselves warn of.
fn concerns(findings: &Findings) -> Vec<String> {
    let mut concerns = Vec::new();
    if findings.floor.ops == 0 {
        concerns.push("no op came back from a server where nobody waits".to_owned());
    }
    let p99 = findings.floor.under(Statistic::P99);
    if p99 > FLOOR_P99_QUIET {
        concerns.push(format!(
            "there and back takes {p99} at p99: the host was busy with something else, and what \
             is allowed is wider by as much, or left unjudged; make another certificate when it is quiet"
        ));
    }
    if findings.punctual.highest_ops_per_s.is_none() {
        concerns.push(format!(
            "no rate was sent on time (send lag p99 below {}): is the host busy with something \
             else?",
            findings.punctual.send_lag_p99_max_ns
        ));
    }
    concerns
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
            protocols: wire::protocols_of(&args.protocol),
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
    certificate.all_held = certificate.judgements().iter().all(|(_, held)| *held);
    certificate
}

fn show(args: &CalibrateArgs, certificate: &Certificate, kept: Result<std::path::PathBuf, String>) {
    let style = if args.json { terminal::stderr_style() } else { terminal::stdout_style() };
    let mut text = text::certificate(certificate, style);
    match kept {
        Ok(path) => text.push_str(&format!("Kept as {}\n", path.display())),
        Err(why) => text.push_str(&format!("warning: the certificate is not kept: {why}\n")),
    }
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
