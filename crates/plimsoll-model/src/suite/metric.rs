//! What a suite measures, and the units of its loads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a suite's headline counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Ops done per second.
    #[default]
    Ops,
    /// Application bytes moved per second, both ways.
    Bytes,
    /// Logons done per second: every op is one.
    Logons,
}

impl Metric {
    /// The default: ops, called ops.
    pub const fn is_ops(&self) -> bool {
        matches!(self, Self::Ops)
    }

    /// Its unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Ops => "ops/s",
            Self::Bytes => "bytes/s",
            Self::Logons => "logons/s",
        }
    }

    /// Unit of its ops per second: of those that move bytes too.
    pub const fn ops_unit(self) -> &'static str {
        match self {
            Self::Ops | Self::Bytes => Self::Ops.unit(),
            Self::Logons => Self::Logons.unit(),
        }
    }
}

/// Unit of a load of sessions that arrive on a schedule.
pub const SESSIONS_UNIT: &str = "sessions/s";
