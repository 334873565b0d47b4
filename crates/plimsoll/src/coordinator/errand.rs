//! Shows how far an errand is, and passes Ctrl-C on to it.

use plimsoll_model::units::{Nanos, grouped};
use plimsoll_protocols::net::{ErrandProgress, GoOn};

use super::clock::Stopwatch;
use super::signals::Signals;
use crate::terminal::{Live, left_text};

/// A function for [`plimsoll_protocols::net::OnProgress`] that keeps the live line up to date.
pub fn errand_shower<'a>(
    title: &'a str,
    signals: &'a Signals,
    live: &'a mut Live,
) -> impl FnMut(ErrandProgress) -> GoOn + 'a {
    let started = Stopwatch::start();
    // Time left is judged by the step under way only.
    let mut began = None;
    move |at| {
        let now_s = started.elapsed().as_secs_f64();
        let (doing, first_s, first) = *began.get_or_insert((at.doing, now_s, at.done));
        if doing != at.doing {
            began = Some((at.doing, now_s, at.done));
        }
        live.passing(|| {
            let ErrandProgress { doing, done, total, bytes } = at;
            let left = seconds_left(now_s - first_s, done.saturating_sub(first), total - done);
            let count = format!("{} of {}", grouped(done as f64), grouped(total as f64));
            format!("{title}: {doing}, {count}, {bytes} written{left}")
        });
        if signals.is_asked() { GoOn::No } else { GoOn::Yes }
    }
}

/// `, 12 s left`, as soon as there is a rate to judge by.
fn seconds_left(elapsed_s: f64, done: u64, left: u64) -> String {
    if done == 0 || elapsed_s <= 0.5 {
        return String::new();
    }
    let seconds = left as f64 * elapsed_s / done as f64;
    format!(", {}", left_text(Nanos::from_secs_f64(seconds)))
}
