//! The `[workload]` table of a suite, as the type that its protocol reads it into.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use toml::Table;

/// What a protocol reads a `[workload]` table into.
pub trait Parameters: AsTable + Any + Debug + Send + Sync {
    /// Whether `key` says something of a run. Other keys are not written.
    fn concerns(&self, _key: &str) -> bool {
        true
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
    pub fn of<P: Parameters>(&self) -> &P {
        self.get().expect("a protocol reads the suites of its own")
    }

    fn table(&self) -> Table {
        let all = self.0.as_table().into_iter();
        all.filter(|(key, _)| self.0.concerns(key)).collect()
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
