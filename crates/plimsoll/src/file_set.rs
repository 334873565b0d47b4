//! Writes file sets with progress.

use std::path::Path;

use plimsoll_protocols::http::fileset::FileSetId;
use plimsoll_protocols::http::prepare::{Continue, PrepareError, Prepared, Progress, prepare};

use crate::coordinator::clock::Stopwatch;
use crate::coordinator::signals::Signals;
use crate::exit::{Exit, Failure};
use crate::terminal::{Live, left_text};

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
            let left = seconds_left(started.elapsed().as_secs_f64(), written, left);
            format!("file set: {} of {}{left}", at.done, at.total)
        });
        if signals.is_asked() { Continue::No } else { Continue::Yes }
    };
    let prepared = prepare(dir, set, &mut show)?;
    live.clear();
    Ok(prepared)
}

/// `, 12 s left`, as soon as there is a rate to judge by.
fn seconds_left(elapsed_s: f64, written: u64, left: u64) -> String {
    if written == 0 || elapsed_s <= 0.0 {
        return String::new();
    }
    let seconds = left as f64 * elapsed_s / written as f64;
    format!(", {}", left_text(plimsoll_model::units::Nanos::from_secs_f64(seconds)))
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
