//! `plimsoll clean DIR|TARGET`: removes a file set.

use std::path::Path;

use clap::Args;
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::host::reach;
use plimsoll_protocol::net::{Dial as _, SetupError};
use plimsoll_run::coordinator::setup::setup_shower;
use plimsoll_run::dial::SystemDial;
use plimsoll_run::protocols;

use crate::exit::{Exit, Failure};
use crate::flags::Progress;
use crate::interrupts;
use crate::terminal::{self, Live};

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Directory that was prepared, or URL of a file server
    #[arg(value_name = "DIR|TARGET")]
    pub place: String,
    /// How to show progress
    #[arg(long, value_enum, default_value_t = Progress::Auto, value_name = "HOW")]
    pub progress: Progress,
}

/// Removes files with our marker and nothing else.
pub(crate) fn perform(args: &CleanArgs) -> Result<Exit, Failure> {
    if args.place.contains("://") {
        return clean_target(args);
    }
    for directory in protocols::all().filter_map(|one| one.directory) {
        (directory.clean)(Path::new(&args.place))?;
    }
    terminal::print(&format!("{}: the file set is removed", args.place));
    Ok(Exit::Valid)
}

fn clean_target(args: &CleanArgs) -> Result<Exit, Failure> {
    let url = TargetUrl::parse(&args.place)?;
    let cleaner = protocols::of_url(&url).and_then(|(one, port)| Some((one.protocol.clean?, port)));
    let Some((clean, port)) = cleaner else {
        let cleaned = protocols::all().filter(|one| one.protocol.clean.is_some());
        let schemes = cleaned.flat_map(|one| one.protocol.schemes);
        let schemes: Vec<String> = schemes.map(|(scheme, _)| format!("{scheme}://")).collect();
        return Err(Failure::wrong(format!(
            "{url}: a file set can be removed through {}; for other servers name the directory \
             they serve",
            schemes.join(", ")
        )));
    };
    let target = reach::resolve(&url, port)?;
    let signals = interrupts::listen()?;
    let mut live = Live::new(args.progress);
    let dial = SystemDial::new(signals.clone());
    let done = clean(&target, &dial, &mut setup_shower("clean", &signals, &mut live));
    drop(live);
    terminal::note_nonconformities(&dial.nonconformities().take());
    if let Err(SetupError::Stopped) = done {
        return Err(Failure::interrupted(format!(
            "{0}: stopped; the rest of the file set is still there: plimsoll clean '{0}'",
            target.url
        )));
    }
    let done = done?;
    terminal::print(&format!("{}: {done}", target.url));
    Ok(Exit::Valid)
}
