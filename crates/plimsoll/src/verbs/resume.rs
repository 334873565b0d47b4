//! `plimsoll resume DIR`: go on after the last finished load point.

use crate::cli::ResumeArgs;
use crate::coordinator::resume;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;
use crate::terminal::Live;
use crate::verbs::run::show_end;

/// Same suite, seed, targets and ladder; only what is not finished is run.
pub(crate) fn perform(args: &ResumeArgs) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
    let mut live = Live::new(args.output.progress);
    let end = resume(&args.dir, &signals, &mut live)?;
    drop(live);
    show_end(&end, args.output);
    Ok(end.exit)
}
