//! Text for a person: progress on standard error, results on standard output, mistakes with their
//! position. The only module that writes to the terminal.

mod live;
mod live_view;
mod mistake;
mod point_line;
mod story;
mod summary;

use std::io::{self, IsTerminal, Write as _};
use std::os::fd::AsFd;

use plimsoll_model::nonconformity::Nonconformities;
use plimsoll_report::sentences::nonconformity;

pub(crate) use live::Live;
pub(crate) use mistake::show_failure;
pub(crate) use story::story;
pub(crate) use summary::summary;

/// Writes lines to standard output. A closed pipe (`plimsoll … | head`) is not a failure.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Writes a line to standard error, above a live line. From any thread.
pub(crate) fn note(text: &str) {
    let mut err = io::stderr().lock();
    live::remove_passing(&mut err);
    let _ = writeln!(err, "{text}");
}

/// Reports where a server's replies differ from their specification, if they do.
pub(crate) fn note_nonconformities(nonconformities: &Nonconformities) {
    if let Some(sentence) = nonconformity::text(nonconformities) {
        note(&format!("warning: {sentence}"));
    }
}

/// Whether that stream gets colours: it is a terminal and `NO_COLOR` is not set.
fn colours_enabled(is_terminal: bool) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    is_terminal && !refused && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

pub(crate) fn stdout_style() -> Style {
    style_of(&io::stdout())
}

pub(crate) fn stderr_style() -> Style {
    style_of(&io::stderr())
}

fn style_of(stream: &(impl AsFd + IsTerminal)) -> Style {
    let is_terminal = stream.is_terminal();
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|_| is_terminal);
    // A terminal that reports zero does not know its size.
    let valid = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    let screen = valid.map(|size| Screen { columns: size.ws_col.into(), rows: size.ws_row.into() });
    Style::new(colours_enabled(is_terminal)).on(screen)
}

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    pub columns: usize,
    pub rows: usize,
}

/// Paints text for its destination, or leaves it plain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    painted: bool,
    screen: Option<Screen>,
}

impl Style {
    /// Paints if `painted`.
    pub(crate) const fn new(painted: bool) -> Self {
        Self { painted, screen: None }
    }

    /// The same style on a screen of this size.
    pub(crate) const fn on(self, screen: Option<Screen>) -> Self {
        Self { screen, ..self }
    }

    /// The screen, if the text goes to a terminal.
    pub(crate) const fn screen(self) -> Option<Screen> {
        self.screen
    }

    pub(crate) const fn is_painted(self) -> bool {
        self.painted
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn mixed(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.painted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
