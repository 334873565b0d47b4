//! The program: verbs, coordinator, terminal, exit codes. [`program`] reads as its table of
//! contents.

#![warn(unreachable_pub)]

mod agent;
mod certificates;
mod cli;
mod clock;
mod coordinator;
mod derive;
mod dial;
mod exit;
mod fleet;
mod host_inventory;
mod level_commands;
mod load_file;
mod observers;
mod own_addresses;
mod protocols;
mod secrets;
mod signals;
mod signature;
mod slips;
mod suite_source;
mod systems;
mod terminal;
mod verbs;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::Parser as _;
use plimsoll_protocol::host::Registration;

use cli::{Cli, Verb};
use exit::{Exit, Failure};
use verbs::experiment::Begin;

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
    // The program ends after a panic: nobody sees what it left half done.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| perform(cli.verb)));
    let exit = match outcome {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            terminal::show_failure(&failure);
            failure.exit()
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
    if let Some(answer) = slips::long_behind_one_dash(&arguments) {
        return Err(answer);
    }
    Cli::try_parse().map_err(|error| match slips::answer(&error, &arguments) {
        Some(answer) => answer,
        None => error.exit(),
    })
}

fn perform(verb: Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Demo(args) => verbs::demo::perform(&args),
        Verb::Suites(args) => verbs::suites::perform(&args),
        Verb::Check(args) => verbs::check::perform(&args),
        Verb::Run(args) => verbs::run::perform(&args),
        Verb::Capacity(args) => verbs::capacity::perform(&args),
        Verb::Scale(args) => verbs::scale::perform(&args, Begin::New),
        Verb::Experiment(args) => verbs::experiment::perform(&args, Begin::New),
        Verb::Resume(args) => verbs::resume::perform(&args),
        Verb::Calibrate(args) => verbs::calibrate::perform(&args),
        Verb::Agent(args) => verbs::agent::perform(&args),
        Verb::Agents(verb) => verbs::agents::perform(&verb),
        Verb::Prepare(args) => verbs::prepare::perform(&args),
        Verb::Clean(args) => verbs::clean::perform(&args),
        Verb::Serve(args) => verbs::serve::perform(&args),
        Verb::Analyse(args) => verbs::analyse::perform(&args),
        Verb::Report(args) => verbs::report::perform(&args),
        Verb::Compare(args) => verbs::compare::perform(&args),
        Verb::Size(args) => verbs::size::perform(&args),
        Verb::Versus(args) => verbs::versus::perform(&args, Begin::New),
        Verb::Verify(args) => verbs::verify::perform(&args),
        Verb::Runs(args) => verbs::runs::perform(&args),
        Verb::Board(args) => verbs::board::perform(&args),
        Verb::Inventory(args) => verbs::inventory::perform(&args),
        Verb::Published(args) => verbs::published::perform(&args),
        Verb::Generate(args) => verbs::generate::perform(&args),
    }
}

/// A panic is a bug, whichever thread it strikes; the message says so and what to do.
fn announce_bugs() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!(" at {at}")).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        terminal::note(&format!(
            "plimsoll: this is a bug{place}: {message}\n\
             Please report it with the command you gave; `RUST_BACKTRACE=1` adds where from."
        ));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|wanted| wanted != "0") {
            terminal::note(&std::backtrace::Backtrace::force_capture().to_string());
        }
    }));
}
