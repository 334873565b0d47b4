//! Colours, or none; all of a text, or as much as a screen holds.

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    pub columns: usize,
    pub rows: usize,
}

/// How text looks where it goes: paints it, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    painted: bool,
    screen: Option<Screen>,
}

impl Style {
    /// Paints when `painted`.
    pub(crate) const fn new(painted: bool) -> Self {
        Self { painted, screen: None }
    }

    /// The same on a screen of that size.
    pub(crate) const fn on(self, screen: Option<Screen>) -> Self {
        Self { screen, ..self }
    }

    /// Where the text goes to a terminal.
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
