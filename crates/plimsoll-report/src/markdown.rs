//! The same content as tables of text.
use plimsoll_model::result::RunResult;
/// Placeholder until written below.
pub fn markdown(_runs: &[RunResult]) -> String { String::new() }
