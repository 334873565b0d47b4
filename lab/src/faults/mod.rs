//! `cargo lab faults`: does the certificate refuse an instrument that is broken?
//!
//! Each fault is a patch in `lab/faults/`, applied to a copy of the sources below `target/`. The
//! program built from it calibrates itself, and must be refused by the judgements that are there to
//! see that fault, while the unpatched program holds.

mod list;
mod scratch;

use std::path::Path;
use std::process::Command;

use clap::Parser;
use plimsoll_model::certificate::Certificate;
use xtask::verb::Result;
use xtask::{command, workspace};

use crate::page::Table;
use list::{Broken, Calibration, FAULTS, Fault};
use scratch::Scratch;

const TABLE: Table<'_> = Table { page: "docs/calibration.md", name: "faults" };
/// Arguments of each program, besides the protocols.
const CALIBRATE: [&str; 5] = ["calibrate", "--quick", "--json", "--progress", "none"];
/// A host that is busy for a minute breaks judgements too.
const TRIES_MAX: u32 = 3;
/// Exit codes that come with a certificate.
const WITH_CERTIFICATE: [i32; 2] = [0, 1];
/// Judgements named in a line.
const NAMED_MAX: usize = 4;

/// Options of `cargo lab faults`.
#[derive(Parser)]
pub struct Options {
    /// Faults to try, by the names of their patches in lab/faults. [default: all]
    #[arg(long, value_name = "FAULT", value_delimiter = ',', value_parser = named)]
    only: Vec<&'static Fault>,
    /// Replace the table in docs/calibration.md.
    #[arg(long)]
    write: bool,
}

fn named(name: &str) -> Result<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name).ok_or_else(|| "no such fault".to_owned())
}

/// The outcome of one program.
struct Outcome {
    what: &'static str,
    /// Judgements that did not hold.
    broken: Vec<Broken>,
    tries: u32,
    /// Whether the outcome is as required; else what was missing.
    right: Result<()>,
}

/// Calibrates the program as it is and with each fault, prints a line for each, and writes the
/// table on request.
pub fn faults(options: &Options) -> Result<()> {
    if options.write {
        TABLE.check()?;
    }
    let scratch = Scratch::new()?;
    let is_selected = |fault: &&Fault| {
        options.only.is_empty() || options.only.iter().any(|only| only.name == fault.name)
    };
    let selected: Vec<&Fault> = FAULTS.iter().filter(is_selected).collect();
    let program = scratch.build()?;
    let mut outcomes = Vec::new();
    for calibration in Calibration::ALL {
        if selected.iter().any(|fault| fault.calibration == calibration) {
            let outcome = sound(&program, calibration)?;
            println!("{}", outcome.line());
            outcomes.push(outcome);
        }
    }
    for fault in selected {
        let broken = scratch.broken(fault)?;
        let outcome = refused(&scratch.build()?, fault)?;
        drop(broken);
        println!("{}", outcome.line());
        outcomes.push(outcome);
    }
    let wrong: Vec<&str> =
        outcomes.iter().filter(|of| of.right.is_err()).map(|of| of.what).collect();
    if options.write {
        TABLE.write(&table(&outcomes))?;
    }
    match wrong[..] {
        [] => Ok(()),
        _ => Err(format!("not as it must be: {}", wrong.join("; "))),
    }
}

/// The program as it is: its certificate holds, in one of a few tries. Where it does not, the host
/// may be too busy for any certificate: then it matters that what faults break is not broken.
fn sound(program: &Path, calibration: Calibration) -> Result<Outcome> {
    let what = calibration.sound();
    let mut outcome = Outcome { what, broken: Vec::new(), tries: 0, right: Ok(()) };
    let mut kinds_broken = 0;
    while outcome.tries < TRIES_MAX {
        outcome.tries += 1;
        outcome.broken = calibrate(program, calibration)?;
        if outcome.broken.is_empty() {
            return Ok(outcome);
        }
        kinds_broken +=
            FAULTS.iter().map(|fault| fault.detected_by(&outcome.broken).count()).sum::<usize>();
        eprintln!("{}", outcome.line());
    }
    outcome.right = Err(match kinds_broken {
        0 => "must hold; the host was too busy, and none of the judgements that faults must break \
              was broken"
            .to_owned(),
        _ => "must hold, and judgements that faults must break were broken without one".to_owned(),
    });
    Ok(outcome)
}

/// The program with a fault: its certificate does not hold, for the right reasons. A host that was
/// so busy that they were left open is given another try.
fn refused(program: &Path, fault: &Fault) -> Result<Outcome> {
    let mut outcome = Outcome { what: fault.what, broken: Vec::new(), tries: 0, right: Ok(()) };
    while outcome.tries < TRIES_MAX {
        outcome.tries += 1;
        outcome.broken = calibrate(program, fault.calibration)?;
        let unseen = fault.unseen(&outcome.broken);
        // Those that detected it come first.
        outcome.broken.sort_by_key(|it| !it.kind.is_some_and(|it| fault.expected.contains(&it)));
        outcome.right = match unseen[..] {
            [] => return Ok(outcome),
            _ => Err(format!("must not hold: {}", unseen.join(", "))),
        };
        eprintln!("{}", outcome.line());
    }
    Ok(outcome)
}

/// Judgements of a certificate made now that do not hold.
fn calibrate(program: &Path, calibration: Calibration) -> Result<Vec<Broken>> {
    let state = workspace::target().join("faults/state");
    let mut calibrate = Command::new(program);
    calibrate.args(CALIBRATE).args(calibration.arguments()).env("XDG_STATE_HOME", state);
    let ended = calibrate.output().map_err(|e| format!("{}: {e}", program.display()))?;
    if !ended.status.code().is_some_and(|code| WITH_CERTIFICATE.contains(&code)) {
        return Err(format!(
            "{} ended with {}: {}",
            command::shown(&calibrate),
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        ));
    }
    let certificate: Certificate = serde_json::from_slice(&ended.stdout)
        .map_err(|e| format!("{}: no certificate: {e}", command::shown(&calibrate)))?;
    Ok(certificate.broken().iter().map(Broken::from_judgement).collect())
}

impl Outcome {
    fn verdict(&self) -> &'static str {
        if self.broken.is_empty() { "held" } else { "refused" }
    }

    fn judgements(&self) -> String {
        let named = self.broken.iter().take(NAMED_MAX).map(|it| it.name.as_str());
        let named: Vec<&str> = named.collect();
        let more = match self.broken.len() - named.len() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        format!("{}{more}", named.join(", "))
    }

    fn line(&self) -> String {
        let right = match &self.right {
            Ok(()) => String::new(),
            Err(missing) => format!("; WRONG, {missing}"),
        };
        let Self { what, tries, .. } = self;
        let (verdict, judgements) = (self.verdict(), self.judgements());
        format!("{what}: {verdict} (try {tries}) {judgements}{right}")
    }
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text =
        "Command: `cargo lab faults --write`\n\n| fault | certificate | does not hold |\n\
                    | --- | --- | --- |\n"
            .to_owned();
    for outcome in outcomes {
        let verdict = match (&outcome.right, outcome.tries) {
            (Err(missing), _) => format!("{}: {missing}", outcome.verdict()),
            (Ok(()), 1) => outcome.verdict().to_owned(),
            (Ok(()), tries) => format!("{}, in try {tries}", outcome.verdict()),
        };
        let row = format!("| {} | {verdict} | {} |\n", outcome.what, outcome.judgements());
        text.push_str(&row);
    }
    text
}
