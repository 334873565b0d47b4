//! Writes file sets with progress.

use std::path::Path;

use plimsoll_protocols::http::fileset::FileSetId;
use plimsoll_protocols::http::prepare::{PrepareError, Prepared, Progress, prepare};
use plimsoll_protocols::net::GoOn;

use crate::coordinator::clock::Stopwatch;
use crate::coordinator::signals::Signals;
use crate::exit::{Exit, Failure};
use crate::terminal::{Live, left_at_this_rate};

/// Writes the file set into `dir`. `signals` may end it early.
pub fn write(
    dir: &Path,
    set: FileSetId,
    signals: &Signals,
    live: &mut Live,
) -> Result<Prepared, Failure> {
    let started = Stopwatch::start();
    let mut first_done = None;
    let mut show = |at: Progress| {
        let first_done = *first_done.get_or_insert(at.done.0);
        live.passing(|| {
            let written = at.done.0.saturating_sub(first_done);
            let left = at.total.0.saturating_sub(at.done.0);
            let left = left_at_this_rate(started.elapsed().as_secs_f64(), written, left);
            format!("file set: {} of {}{left}", at.done, at.total)
        });
        if signals.is_asked() { GoOn::No } else { GoOn::Yes }
    };
    let prepared = prepare(dir, set, &mut show)?;
    live.clear();
    Ok(prepared)
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        let exit = match error {
            PrepareError::Foreign(_)
            | PrepareError::NotOurs(_)
            | PrepareError::OtherSeed { .. }
            | PrepareError::TooMany(_) => Exit::Wrong,
            PrepareError::Stopped(_) => Exit::Interrupted,
            _ => Exit::Unusable,
        };
        Self::Other { exit, message: error.to_string() }
    }
}
