//! Where the parameters of a suite come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::SuiteError;
use super::workload::TableReader;
use crate::named::named;

named! {
    /// Where a parameter comes from.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    pub enum Origin {
        /// The source report of the suite has it.
        Source = "source",
        /// A public standard or rule book of the method has it.
        Public = "public",
        /// The method's own value is unpublished: something public that is not the method's takes
        /// its place.
        Substitute = "substitute",
        /// Chosen by the authors of the shipped suite.
        Ours = "ours",
        /// A log has it.
        Log = "log",
        /// Fitted to a log.
        Fitted = "fitted",
        /// Guessed where a log does not show it.
        Guessed = "guessed",
        /// Left to whoever writes or runs the suite, like anything that the suite does not set.
        #[default]
        Yours = "yours",
    }
}

impl Origin {
    /// It is the method's: a source or a rule book of the method has it.
    pub const fn is_the_methods(self) -> bool {
        matches!(self, Self::Source | Self::Public)
    }
}

/// Where the parameters of a suite come from, by the dotted path of a value or a table. The entry
/// of a table covers its values that have no entry of their own. A path below `generator` names a
/// choice of the program that no key sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Origins {
    /// The source report has it: on which page, in which section or table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub source: BTreeMap<String, String>,
    /// Something public has it for the method: what.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub public: BTreeMap<String, String>,
    /// The method's own value is unpublished, and something public takes its place: what.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub substitute: BTreeMap<String, String>,
    /// It was chosen here: why, or what the sources leave open.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ours: BTreeMap<String, String>,
    /// A log of a server has it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub log: BTreeMap<String, String>,
    /// It was fitted to a log.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fitted: BTreeMap<String, String>,
    /// A log does not show it, and it was guessed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub guessed: BTreeMap<String, String>,
    /// It is left to whoever runs the suite: why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub yours: BTreeMap<String, String>,
    /// What the method has, where the suite has something else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub method: BTreeMap<String, String>,
}

/// First segments of the paths that parameters have.
const FIRST_SEGMENTS: [&str; 12] = [
    "conditioning",
    "endpoints",
    "generator",
    "goodput",
    "ladder",
    "load",
    "metric",
    "op_timeout",
    "profiles",
    "rules",
    "score",
    "workload",
];

/// What one client of a method stands for, where it is no user.
const USERS_PER_CLIENT: &str = "generator.users_per_client";

impl Origins {
    /// What one client stands for, as text; `None` where it is a user.
    pub fn client(&self) -> Option<String> {
        let (_, note) = self.exactly(USERS_PER_CLIENT)?;
        Some(match self.method.get(USERS_PER_CLIENT) {
            Some(users) => format!("one stands for {users} ({note})"),
            None => note.to_owned(),
        })
    }

    /// The suite has no origins.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Origin of the value at `path`, with its note.
    pub fn find(&self, path: &str) -> (Origin, &str) {
        let mut at = path;
        loop {
            if let Some(matched) = self.exactly(at) {
                return matched;
            }
            match at.rsplit_once('.') {
                Some((table, _)) => at = table,
                None => return (Origin::Yours, ""),
            }
        }
    }

    /// There is an entry at exactly this path.
    pub fn names(&self, path: &str) -> bool {
        self.exactly(path).is_some() || self.method.contains_key(path)
    }

    /// There is an entry below this path.
    pub fn name_below(&self, path: &str) -> bool {
        let is_below = |key: &String| key.strip_prefix(path).is_some_and(|it| it.starts_with('.'));
        let maps = self.entries().map(|(_, map)| map).chain([&self.method]);
        maps.flat_map(BTreeMap::keys).any(is_below)
    }

    fn exactly(&self, path: &str) -> Option<(Origin, &str)> {
        self.entries().find_map(|(origin, map)| Some((origin, map.get(path)?.as_str())))
    }

    fn entries(&self) -> impl Iterator<Item = (Origin, &BTreeMap<String, String>)> {
        [
            (Origin::Source, &self.source),
            (Origin::Public, &self.public),
            (Origin::Substitute, &self.substitute),
            (Origin::Ours, &self.ours),
            (Origin::Log, &self.log),
            (Origin::Fitted, &self.fitted),
            (Origin::Guessed, &self.guessed),
            (Origin::Yours, &self.yours),
        ]
        .into_iter()
    }

    /// Checks that every path has one origin and may be that of a parameter. Only the protocol
    /// knows the keys of a workload, and keys of another load may stay.
    pub(super) fn check(&self, table: &TableReader<'_>) -> Result<(), SuiteError> {
        let mut origin_by_path = BTreeMap::new();
        for (origin, map) in self.entries() {
            let name = origin.as_str();
            for path in map.keys() {
                let first = path.split('.').next().unwrap_or_default();
                if !FIRST_SEGMENTS.contains(&first) {
                    return Err(table
                        .error_at(name, format!("{path:?} is no parameter of a suite"))
                        .with_help("write a dotted path like \"load.think.mean\""));
                }
                if let Some(other) = origin_by_path.insert(path, name) {
                    return Err(table
                        .error_at(name, format!("{path:?} is in origins.{other} too"))
                        .with_help("a parameter has one origin; leave the other entry out"));
                }
            }
        }
        Ok(())
    }
}
