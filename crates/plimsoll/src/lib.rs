//! The program: verbs, flags, terminal, exit codes. [`program`] shows the main steps.

#![warn(unreachable_pub)]

mod exit;
mod flags;
mod interrupts;
mod signature;
mod suite_source;
mod terminal;
mod typo_hints;
mod verbs;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser as _;
use plimsoll_protocol::host::Registration;
use plimsoll_run::protocols;

use exit::{Exit, Failure};
use verbs::Cli;

/// Runs the command line, with the program's own protocols and `more`.
pub fn program(more: &'static [&'static Registration]) -> ExitCode {
    protocols::add(more);
    let cli = match parsed() {
        Ok(cli) => cli,
        Err(answer) => {
            terminal::show_failure(&Failure::wrong(answer));
            return ExitCode::from(Exit::Wrong as u8);
        }
    };
    announce_bugs();
    // The program ends after a panic, so nothing uses half-finished state.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| cli.verb.perform()));
    let exit = match outcome {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            terminal::show_failure(&failure);
            Exit::from(&failure)
        }
        Err(_) => Exit::Bug,
    };
    ExitCode::from(exit as u8)
}

/// The command line, or what to write instead.
fn parsed() -> Result<Cli, String> {
    let arguments = std::env::args_os().skip(1);
    let arguments: Vec<String> =
        arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    if let Some(answer) = typo_hints::long_behind_one_dash(&arguments) {
        return Err(answer);
    }
    Cli::try_parse().map_err(|error| match typo_hints::answer(&error, &arguments) {
        Some(answer) => answer,
        None => error.exit(),
    })
}

/// Reports a panic of any thread as a bug, with the next move.
fn announce_bugs() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(|at| format!(" at {at}")).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        terminal::note(&format!(
            "plimsoll: this is a bug{location}: {message}\n\
             Please report it with the command you gave; `RUST_BACKTRACE=1` adds where from."
        ));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            terminal::note(&std::backtrace::Backtrace::force_capture().to_string());
        }
    }));
}
