//! Sessions that clients open one after the other and keep: their plan, and their results at a load
//! point.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Clients open their sessions at a rate and keep them to the end of the load point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionsPlan {
    /// Name of the op that opens a session: the first of each client.
    pub op: String,
    /// Clients that begin a second, over all workers and agents.
    pub starts_per_s: f64,
}

impl SessionsPlan {
    /// How long after the start of the load point the last of `clients` clients begins, and one
    /// interval more.
    pub fn span(&self, clients: u32) -> Nanos {
        match self.starts_per_s > 0.0 {
            true => Nanos::from_secs_f64(f64::from(clients) / self.starts_per_s),
            false => Nanos::ZERO,
        }
    }

    /// When a client of that number begins, from the start of the load point.
    pub fn start(&self, client: u32) -> Nanos {
        self.span(client)
    }
}

/// Results of the sessions of a load point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Requested: one for each client.
    pub asked: u32,
    /// Sessions that were opened.
    pub opened: u64,
    /// Open at the end of the window.
    pub held: u64,
    /// Clients that left before the end of the window: their session did not open, or it ended.
    pub lost: u32,
    /// Errors of the whole load point by class, those of the time in which clients logged on
    /// included.
    pub errors: BTreeMap<String, u64>,
    /// What opening a session took, by the number of sessions opened before.
    pub steps: Vec<SessionStep>,
}

/// Sessions that were opened one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionStep {
    /// Sessions that had been opened before the first of these.
    pub from: u64,
    /// Sessions that had been opened after the last of them.
    pub to: u64,
    /// Median of the time from the connect to the open session.
    pub p50_ns: f64,
    /// Its 99th percentile.
    pub p99_ns: f64,
    /// The longest.
    pub max_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_begin_one_interval_after_the_other() {
        let plan = SessionsPlan { op: "logon".to_owned(), starts_per_s: 0.5 };
        let starts: Vec<f64> = (0..3).map(|client| plan.start(client).as_secs_f64()).collect();
        assert_eq!(starts, [0.0, 2.0, 4.0]);
        assert_eq!(plan.span(974), Nanos::from_secs(1_948));
    }
}
