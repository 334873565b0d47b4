//! `plimsoll serve`: the reference servers.

use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use plimsoll_protocol::host::{Console, HostError};
use plimsoll_run::protocols;
use plimsoll_servers::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit::{Exit, Failure};
use crate::terminal;

/// A reference server and its flags.
#[derive(Debug)]
pub(crate) struct ServeArgs {
    /// As in [`plimsoll_protocol::host::Reference::verb`].
    pub verb: String,
    /// The protocol reads them.
    pub flags: ArgMatches,
}

impl FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let (verb, flags) = matches
            .subcommand()
            .ok_or_else(|| Error::new(clap::error::ErrorKind::MissingSubcommand))?;
        Ok(Self { verb: verb.to_owned(), flags: flags.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ServeArgs {
    fn augment_subcommands(command: Command) -> Command {
        let references = protocols::all().map(|one| (one.reference.command)());
        command.subcommands(references).subcommand_required(true).arg_required_else_help(true)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        protocols::reference(name).is_some()
    }
}

/// Serves until Ctrl-C.
pub(crate) fn perform(args: &ServeArgs) -> Result<Exit, Failure> {
    let reference = protocols::reference(&args.verb)
        .ok_or_else(|| Failure::wrong(format!("there is no server {:?}", args.verb)))?;
    let console =
        Console { print: terminal::print, note: terminal::note, stop: stop_when_requested };
    (reference.serve)(&args.flags, &console)?;
    Ok(Exit::Valid)
}

/// Stops on a signal, or at the end of standard input.
fn stop_when_requested(with_stdin: bool) -> Result<Stop, HostError> {
    let stop = Stop::new();
    if with_stdin {
        stop.request_when_stdin_ends();
    }
    stop_on_signals(stop.clone())?;
    Ok(stop)
}

fn stop_on_signals(stop: Stop) -> Result<(), HostError> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|e| HostError::unusable(format!("cannot listen for Ctrl-C: {e}")))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            stop.request();
        }
    });
    Ok(())
}
