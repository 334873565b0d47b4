//! The `[workload]` table of a suite: how it is read into the type of its protocol, and values that
//! several protocols have in it.

use std::any::Any;
use std::fmt;
use std::fmt::Debug;
use std::sync::Arc;

use schemars::{JsonSchema, Schema};
use serde::de::{DeserializeOwned, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use toml::Table;

use super::document::{Document, Location, SuiteError, Written};
use super::values;

/// The type that a protocol reads a `[workload]` table into.
pub trait Parameters: AsTable + Any + Debug + Send + Sync {
    /// Whether `key` applies to a run. Other keys are not written.
    fn concerns(&self, _key: &str) -> bool {
        true
    }

    /// Replies are streams of output, whose times and tokens are reported.
    fn generates(&self) -> bool {
        false
    }

    /// Its load is made by users on their journeys.
    fn has_journeys(&self) -> bool {
        false
    }

    /// Its load is a recording, and so changes over a load point as that does.
    fn is_recorded(&self) -> bool {
        false
    }

    /// Keys with the names of files that lie beside the suite's own, and these names.
    fn adjacent_files(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }
}

/// A value that can be written as a table.
pub trait AsTable {
    /// The table, every default explicit.
    fn as_table(&self) -> Table;
}

impl<T: Serialize> AsTable for T {
    fn as_table(&self) -> Table {
        Table::try_from(self).expect("numbers, words, lists and tables are always TOML")
    }
}

/// The parameters of a suite's workload. Only the suite's protocol knows their type.
#[derive(Clone, Debug)]
pub struct Workload(Arc<dyn Parameters>);

impl Workload {
    /// The parameters, where they are of type `P`: where `P` is that of the suite's protocol.
    pub fn get<P: Parameters>(&self) -> Option<&P> {
        let parameters: &dyn Any = &*self.0;
        parameters.downcast_ref()
    }

    /// The parameters, for the protocol that has read them.
    ///
    /// # Panics
    /// If they are of another type: the suite of one protocol was given to another.
    pub fn parameters<P: Parameters>(&self) -> &P {
        self.get().expect("a protocol reads the suites of its own")
    }

    /// Replies are streams of output, whose times and tokens are reported.
    pub fn generates(&self) -> bool {
        self.0.generates()
    }

    /// Its load is made by users on their journeys.
    pub fn has_journeys(&self) -> bool {
        self.0.has_journeys()
    }

    /// Its load is a recording, and so changes over a load point as that does.
    pub fn is_recorded(&self) -> bool {
        self.0.is_recorded()
    }

    /// Keys with the names of files that lie beside the suite's own, and these names.
    pub fn adjacent_files(&self) -> Vec<(&'static str, &str)> {
        self.0.adjacent_files()
    }

    fn table(&self) -> Table {
        self.0.as_table().into_iter().filter(|(key, _)| self.0.concerns(key)).collect()
    }
}

impl<P: Parameters> From<P> for Workload {
    fn from(parameters: P) -> Self {
        Self(Arc::new(parameters))
    }
}

/// A table of a protocol that has no type for it.
impl Parameters for Table {}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        self.table() == other.table()
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table().serialize(serializer)
    }
}

/// Reads a file that is no suite like a suite: `T` gives keys, defaults and bounds; `finish` checks
/// across values.
///
/// # Errors
/// With the location of the mistake in the file.
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
    location: Location,
}

impl<'a> TableReader<'a> {
    /// The root table.
    pub(super) fn root(document: &'a Document<'a>) -> Self {
        let (written, location) = document.root();
        Self { document, written, location }
    }

    /// The table under `key`; reads as empty when the file has none.
    pub(super) fn table(&self, key: &str) -> Self {
        let (written, location) = self.document.child((self.written, &self.location), key);
        Self { document: self.document, written, location }
    }

    /// The whole table. Defaults are those of the type; bounds of numbers are those of its schema.
    pub fn read<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, SuiteError> {
        let schema = schemars::schema_for!(T).to_value();
        values::read(self.document, (self.written, self.location.clone()), &schema)
    }

    /// The file or the command line has a value for `key`.
    pub fn has(&self, key: &str) -> bool {
        let (written, location) = self.find(key);
        !matches!(written, Written::Nothing) || self.document.is_given(&location.path)
    }

    /// A mistake at the value of `key`, a dotted path below this table, or at the innermost table
    /// on the path when there is none. An item of a list is named by its number, from 0.
    pub fn error_at(&self, key: &str, message: impl Into<String>) -> SuiteError {
        let (_, location) = self.find(key);
        self.document.error(&location, message)
    }

    /// The key must be there and is not.
    pub fn missing(&self, key: &str) -> SuiteError {
        self.document.error(&self.location, format!("`{}` is missing", self.location.below(key)))
    }

    fn find(&self, key: &str) -> (Written<'a>, Location) {
        let start = (self.written, self.location.clone());
        if key.is_empty() {
            return start;
        }
        key.split('.')
            .fold(start, |(written, location), key| self.document.child((written, &location), key))
    }
}

/// Larger than any weight needs to be, small enough that sums stay exact.
pub(super) const WEIGHT_MAX: f64 = 1e6;

/// Bounds of all numbers of a table of weights, for its schema.
pub fn weights(schema: &mut Schema) {
    let bound = |weight: &mut Value| {
        weight["minimum"] = json!(0.0);
        weight["maximum"] = json!(WEIGHT_MAX);
    };
    let named = schema.get_mut("properties").and_then(Value::as_object_mut);
    named.into_iter().flat_map(|named| named.values_mut()).for_each(bound);
    schema
        .get_mut("additionalProperties")
        .filter(|any| any.is_object())
        .into_iter()
        .for_each(bound);
}

/// Reads `N` whole numbers that sum to 100.
pub fn percents<'de, D: Deserializer<'de>, const N: usize>(
    deserializer: D,
) -> Result<[u8; N], D::Error> {
    deserializer.deserialize_seq(Percents)
}

struct Percents<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for Percents<N> {
    type Value = [u8; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} whole numbers that sum to 100")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<[u8; N], A::Error> {
        let mut percents = Vec::new();
        while let Some(percent) = items.next_element::<u8>()? {
            percents.push(percent);
        }
        let sum: u32 = percents.iter().map(|percent| u32::from(*percent)).sum();
        let length = percents.len();
        match <[u8; N]>::try_from(percents) {
            Ok(percents) if sum == 100 => Ok(percents),
            _ => Err(A::Error::invalid_length(length, &self)),
        }
    }
}
