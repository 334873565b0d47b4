//! Reads a TOML table key by key, so that every mistake has a place and a suggestion.
//!
//! A [`TableReader`] remembers which keys were asked for. [`TableReader::finish`] refuses the
//! others and names the nearest known key. Values given with `--set` come before the file's.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

use crate::units::{Nanos, parse_span};

/// Names further apart than this are no help as a suggestion.
const SUGGESTION_SIMILARITY_MIN: f64 = 0.6;

/// A mistake in a suite file: what, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.place())]
pub struct SuiteError {
    /// File name as the user gave it.
    pub file: String,
    /// The text of the file, for the line with the caret.
    pub text: String,
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

    fn place(&self) -> String {
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

/// The whole document a [`TableReader`] reads from.
pub struct Source<'a> {
    /// File name for messages.
    pub file: &'a str,
    /// The file's text.
    pub text: &'a str,
    /// Values that come before the file's.
    pub overrides: &'a [Override],
}

impl<'a> Source<'a> {
    /// A document to read.
    pub fn new(file: &'a str, text: &'a str, overrides: &'a [Override]) -> Self {
        Self { file, text, overrides }
    }

    /// A mistake at `span`.
    pub fn error(&self, span: Option<Range<usize>>, message: impl Into<String>) -> SuiteError {
        SuiteError {
            file: self.file.to_owned(),
            text: self.text.to_owned(),
            span,
            message: message.into(),
            help: None,
        }
    }
}

/// Reads one table.
pub struct TableReader<'a> {
    source: &'a Source<'a>,
    table: Option<&'a DeTable<'a>>,
    span: Option<Range<usize>>,
    path: String,
    asked: RefCell<BTreeSet<&'static str>>,
}

/// A value and where it came from.
struct Found {
    value: Value,
    span: Option<Range<usize>>,
}

impl<'a> TableReader<'a> {
    /// The root table of `source`.
    pub fn root(source: &'a Source<'a>, table: &'a Spanned<DeTable<'a>>) -> Self {
        Self {
            source,
            table: Some(table.get_ref()),
            span: Some(table.span()),
            path: String::new(),
            asked: RefCell::default(),
        }
    }

    /// The table under `key`; reads as empty when the file has none.
    pub fn table(&self, key: &'static str) -> Result<TableReader<'a>, SuiteError> {
        self.asked.borrow_mut().insert(key);
        let path = self.full_path(key);
        let found = self.table.and_then(|table| table.get(key));
        let (table, span) = match found {
            None => (None, self.span.clone()),
            Some(item) => match item.get_ref() {
                DeValue::Table(table) => (Some(table), Some(item.span())),
                _ => {
                    return Err(self
                        .source
                        .error(Some(item.span()), format!("`{path}` is a table")));
                }
            },
        };
        Ok(TableReader { source: self.source, table, span, path, asked: RefCell::default() })
    }

    /// The file has this key, or the command line sets it.
    pub fn has(&self, key: &'static str) -> bool {
        self.asked.borrow_mut().insert(key);
        let prefix = self.full_path(key);
        let overridden = self.source.overrides.iter().any(|o| {
            o.path == prefix || o.path.strip_prefix(&prefix).is_some_and(|r| r.starts_with('.'))
        });
        overridden || self.table.is_some_and(|table| table.contains_key(key))
    }

    /// A string.
    pub fn text(&self, key: &'static str) -> Result<Option<String>, SuiteError> {
        self.read(key, "a string", |v| v.as_str().map(str::to_owned))
    }

    /// A string that must be there.
    pub fn required_text(&self, key: &'static str) -> Result<String, SuiteError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    /// A number, whole or not; finite.
    pub fn number(&self, key: &'static str) -> Result<Option<f64>, SuiteError> {
        self.read(key, "a number", as_number)
    }

    /// A number within bounds.
    pub fn number_in(
        &self,
        key: &'static str,
        bounds: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, SuiteError> {
        let Some(value) = self.number(key)? else { return Ok(None) };
        if bounds.contains(&value) {
            return Ok(Some(value));
        }
        Err(self.error_at(key, format!("`{}` is {value}", self.full_path(key))).with_help(format!(
            "it must be from {} to {}",
            bounds.start(),
            bounds.end()
        )))
    }

    /// A whole number within bounds.
    pub fn count(
        &self,
        key: &'static str,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, SuiteError> {
        let Some(value) = self.read(key, "a whole number", Value::as_integer)? else {
            return Ok(None);
        };
        match u64::try_from(value) {
            Ok(value) if bounds.contains(&value) => Ok(Some(value)),
            _ => Err(self
                .error_at(key, format!("`{}` is {value}", self.full_path(key)))
                .with_help(format!("it must be from {} to {}", bounds.start(), bounds.end()))),
        }
    }

    /// A span of time such as `"30s"`.
    pub fn span(&self, key: &'static str) -> Result<Option<Nanos>, SuiteError> {
        self.read(key, "a span of time like \"30s\" or \"1.5ms\"", |v| {
            v.as_str().and_then(parse_span)
        })
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &'static str) -> Result<Option<bool>, SuiteError> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A list of numbers.
    pub fn numbers(&self, key: &'static str) -> Result<Option<Vec<f64>>, SuiteError> {
        self.read(key, "a list of numbers", |v| v.as_array()?.iter().map(as_number).collect())
    }

    /// A table of numbers under names that the writer chose.
    pub fn named_numbers(
        &self,
        key: &'static str,
    ) -> Result<Option<BTreeMap<String, f64>>, SuiteError> {
        let wanted = "a table of numbers";
        let mut numbers: Option<BTreeMap<String, f64>> = self.read(key, wanted, |v| {
            let named = |(name, v): (&String, &Value)| Some((name.clone(), as_number(v)?));
            v.as_table()?.iter().map(named).collect()
        })?;
        let prefix = format!("{}.", self.full_path(key));
        for item in self.source.overrides {
            let Some(name) = item.path.strip_prefix(&prefix) else { continue };
            let number = as_number(&item.value).ok_or_else(|| {
                let message = format!("`{}` is {}, not a number", item.path, item.value);
                let mut error = self.source.error(None, message);
                error.file = format!("--set {}", item.path);
                error
            })?;
            numbers.get_or_insert_default().insert(name.to_owned(), number);
        }
        Ok(numbers)
    }

    /// A list of strings.
    pub fn texts(&self, key: &'static str) -> Result<Option<Vec<String>>, SuiteError> {
        self.read(key, "a list of strings", |v| {
            v.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    /// A list of spans of time.
    pub fn spans(&self, key: &'static str) -> Result<Option<Vec<Nanos>>, SuiteError> {
        self.read(key, "a list of spans of time like [\"15s\", \"25s\"]", |v| {
            v.as_array()?.iter().map(|item| item.as_str().and_then(parse_span)).collect()
        })
    }

    /// One of a few words; `choices` pairs the word with its meaning.
    pub fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, SuiteError> {
        let Some(word) = self.text(key)? else { return Ok(None) };
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == word) {
            return Ok(Some(*value));
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let help = match nearest(&word, names.iter().copied()) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None => format!("write one of: {}", names.join(", ")),
        };
        let message = format!("`{}` is \"{word}\"", self.full_path(key));
        Err(self.error_at(key, message).with_help(help))
    }

    /// Refuses keys nobody asked for.
    pub fn finish(&self) -> Result<(), SuiteError> {
        let asked = self.asked.borrow();
        for (key, _) in self.table.into_iter().flatten() {
            let name: &str = key.get_ref();
            if !asked.contains(name) {
                return Err(self.unknown(Some(key.span()), name));
            }
        }
        let prefix = if self.path.is_empty() { String::new() } else { format!("{}.", self.path) };
        for item in self.source.overrides {
            let Some(rest) = item.path.strip_prefix(&prefix) else { continue };
            let first = rest.split('.').next().unwrap_or(rest);
            if !asked.contains(first) {
                return Err(self.unknown(None, first));
            }
        }
        Ok(())
    }

    /// A mistake at the value of `key`, or at this table when there is none.
    pub fn error_at(&self, key: &str, message: impl Into<String>) -> SuiteError {
        let item = self.table.and_then(|table| table.get(key));
        let overridden = self.source.overrides.iter().any(|o| o.path == self.full_path(key));
        let mut error = self.source.error(item.map(|i| i.span()).or(self.span.clone()), message);
        if overridden {
            error.span = None;
            error.file = format!("--set {}", self.full_path(key));
        }
        error
    }

    /// The key must be there and is not.
    pub fn missing(&self, key: &str) -> SuiteError {
        self.source.error(self.span.clone(), format!("`{}` is missing", self.full_path(key)))
    }

    fn unknown(&self, span: Option<Range<usize>>, name: &str) -> SuiteError {
        let asked = self.asked.borrow();
        let help = match nearest(name, asked.iter().copied()) {
            Some(key) => format!("did you mean `{key}`?"),
            None => {
                let known: Vec<&str> = asked.iter().copied().collect();
                format!("known keys here: {}", known.join(", "))
            }
        };
        let mut error =
            self.source.error(span.clone(), format!("unknown key `{}`", self.full_path(name)));
        if span.is_none() {
            error.file = format!("--set {}", self.full_path(name));
        }
        error.with_help(help)
    }

    fn read<T>(
        &self,
        key: &'static str,
        wanted: &str,
        convert: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, SuiteError> {
        let Some(found) = self.find(key) else { return Ok(None) };
        match convert(&found.value) {
            Some(value) => Ok(Some(value)),
            None => {
                let message = format!("`{}` is {}, not {wanted}", self.full_path(key), found.value);
                let mut error = self.error_at(key, message);
                error.span = found.span;
                Err(error)
            }
        }
    }

    fn find(&self, key: &'static str) -> Option<Found> {
        self.asked.borrow_mut().insert(key);
        let path = self.full_path(key);
        if let Some(item) = self.source.overrides.iter().rev().find(|o| o.path == path) {
            return Some(Found { value: item.value.clone(), span: None });
        }
        let item = self.table?.get(key)?;
        Some(Found { value: plain(item.get_ref())?, span: Some(item.span()) })
    }

    /// Dotted path of `key` from the root.
    pub fn full_path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl SuiteError {
    /// Adds the next move.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The candidate most like `word`, when any is like it.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    candidates
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(similarity, _)| *similarity >= SUGGESTION_SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

fn as_number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Integer(i) => *i as f64,
        Value::Float(f) => *f,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// A spanned value without its spans. `None` for an integer too large to be one.
fn plain(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(s) => Value::String(s.to_string()),
        DeValue::Integer(i) => Value::Integer(i64::from_str_radix(i.as_str(), i.radix()).ok()?),
        DeValue::Float(f) => Value::Float(f.as_str().parse().ok()?),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Datetime(*d),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|i| plain(i.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => Value::Table(
            table
                .iter()
                .map(|(k, v)| Some((k.get_ref().to_string(), plain(v.get_ref())?)))
                .collect::<Option<_>>()?,
        ),
    })
}
