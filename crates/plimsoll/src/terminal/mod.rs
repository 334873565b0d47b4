//! What a person sees: progress on standard error, results on standard output, mistakes with
//! their place. The only module that writes to the terminal.

mod live;
mod mistake;
mod point_line;
mod style;
mod summary;

use std::io::{self, IsTerminal as _, Write as _};

pub use live::{Countdown, Live, left_at_this_rate};
pub use mistake::show_failure;
pub use point_line::{LoadUnit, finished_line, live_line, search_line};
pub use style::Style;
pub use summary::summary;

/// Writes lines to standard output. A closed pipe (`plimsoll … | head`) is not a failure.
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Writes a line to standard error.
pub fn note(text: &str) {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{text}");
}

/// Colours are wanted on that stream: it is a terminal and `NO_COLOR` is not set.
fn colours_wanted(is_terminal: bool) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Style for standard output.
pub fn stdout_style() -> Style {
    Style::new(colours_wanted(io::stdout().is_terminal()))
}

/// Style for standard error.
pub fn stderr_style() -> Style {
    Style::new(colours_wanted(io::stderr().is_terminal()))
}
