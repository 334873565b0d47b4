//! `cargo xtask ci`: everything a change must pass, cheapest first, with the time each took.

use std::process::Command;
use std::time::Instant;

use xtask::verb::Result;
use xtask::{command, workspace};

use crate::{circles, doc_site, invariants, licences, style, testing};

struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// Tests come last: a reader of the log looks for their closing lines.
const STEPS: [Step; 7] = [
    Step { name: "style and invariants", run: style },
    Step { name: "format", run: format },
    Step { name: "licences and sources", run: licences::licences },
    Step { name: "lints", run: lints },
    Step { name: "documentation", run: documentation },
    Step { name: "book", run: doc_site::build_and_check },
    Step { name: "tests", run: || testing::test(&[]) },
];

/// Runs every step even after a failure: a log of all faults saves a round.
pub fn ci() -> Result<()> {
    let mut lines = Vec::new();
    let mut failed = Vec::new();
    for step in STEPS {
        println!("\n== {} ==", step.name);
        let begin = now();
        let outcome = (step.run)();
        let seconds = begin.elapsed().as_secs_f64();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        lines.push(format!("{word:>8}  {seconds:7.1} s  {}", step.name));
        if let Err(message) = outcome {
            println!("{message}");
            failed.push(step.name);
        }
    }
    println!("\n{}", lines.join("\n"));
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("failed: {}", failed.join(", ")))
}

/// The house rules that no lint checks, and the invariants of the architecture.
pub fn style() -> Result<()> {
    let root = workspace::root();
    let mut faults = style::faults(root)?;
    faults.extend(invariants::faults(root)?);
    faults.extend(circles::faults(root)?);
    if faults.is_empty() {
        println!("no fault found");
        return Ok(());
    }
    Err(faults.join("\n"))
}

fn format() -> Result<()> {
    command::run(command::cargo().args(["fmt", "--all", "--check"]))
}

fn lints() -> Result<()> {
    let mut cargo = command::cargo();
    cargo.args(["clippy", "--workspace", "--all-targets", "--locked", "--keep-going"]);
    cargo.args(["--", "-D", "warnings"]);
    command::run(&mut cargo)
}

fn documentation() -> Result<()> {
    let mut cargo: Command = command::cargo();
    cargo.args(["doc", "--workspace", "--no-deps", "--locked", "--keep-going"]);
    command::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}

#[allow(clippy::disallowed_methods, reason = "a developer command times its own steps")]
fn now() -> Instant {
    Instant::now()
}
