//! `plimsoll serve`: a subcommand of each protocol, with flags of its own.

use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};

use crate::protocols;

/// Which reference server, and its flags.
#[derive(Debug)]
pub(crate) struct ServeArgs {
    /// As in [`plimsoll_protocol::host::Reference::verb`].
    pub verb: String,
    /// Read by the protocol.
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
