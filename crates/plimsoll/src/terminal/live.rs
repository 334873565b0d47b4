//! Progress on standard error: a line that rewrites itself on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal as _, StderrLock, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_model::assignment::{Phases, Purpose};
use plimsoll_model::result::PointResult;
use plimsoll_model::suite::Metric;
use plimsoll_model::units::{Nanos, grouped};
use plimsoll_protocol::net::SetupProgress;
use plimsoll_run::clock::Stopwatch;
use plimsoll_run::observers::SecondView;
use plimsoll_run::{LoadUnit, RunProgress};

use super::live_view::{LiveView, cut};
use super::point_line::{finished_line, opening_line, search_line};
use super::{Style, stderr_style};
use crate::flags::Progress;

/// A live line changes at most this often.
const REDRAW_PAUSE: Duration = Duration::from_millis(100);
/// Used if the terminal does not report its size.
const SIZE_DEFAULT: (usize, usize) = (80, 24);
/// Number of passing lines on the terminal. Only the holder of standard error's lock reads or
/// changes it: a thread that writes a lasting line first removes them.
static PASSING_LINES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Live,
    Plain,
    Silent,
}

pub(crate) struct Live {
    mode: Mode,
    style: Style,
    /// Whether lasting lines are shown.
    lasting: bool,
    last_draw: Option<Stopwatch>,
    /// The load point that runs.
    point: Option<LiveView>,
}

impl Live {
    pub(crate) fn new(progress: Progress) -> Self {
        let mode = match progress {
            Progress::None => Mode::Silent,
            Progress::Auto if io::stderr().is_terminal() => Mode::Live,
            Progress::Auto | Progress::Plain => Mode::Plain,
        };
        Self { mode, style: stderr_style(), lasting: true, last_draw: None, point: None }
    }

    /// Shows passing lines only.
    pub(crate) fn passing_only(mut self) -> Self {
        self.lasting = false;
        self
    }

    /// Passing lines, made for this number of columns. The next ones replace them. If the terminal
    /// has no room for all, only the first is shown.
    fn passing_lines(&mut self, lines: impl FnOnce(usize, Style) -> Vec<String>) {
        let too_soon = self.last_draw.is_some_and(|drawn| drawn.elapsed() < REDRAW_PAUSE);
        if self.mode != Mode::Live || too_soon {
            return;
        }
        self.last_draw = Some(Stopwatch::start());
        let (columns, rows) = size();
        // Some terminals would wrap at the last column.
        let mut lines = lines(columns.saturating_sub(1), self.style);
        if lines.len() >= rows {
            lines.truncate(1);
        }
        let mut err = io::stderr().lock();
        // Overwrites line by line: clearing the screen first would flicker.
        let shown = PASSING_LINES.swap(lines.len(), Ordering::Relaxed);
        let _ = write!(err, "{}{}\x1b[J", to_first(shown), lines.join("\x1b[K\r\n"));
        let _ = err.flush();
    }
}

/// Passing lines are shown on a terminal only, lasting lines unless progress is silent.
impl RunProgress for Live {
    fn note_writer(&self) -> fn(&str) {
        super::note
    }

    fn line(&mut self, text: &str) {
        if self.mode == Mode::Silent || !self.lasting {
            return;
        }
        super::note(text);
    }

    fn passing(&mut self, text: &str) {
        self.passing_lines(|columns, _| vec![cut(text, columns)]);
    }

    fn clear(&mut self) {
        remove_passing(&mut io::stderr().lock());
    }

    fn setting_up(&mut self, title: &str, at: &SetupProgress, left: Option<Nanos>) {
        self.passing_lines(|columns, _| {
            let SetupProgress { doing, done, total, bytes } = at;
            let left = left.map_or(String::new(), |left| format!(", {}", left_text(left)));
            let count = format!("{} of {}", grouped(*done as f64), grouped(*total as f64));
            vec![cut(&format!("{title}: {doing}, {count}, {bytes} written{left}"), columns)]
        });
    }

    /// Elsewhere than on a terminal nothing is shown until the first point has finished.
    fn ladder_begins(&mut self, loads: &[f64], unit: LoadUnit, phases: &Phases) {
        if self.mode == Mode::Plain {
            self.line(&opening_line(loads, unit, phases));
        }
    }

    fn point_begins(&mut self, title: &str, metric: Metric, phases: &Phases) {
        self.point = Some(LiveView::new(title, metric).of_lengths(phases));
    }

    fn point_runs(&mut self, second: Option<&SecondView>, left: Nanos) {
        let Some(mut view) = self.point.take() else { return };
        if let Some(second) = second {
            view.add_second(second);
        }
        let left = view.ops.clone().unwrap_or_else(|| left_text(left));
        self.passing_lines(|columns, style| view.lines(&left, columns, style));
        self.point = Some(view);
    }

    fn point_finished(&mut self, title: &str, purpose: Purpose, point: &PointResult) {
        let text = match purpose {
            Purpose::Ladder => finished_line(title, point, self.style),
            _ => search_line(title, point, self.style),
        };
        self.line(&text);
    }
}

/// Removes the passing lines before a lasting line.
pub(super) fn remove_passing(err: &mut StderrLock<'_>) {
    let shown = PASSING_LINES.swap(0, Ordering::Relaxed);
    if shown > 0 {
        let _ = write!(err, "{}\x1b[J", to_first(shown));
        let _ = err.flush();
    }
}

/// Moves to the first of the passing lines.
fn to_first(shown: usize) -> String {
    match shown {
        0 | 1 => "\r".to_owned(),
        lines => format!("\r\x1b[{}A", lines - 1),
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Columns and rows of the terminal.
fn size() -> (usize, usize) {
    let reported = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let valid = reported.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    valid.map_or(SIZE_DEFAULT, |size| (size.ws_col.into(), size.ws_row.into()))
}

/// `12 s left`, rounded up.
fn left_text(left: Nanos) -> String {
    match left.as_secs_f64().ceil() as u64 {
        s @ 0..=99 => format!("{s} s left"),
        s @ 100..=5_999 => format!("{} min left", s.div_ceil(60)),
        s => format!("{} h {} min left", s / 3_600, s % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_rounded_up() {
        assert_eq!(left_text(Nanos::from_millis(200)), "1 s left");
        assert_eq!(left_text(Nanos::from_secs(119)), "2 min left");
        assert_eq!(left_text(Nanos::from_secs(9_000)), "2 h 30 min left");
    }
}
