//! Progress on standard error: a line that rewrites itself on a terminal, plain lines elsewhere.

use std::io::{self, IsTerminal as _, StderrLock, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_model::units::Nanos;

use super::live_view::cut;
use super::{Style, stderr_style};
use crate::cli::Progress;
use crate::clock::Stopwatch;

/// A live line changes at most this often.
const REDRAW_PAUSE: Duration = Duration::from_millis(100);
/// Used when the terminal does not say how large it is.
const SIZE_DEFAULT: (usize, usize) = (80, 24);
/// Passing lines on the terminal. Only the holder of the lock of standard error reads or changes
/// it: a thread that writes a lasting line first removes them.
static PASSING_LINES: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Live,
    Plain,
    Silent,
}

#[derive(Debug)]
pub(crate) struct Live {
    mode: Mode,
    style: Style,
    /// Lasting lines are shown.
    lasting: bool,
    last_draw: Option<Stopwatch>,
}

impl Live {
    pub(crate) fn new(progress: Progress) -> Self {
        let mode = match progress {
            Progress::None => Mode::Silent,
            Progress::Auto if io::stderr().is_terminal() => Mode::Live,
            Progress::Auto | Progress::Plain => Mode::Plain,
        };
        Self { mode, style: stderr_style(), lasting: true, last_draw: None }
    }

    /// Passing lines only.
    pub(crate) fn passing_only(self) -> Self {
        Self { lasting: false, ..self }
    }

    /// How to paint what is shown here.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    pub(crate) fn line(&mut self, text: &str) {
        if self.mode == Mode::Silent || !self.lasting {
            return;
        }
        super::note(text);
    }

    /// A lasting line before long work, where no passing line will tell of it.
    pub(crate) fn opening(&mut self, text: &str) {
        if self.mode == Mode::Plain {
            self.line(text);
        }
    }

    /// A passing line: the next one takes its place. Nothing in plain mode.
    pub(crate) fn passing(&mut self, text: impl FnOnce() -> String) {
        self.passing_lines(|columns, _| vec![cut(&text(), columns)]);
    }

    /// Passing lines, made for so many columns: the next ones take their place. Where the terminal
    /// has no room for them all, the first stands for them.
    pub(crate) fn passing_lines(&mut self, lines: impl FnOnce(usize, Style) -> Vec<String>) {
        let too_soon = self.last_draw.is_some_and(|drawn| drawn.elapsed() < REDRAW_PAUSE);
        if self.mode != Mode::Live || too_soon {
            return;
        }
        self.last_draw = Some(Stopwatch::start());
        let (columns, rows) = size();
        // The last column would make some terminals wrap.
        let mut lines = lines(columns.saturating_sub(1), self.style);
        if lines.len() >= rows {
            lines.truncate(1);
        }
        let mut err = io::stderr().lock();
        // Each line over the one before it: a screen that is cleared first would flicker.
        let shown = PASSING_LINES.swap(lines.len(), Ordering::Relaxed);
        let _ = write!(err, "{}{}\x1b[J", to_first(shown), lines.join("\x1b[K\r\n"));
        let _ = err.flush();
    }

    pub(crate) fn clear(&mut self) {
        remove_passing(&mut io::stderr().lock());
    }
}

/// Makes room for a lasting line.
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
    let said = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let known = said.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    known.map_or(SIZE_DEFAULT, |size| (size.ws_col.into(), size.ws_row.into()))
}

/// Time left of work whose parts take a known time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Countdown {
    started: Stopwatch,
    total: Nanos,
}

impl Countdown {
    /// Work that takes `total`.
    pub(crate) fn start(total: Nanos) -> Self {
        Self { started: Stopwatch::start(), total }
    }

    /// `4 min left`, rounded so that it does not flicker.
    pub(crate) fn text(&self) -> String {
        let gone = self.started.elapsed().as_nanos() as u64;
        left_text(self.total.saturating_sub(Nanos(gone)))
    }
}

/// `, 12 s left` for `left` units of work after `done` took `elapsed_s`; nothing while there is no
/// rate to judge by.
pub(crate) fn left_at_this_rate(elapsed_s: f64, done: u64, left: u64) -> String {
    if done == 0 || elapsed_s <= 0.0 {
        return String::new();
    }
    let seconds = left as f64 * elapsed_s / done as f64;
    format!(", {}", left_text(Nanos::from_secs_f64(seconds)))
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
