//! Colours, or none.

/// Paints text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    painted: bool,
}

impl Style {
    /// Paints when `painted`.
    pub const fn new(painted: bool) -> Self {
        Self { painted }
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
