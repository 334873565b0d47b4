//! Reads tables of a suite into the types of those who know them.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::document::{Document, Place, SuiteError, Written};
use super::values;

/// Reads a file that is no suite the way suites are read: `T` says keys, defaults and bounds,
/// `finish` what no single value can say.
///
/// # Errors
/// With the place of the mistake in the file.
pub fn read_document<T: DeserializeOwned + JsonSchema, R>(
    file: &str,
    text: &str,
    finish: impl FnOnce(T, &TableReader<'_>) -> Result<R, SuiteError>,
) -> Result<R, SuiteError> {
    let document = Document::new(file, text, &[])?;
    let root = TableReader::root(&document);
    finish(root.read()?, &root)
}

/// Reads one table of a suite.
pub struct TableReader<'a> {
    document: &'a Document<'a>,
    written: Written<'a>,
    place: Place,
}

impl<'a> TableReader<'a> {
    /// The root table.
    pub(super) fn root(document: &'a Document<'a>) -> Self {
        let (written, place) = document.root();
        Self { document, written, place }
    }

    /// The table under `key`; reads as empty when the file has none.
    pub(super) fn table(&self, key: &str) -> Self {
        let (written, place) = self.document.child((self.written, &self.place), key);
        Self { document: self.document, written, place }
    }

    /// The whole table. Defaults are those of the type; bounds of numbers are those of its schema.
    pub fn read<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, SuiteError> {
        let schema = schemars::schema_for!(T).to_value();
        values::read(self.document, (self.written, self.place.clone()), &schema)
    }

    /// The file or the command line says something of `key`.
    pub fn has(&self, key: &str) -> bool {
        let (written, place) = self.find(key);
        !matches!(written, Written::Nothing) || self.document.is_given(&place.path)
    }

    /// A mistake at the value of `key`, a dotted path below this table, or at the innermost table
    /// on the way when there is none. An item of a list is named by its number, from 0.
    pub fn error_at(&self, key: &str, message: impl Into<String>) -> SuiteError {
        let (_, place) = self.find(key);
        self.document.error(&place, message)
    }

    /// The key must be there and is not.
    pub fn missing(&self, key: &str) -> SuiteError {
        self.document.error(&self.place, format!("`{}` is missing", self.place.below(key)))
    }

    fn find(&self, key: &str) -> (Written<'a>, Place) {
        let start = (self.written, self.place.clone());
        if key.is_empty() {
            return start;
        }
        key.split('.')
            .fold(start, |(written, place), key| self.document.child((written, &place), key))
    }
}
