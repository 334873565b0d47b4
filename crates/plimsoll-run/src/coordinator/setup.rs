//! Reports the progress of set-up, and forwards Ctrl-C to it.

use plimsoll_model::units::Nanos;
use plimsoll_protocol::net::{GoOn, SetupProgress};

use crate::clock::Stopwatch;
use crate::progress::RunProgress;
use crate::signals::Signals;

/// Before this a rate means little.
const RATE_AFTER_S: f64 = 0.5;

/// A function for [`plimsoll_protocol::net::OnProgress`] that reports to `live`.
pub fn setup_shower<'a>(
    title: &'a str,
    signals: &'a Signals,
    live: &'a mut dyn RunProgress,
) -> impl FnMut(SetupProgress) -> GoOn + 'a {
    let started = Stopwatch::start();
    // Time left is estimated from the current step only.
    let mut began = ("", 0.0, 0);
    move |at| {
        let now_s = started.elapsed().as_secs_f64();
        if began.0 != at.doing {
            began = (at.doing, now_s, at.done);
        }
        let (_, first_s, first) = began;
        let (done_here, left) = (at.done.saturating_sub(first), at.total.saturating_sub(at.done));
        live.setting_up(title, &at, time_left(now_s - first_s, done_here, left));
        if signals.is_stop_requested() { GoOn::No } else { GoOn::Yes }
    }
}

/// For `left` steps, after `done` took `elapsed_s`; `None` while there is no rate to estimate from.
fn time_left(elapsed_s: f64, done: u64, left: u64) -> Option<Nanos> {
    let has_rate = done > 0 && elapsed_s > RATE_AFTER_S;
    has_rate.then(|| Nanos::from_secs_f64(left as f64 * elapsed_s / done as f64))
}
