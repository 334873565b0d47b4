//! What to derive, and how.

use std::path::PathBuf;

use plimsoll_model::units::Nanos;

/// What to derive, and how.
#[derive(Clone, Debug)]
pub struct DeriveOptions {
    /// The log, in any order of its files.
    pub files: Vec<PathBuf>,
    /// Folder of the load, which exists and is empty.
    pub out: PathBuf,
    /// Paths and queries are kept as they are; else paths are hashed and queries dropped.
    pub keeps_paths: bool,
    /// Format of the lines; recognised if absent.
    pub log_format: Option<String>,
    /// Methods whose requests are in the load.
    pub methods: Vec<String>,
    /// A longer pause of a client ends its session.
    pub session_timeout: Nanos,
    /// Stamps that are much later are refused.
    pub now: Nanos,
}
