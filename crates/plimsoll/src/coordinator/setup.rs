//! Shows how far set-up is, and passes Ctrl-C on to it.

use plimsoll_model::units::grouped;
use plimsoll_protocol::net::{GoOn, SetupProgress};

use crate::clock::Stopwatch;
use crate::signals::Signals;
use crate::terminal::{Live, left_at_this_rate};

/// Before this a rate says little.
const JUDGED_AFTER_S: f64 = 0.5;

/// A function for [`plimsoll_protocol::net::OnProgress`] that keeps the live line up to date.
pub(crate) fn setup_shower<'a>(
    title: &'a str,
    signals: &'a Signals,
    live: &'a mut Live,
) -> impl FnMut(SetupProgress) -> GoOn + 'a {
    let started = Stopwatch::start();
    // Time left is judged by the step under way only.
    let mut began = ("", 0.0, 0);
    move |at| {
        let now_s = started.elapsed().as_secs_f64();
        if began.0 != at.doing {
            began = (at.doing, now_s, at.done);
        }
        let (_, first_s, first) = began;
        live.passing(|| {
            let SetupProgress { doing, done, total, bytes } = at;
            let (done_here, left) = (done.saturating_sub(first), total.saturating_sub(done));
            let elapsed_s = now_s - first_s;
            let left = match elapsed_s > JUDGED_AFTER_S {
                true => left_at_this_rate(elapsed_s, done_here, left),
                false => String::new(),
            };
            let count = format!("{} of {}", grouped(done as f64), grouped(total as f64));
            format!("{title}: {doing}, {count}, {bytes} written{left}")
        });
        if signals.is_asked() { GoOn::No } else { GoOn::Yes }
    }
}
