//! `plimsoll resume DIR`: go on after the last finished load point of a run, or the last finished
//! run of an experiment.

use std::path::Path;

use clap::Parser as _;

use crate::cli::{Cli, ResumeArgs, Verb};
use crate::coordinator::resume;
use crate::exit::{Exit, Failure};
use crate::secrets::holds_left_out;
use crate::signals::Signals;
use crate::terminal::Live;
use crate::verbs::experiment::{self, Begin, started_in};
use crate::verbs::run::show_end;
use crate::verbs::{scale, versus};

/// Same suite, seed, targets and ladder; only what is not finished is run.
pub(crate) fn perform(args: &ResumeArgs) -> Result<Exit, Failure> {
    if let Some(started) = started_in(&args.dir)? {
        return again(args, &started.command, &started.directory);
    }
    let signals = Signals::listen()?;
    let mut live = Live::new(args.output.progress);
    let end = resume(&args.dir, &signals, &mut live)?;
    drop(live);
    show_end(&end, args.output);
    Ok(end.exit)
}

/// The command of an experiment, in the directory it was given in.
fn again(args: &ResumeArgs, command: &[String], directory: &Path) -> Result<Exit, Failure> {
    let shown = args.dir.display();
    let whole = std::fs::canonicalize(&args.dir)
        .map_err(|e| Failure::unusable(format!("{shown}: cannot find it: {e}")))?;
    if holds_left_out(command) {
        return Err(Failure::wrong(format!(
            "{shown}: the command held a secret, which is kept nowhere, so the experiment cannot go \
             on; begin it again and write secrets as env:NAME or @FILE"
        )));
    }
    std::env::set_current_dir(directory).map_err(|e| {
        Failure::unusable(format!(
            "{}: the experiment was begun there, and it cannot be entered: {e}",
            directory.display()
        ))
    })?;
    // As it would have been typed there.
    let whole = match whole.strip_prefix(directory) {
        Ok(within) if within != Path::new("") => within.to_owned(),
        _ => whole,
    };
    let unread = |why: String| Failure::wrong(format!("{shown}: cannot read its command: {why}"));
    match Cli::try_parse_from(command).map_err(|e| unread(e.to_string()))?.verb {
        Verb::Versus(mut asked) => {
            (asked.run.out, asked.run.output) = (Some(whole), args.output);
            versus::perform(&asked, Begin::Resume)
        }
        Verb::Scale(mut asked) => {
            (asked.run.out, asked.run.output) = (Some(whole), args.output);
            scale::perform(&asked, Begin::Resume)
        }
        Verb::Experiment(mut asked) => {
            (asked.out, asked.output) = (Some(whole), args.output);
            experiment::perform(&asked, Begin::Resume)
        }
        _ => Err(unread("it is none of an experiment".to_owned())),
    }
}
