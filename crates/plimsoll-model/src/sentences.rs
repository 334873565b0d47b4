//! Sentences on facts, as analysis receives them for its own: it decides what to say of a run, and
//! `plimsoll-report` has the words for each fact.

use crate::capacity::CapacityTry;
use crate::limit::Limit;

/// Writes each fact as a sentence.
#[derive(Clone, Copy, Debug)]
pub struct Sentences {
    /// What decided a try of a load.
    pub why: fn(&CapacityTry) -> String,
    /// A limit, without others that were reached at the same load.
    pub limit: fn(&Limit) -> String,
    /// A limit, and others that were reached at the same load.
    pub limit_with_others: fn(&Limit) -> String,
    /// Why no resource is named.
    pub unknown_limit: fn(&Limit) -> String,
}
