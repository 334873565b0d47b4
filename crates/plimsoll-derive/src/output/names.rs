//! Names of pages.

use std::collections::HashSet;

use crate::pages::Target;
use crate::request::Outcome;

const NAME_CHARS_MAX: usize = 48;

/// Gives each page a name of its own.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// The name of a page; a number instead of its path if that is hashed.
    pub fn name(&mut self, target: &Target, hashed: bool) -> String {
        let base = match &target.text {
            None => "other".to_owned(),
            Some(_) if hashed => "page".to_owned(),
            Some(text) => from_path(text),
        };
        let base = match target.outcome {
            Outcome::Good => base,
            Outcome::Redirect => base + "-redirect",
            Outcome::ClientError => base + "-error",
        };
        let first = if hashed && target.text.is_some() { 1 } else { 2 };
        let plain = (first == 2).then(|| base.clone());
        let numbered = (first..).map(|number: u32| format!("{base}-{number}"));
        let free = plain.into_iter().chain(numbered).find(|name| !self.taken.contains(name));
        let name = free.unwrap_or(base);
        self.taken.insert(name.clone());
        name
    }
}

/// Of letters, digits, `_` and `-`.
fn from_path(path: &str) -> String {
    let path = path.split('?').next().unwrap_or(path);
    let mut name = String::new();
    for c in path.chars().take(NAME_CHARS_MAX) {
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    match name.trim_end_matches('-') {
        "" if path.trim_matches('/').is_empty() => "home".to_owned(),
        "" | "end" => "page".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_by_their_paths_and_no_two_alike() {
        let mut names = Names::default();
        let mut name = |text: Option<&str>, outcome, hashed| {
            let text = text.map(str::to_owned);
            names.name(&Target { text, outcome, requests: 1, paths: Vec::new() }, hashed)
        };
        use Outcome::{ClientError, Good, Redirect};
        assert_eq!(name(Some("/"), Good, false), "home");
        assert_eq!(name(Some("/item/*"), Good, false), "item");
        assert_eq!(name(Some("/item"), Redirect, false), "item-redirect");
        assert_eq!(name(Some("/item/*?*"), Good, false), "item-2");
        assert_eq!(name(Some("/*"), ClientError, false), "page-error");
        assert_eq!(name(None, Good, false), "other");
        assert_eq!(name(Some("/secret"), Good, true), "page-1");
        assert_eq!(name(Some("/secret2"), Good, true), "page-2");
    }
}
