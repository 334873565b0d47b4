//! Colours, or none; all of a text, or as much as a screen holds.

/// Size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    pub columns: usize,
    pub rows: usize,
}

/// How text looks where it goes: paints it, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    painted: bool,
    screen: Option<Screen>,
}

impl Style {
    /// Paints when `painted`.
    pub const fn new(painted: bool) -> Self {
        Self { painted, screen: None }
    }

    /// The same on a screen of that size.
    pub const fn on(self, screen: Option<Screen>) -> Self {
        Self { screen, ..self }
    }

    /// Where the text goes to a terminal.
    pub const fn screen(self) -> Option<Screen> {
        self.screen
    }

    /// Whether it paints.
    pub const fn is_painted(self) -> bool {
        self.painted
    }

    /// Something that matters.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Something that does not.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Good news.
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Bad news.
    pub fn bad(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// Mixed news.
    pub fn mixed(self, text: &str) -> String {
        self.paint("33", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.painted { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
