//! Locations of a suite's values: in the file, or on the command line, which comes first.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeString, DeTable, DeValue};
use toml::{Spanned, Value};

/// Names further apart than this are no help as a suggestion.
const SUGGESTION_SIMILARITY_MIN: f64 = 0.6;

/// A mistake in a suite file: what, where, and what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.location())]
pub struct SuiteError {
    /// File name as the user gave it.
    pub file: Box<str>,
    /// The text of the file, for the line with the caret.
    pub text: Box<str>,
    /// Dotted path of the key; empty where the file is no TOML.
    pub key: Box<str>,
    /// Bytes of the text the mistake is in; `None` for a value from the command line.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// The next move.
    pub help: Option<String>,
}

impl SuiteError {
    /// 1-based line of the mistake.
    pub fn line(&self) -> Option<usize> {
        let start = self.span.as_ref()?.start.min(self.text.len());
        Some(self.text.as_bytes()[..start].iter().filter(|b| **b == b'\n').count() + 1)
    }

    fn location(&self) -> String {
        match self.line() {
            Some(line) => format!("{}:{line}: ", self.file),
            None => format!("{}: ", self.file),
        }
    }
}

/// A value from the command line: `--set workload.connections=per-request`.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Dotted path of the key.
    pub path: String,
    /// A TOML value; a bare word is a string.
    pub value: Value,
}

impl Override {
    /// Reads `KEY=VALUE`. `None` when there is no `=` or no key.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, value) = text.split_once('=')?;
        let path = path.trim();
        if path.is_empty() {
            return None;
        }
        let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
            .ok()
            .and_then(|mut table| table.remove("v"))
            .unwrap_or_else(|| Value::String(value.trim().to_owned()));
        Some(Self { path: path.to_owned(), value })
    }
}

/// A suite file and the values of the command line that replace its own.
pub(super) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    root: Spanned<DeTable<'a>>,
    overrides: &'a [Override],
}

/// Meaning of a key.
#[derive(Clone, Copy)]
pub(super) enum Written<'a> {
    /// The whole file.
    Root(&'a DeTable<'a>),
    /// A value of the file.
    InFile(&'a DeValue<'a>),
    /// A value from the command line.
    Given(&'a Value),
    /// Nothing; single values below it may come from the command line.
    Nothing,
}

/// A location in a document.
#[derive(Clone)]
pub(super) struct Location {
    /// Dotted path from the root; empty there.
    pub path: String,
    /// Bytes of the file; `None` on the command line.
    pub span: Option<Range<usize>>,
}

impl<'a> Document<'a> {
    /// Reads the text as TOML.
    pub(super) fn new(
        file: &'a str,
        text: &'a str,
        overrides: &'a [Override],
    ) -> Result<Self, SuiteError> {
        let root = DeTable::parse(text).map_err(|e| SuiteError {
            file: file.into(),
            text: text.into(),
            span: e.span(),
            message: e.message().to_owned(),
            ..SuiteError::default()
        })?;
        Ok(Self { file, text, root, overrides })
    }

    /// Reads on as if the file had no such key.
    pub(super) fn leave_out(&mut self, path: &str) {
        let mut table = self.root.get_mut();
        let mut path = path;
        // A name may contain dots.
        while !table.contains_key(path) {
            let Some((first, rest)) = path.split_once('.') else { return };
            let Some(below) = table.get_mut(first) else { return };
            let DeValue::Table(below) = below.get_mut() else { return };
            (table, path) = (below, rest);
        }
        table.remove(path);
    }

    /// The root table.
    pub(super) fn root(&'a self) -> (Written<'a>, Location) {
        let location = Location { path: String::new(), span: Some(self.root.span()) };
        (Written::Root(self.root.get_ref()), location)
    }

    /// The entry `key` of a table. An absent entry has the location of its table.
    pub(super) fn child(
        &'a self,
        (table, location): (Written<'a>, &Location),
        key: &str,
    ) -> (Written<'a>, Location) {
        if let Some(item) = table.item(key) {
            let location = Location { path: location.path.clone(), span: Some(item.span()) };
            return (Written::InFile(item.get_ref()), location);
        }
        let path = location.below(key);
        if let Some(item) = self.overrides.iter().rev().find(|item| item.path == path) {
            return (Written::Given(&item.value), Location { path, span: None });
        }
        let (written, span) = match (table.in_file(key), table) {
            (Some((_, value)), _) => (Written::InFile(value.get_ref()), Some(value.span())),
            (None, Written::Given(Value::Table(table))) if table.contains_key(key) => {
                (Written::Given(&table[key]), None)
            }
            (None, _) => (Written::Nothing, location.span.clone()),
        };
        let only_given = matches!(written, Written::Nothing) && self.is_given(&path);
        (written, Location { span: span.filter(|_| !only_given), path })
    }

    /// The command line has a value at or below `path`.
    pub(super) fn is_given(&self, path: &str) -> bool {
        self.overrides.iter().any(|item| {
            item.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// Keys of a table with the locations of their names. `names_are_free`: a key from the command
    /// line may have dots.
    pub(super) fn keys(
        &'a self,
        (table, location): (Written<'a>, &Location),
        names_are_free: bool,
    ) -> BTreeMap<String, Location> {
        let mut keys = BTreeMap::new();
        let mut add = |key: &str, span: Option<Range<usize>>| {
            keys.entry(key.to_owned()).or_insert(Location { path: location.below(key), span });
        };
        for (key, _) in table.file_table().into_iter().flatten() {
            add(key.get_ref(), Some(key.span()));
        }
        if let Written::Given(Value::Table(table)) = table {
            table.keys().for_each(|key| add(key, None));
        }
        let prefix = location.below("");
        for item in self.overrides {
            let Some(rest) = item.path.strip_prefix(&prefix) else { continue };
            let key = if names_are_free { rest } else { rest.split('.').next().unwrap_or(rest) };
            add(key, None);
        }
        keys
    }

    /// A mistake at a location.
    pub(super) fn error(&self, location: &Location, message: impl Into<String>) -> SuiteError {
        let file = match location.span {
            Some(_) => self.file.into(),
            None => format!("--set {}", location.path).into(),
        };
        SuiteError {
            file,
            text: self.text.into(),
            key: location.path.as_str().into(),
            span: location.span.clone(),
            message: message.into(),
            help: None,
        }
    }
}

impl Location {
    /// Dotted path of a key below.
    pub(super) fn below(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl<'a> Written<'a> {
    /// The table of the file, where it is one.
    pub(super) fn file_table(self) -> Option<&'a DeTable<'a>> {
        match self {
            Self::Root(table) | Self::InFile(DeValue::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Item of a list, by its number; it has the path of the list.
    fn item(self, number: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        match self {
            Self::InFile(DeValue::Array(items)) => items.get(number.parse::<usize>().ok()?),
            _ => None,
        }
    }

    fn in_file(self, key: &str) -> Option<(&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)> {
        self.file_table()?.get_key_value(key)
    }
}

impl SuiteError {
    /// A mistake whose location is not known yet.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The mistake as one of a flag of the command line.
    pub(super) fn of_flag(self, flag: &str) -> Self {
        Self { file: flag.into(), help: self.help, ..Self::new(self.message) }
    }

    /// Adds the next move.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The candidate most similar to `word`, if any is. One wrong or swapped letter is nearest.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let likeness = |name: &str| {
        let typo_bonus = if strsim::osa_distance(word, name) == 1 { 1.0 } else { 0.0 };
        typo_bonus + strsim::jaro_winkler(word, name)
    };
    candidates
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= SUGGESTION_SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
