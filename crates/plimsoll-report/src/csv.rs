//! csv
use plimsoll_model::result::RunResult;
/// csv
pub fn csv(_run: &RunResult) -> Vec<(String, String)> { Vec::new() }
