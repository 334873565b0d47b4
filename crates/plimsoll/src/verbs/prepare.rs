//! `plimsoll prepare SUITE DIR`: the file set for a server that serves files from disk.

use plimsoll_model::suite::ProfileName;

use crate::cli::{Peak, PrepareArgs};
use crate::coordinator::signals::Signals;
use crate::exit::{Exit, Failure};
use crate::terminal::{self, Live};
use crate::{file_set, suite_source};

/// Writes what is missing of the unscaled file set.
pub fn perform(args: &PrepareArgs) -> Result<Exit, Failure> {
    let Peak::At(peak) = args.peak else {
        return Err(Failure::wrong(
            "--peak auto needs a server that runs; name the highest load you will ask for, in ops/s",
        ));
    };
    let suite = suite_source::find(&args.suite, &args.set)?;
    let protocol = plimsoll_protocols::protocol(&suite.protocol)
        .ok_or_else(|| Failure::wrong(format!("protocol {:?} is not known", suite.protocol)))?;
    let profile = suite.profiles.get(ProfileName::Full);
    let needed = (protocol.needed_file_set)(&suite, profile, Some(peak))?.ok_or_else(|| {
        Failure::wrong(format!("suite {} needs no file set; run it at once", suite.name))
    })?;
    let mut set = needed;
    if let Some(seed) = args.seed {
        set.seed = seed;
    }
    let signals = Signals::listen()?;
    let mut live = Live::new(args.progress);
    let prepared = file_set::write(&args.dir, set, &signals, &mut live)?;
    drop(live);
    terminal::print(&format!(
        "{}: {} directories of files, seed {}; {} written in {} files.\n\
         Serve this directory, then: plimsoll run {} http://HOST:PORT/ --peak {peak}",
        args.dir.display(),
        prepared.id.directories,
        prepared.id.seed,
        prepared.written,
        prepared.files_written,
        args.suite,
    ));
    Ok(Exit::Valid)
}
