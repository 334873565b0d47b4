//! The `[workload]` table of a suite, as the type that its protocol reads it into.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use toml::Table;

/// What a protocol reads a `[workload]` table into.
pub trait Parameters: Any + fmt::Debug + Send + Sync {
    /// The table that reads back as this value, every default explicit.
    fn table(&self) -> Table;
}

/// The parameters of a suite's workload. Only the suite's protocol knows their type.
#[derive(Clone)]
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
        self.get().unwrap_or_else(|| panic!("the workload is no {}", type_name::<P>()))
    }
}

impl<P: Parameters> From<P> for Workload {
    fn from(parameters: P) -> Self {
        Self(Arc::new(parameters))
    }
}

/// A table of a protocol that has no type for it.
impl Parameters for Table {
    fn table(&self) -> Table {
        self.clone()
    }
}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        self.0.table() == other.0.table()
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.table().serialize(serializer)
    }
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
