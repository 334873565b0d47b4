//! `plimsoll resume DIR`: continues after the last finished load point of a run, or the last
//! finished run of an experiment.

use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use plimsoll_run::coordinator::resume;
use plimsoll_run::secrets::holds_left_out;

use super::{Cli, Verb};
use crate::exit::{Exit, Failure};
use crate::flags::Output;
use crate::interrupts;
use crate::terminal::Live;
use crate::verbs::experiment::{self, Begin, started_in};
use crate::verbs::run::show_end;
use crate::verbs::{scale, versus};

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Bundle of the interrupted run, or directory of the experiment
    pub dir: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

/// Same suite, seed, targets and ladder; only unfinished parts are run.
pub(crate) fn perform(args: &ResumeArgs) -> Result<Exit, Failure> {
    if let Some(started) = started_in(&args.dir)? {
        return again(args, &started.command, &started.directory);
    }
    let signals = interrupts::listen()?;
    let mut live = Live::new(args.output.progress);
    let end = resume(&args.dir, &signals, &mut live)?;
    drop(live);
    show_end(&end, args.output);
    Ok(Exit::from(&end))
}

/// Repeats the command of an experiment, in the directory where it was started.
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
    // As if typed in that directory.
    let whole = match whole.strip_prefix(directory) {
        Ok(within) if within != Path::new("") => within.to_owned(),
        _ => whole,
    };
    let unread = |why: String| Failure::wrong(format!("{shown}: cannot read its command: {why}"));
    match Cli::try_parse_from(command).map_err(|e| unread(e.to_string()))?.verb {
        Verb::Versus(mut earlier) => {
            (earlier.run.out, earlier.run.output) = (Some(whole), args.output);
            versus::perform(&earlier, Begin::Resume)
        }
        Verb::Scale(mut earlier) => {
            (earlier.run.out, earlier.run.output) = (Some(whole), args.output);
            scale::perform(&earlier, Begin::Resume)
        }
        Verb::Experiment(mut earlier) => {
            (earlier.out, earlier.output) = (Some(whole), args.output);
            experiment::perform(&earlier, Begin::Resume)
        }
        _ => Err(unread("it is none of an experiment".to_owned())),
    }
}
