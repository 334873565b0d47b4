//! `plimsoll clean DIR|TARGET`: removes a file set.

use std::path::Path;

use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::host::reach;
use plimsoll_protocol::net::{Dial as _, SetupError};

use crate::cli::CleanArgs;
use crate::coordinator::setup::setup_shower;
use crate::dial::SystemDial;
use crate::exit::{Exit, Failure};
use crate::protocols;
use crate::signals::Signals;
use crate::terminal::{self, Live};

/// Removes what carries our marker and nothing else.
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
    let found = protocols::of_url(&url).and_then(|(one, port)| Some((one.protocol.clean?, port)));
    let Some((clean, port)) = found else {
        let cleaned = protocols::all().filter(|one| one.protocol.clean.is_some());
        let schemes = cleaned.flat_map(|one| one.protocol.schemes);
        let schemes: Vec<String> = schemes.map(|(scheme, _)| format!("{scheme}://")).collect();
        return Err(Failure::wrong(format!(
            "{url}: a file set can be removed through {}; for other servers name the directory \
             they serve",
            schemes.join(", ")
        )));
    };
    let address = reach::resolve(&url, port)?;
    let target = ResolvedTarget::at(url, address);
    let signals = Signals::listen()?;
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
