//! Flags that several verbs share, each declared beside the suite key that it sets; the flags of one
//! verb are in the file of the verb.

mod agents;
mod llm;
mod observers;
mod recorded;
mod run;
pub(crate) mod shape;
pub(crate) mod url;
pub(crate) mod values;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Id, ValueEnum};

pub(crate) use agents::AgentArgs;
pub(crate) use llm::LlmArgs;
pub(crate) use recorded::ReplayArgs;
pub(crate) use run::{FailIf, GateArgs, Reported, RunArgs, STATEMENT_PREFIX, pacing, yes_no};

/// Flags of a ladder and of loads. Verbs that search the load themselves answer them, but hide them.
const LOAD_FLAGS: [&str; 9] =
    ["points", "peak", "steps", "repeat", "report", "clients", "rate", "sessions", "shape"];

/// Hides a flag from the help if it is one of [`LOAD_FLAGS`].
pub(crate) fn hide_load_flags(flag: Arg) -> Arg {
    match LOAD_FLAGS.contains(&flag.get_id().as_str()) {
        true => flag.hide(true),
        false => flag,
    }
}

/// Flags of every verb that takes a while.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Output {
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
    /// Print result.json on standard output, everything else on standard error
    #[arg(long)]
    pub json: bool,
}

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// A live line on a terminal, plain lines elsewhere
    Auto,
    /// One line per load point
    Plain,
    /// Nothing
    None,
}

/// The flags on the command line, by their ids. Takes no flag itself.
#[derive(Clone, Debug)]
pub(crate) struct Given(Vec<Id>);

impl Given {
    /// The first given flag of a group, in the order of their declarations, among those with an id
    /// that `is_meant`.
    pub(crate) fn first<Group: Args>(&self, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        let group = Group::augment_args(Command::new(""));
        let is_given = |id: &Id| self.0.contains(id) && is_meant(id.as_str());
        let mut given = group.get_arguments().filter(|flag| is_given(flag.get_id()));
        given.find_map(|flag| Some(format!("--{}", flag.get_long()?)))
    }

    /// Handles a flag as if it were not given.
    fn forget(&mut self, id: &str) {
        self.0.retain(|given| given != id);
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_typed =
            |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        Ok(Self(matches.ids().filter(is_typed).cloned().collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
