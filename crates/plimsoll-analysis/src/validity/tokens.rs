//! Output tokens a second, by the answers and by the server's own counter. Do the answers of a
//! language model have the requested tokens, and do they report their number?

use plimsoll_model::event::{GenerationCounts, PointRecord};
use plimsoll_model::finding::{Rule, TokenFault};
use plimsoll_model::units::NANOS_PER_SECOND;

use super::{Evidence, exceeds};
use crate::limit::model_uses;
use crate::times::summarise;

/// Share of the answers that may be shorter than requested before it is reported: models do that in
/// single cases.
const CUT_SHORT_MAX_RATIO: f64 = 0.05;
/// A server's counter and its answers may differ by this part: samples begin and end milliseconds
/// off the window.
const APART_MAX_RATIO: f64 = 0.02;

/// Without usage there is no rate of tokens; where only some answers report it, the rate is from
/// those.
pub(super) fn uncounted(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let requests = counts.uncounted_requests;
    fault_rule(TokenFault::Uncounted, requests, (0.0, requests + counts.counted_requests))
}

/// A chunk with text has a token at the least.
pub(super) fn mismatched(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    fault_rule(TokenFault::Mismatched, counts.mismatched_requests, (0.0, counts.counted_requests))
}

/// Figures of tokens then use the count that leaves out least.
pub(super) fn contradictory(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let limits = (0.0, counts.counted_requests);
    fault_rule(TokenFault::Contradictory, counts.contradictory_requests, limits)
}

/// Shorter answers are less work than requested.
pub(super) fn cut_short(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let by_model = counts.cut_short_requests - counts.cut_at_length_requests;
    cut(e, TokenFault::CutShort, by_model)
}

/// The same, but not because the model had no more to generate.
pub(super) fn cut_at_length(e: &Evidence<'_>) -> Option<Rule> {
    cut(e, TokenFault::CutAtLength, e.view.record.totals.generation.cut_at_length_requests)
}

/// Those of them that were cut for one reason, if those of all reasons are many.
fn cut(e: &Evidence<'_>, fault: TokenFault, requests: u64) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let of_requests = counts.counted_requests;
    let are_many = exceeds(counts.cut_short_requests, CUT_SHORT_MAX_RATIO, of_requests);
    let rule = Rule::Tokens { fault, requests, of_requests };
    (are_many && requests > 0).then_some(rule)
}

/// Answers with a fault, if they are more than this share of all.
fn fault_rule(fault: TokenFault, requests: u64, (ratio, of_requests): (f64, u64)) -> Option<Rule> {
    exceeds(requests, ratio, of_requests).then_some(Rule::Tokens { fault, requests, of_requests })
}

/// Some servers count the tokens of an answer when it ends, so at the borders of the window, for
/// the mean response time, the counts are of different requests.
pub(super) fn apart(e: &Evidence<'_>) -> Option<Rule> {
    let record = e.view.record;
    let server_per_s = server_output_tokens_per_s(record)?;
    let answers_per_s = output_tokens_per_s(record)?;
    let response_s = summarise(&e.times?.response, &[]).mean? / NANOS_PER_SECOND as f64;
    let limit_ratio = APART_MAX_RATIO + response_s / record.measured_ns.as_secs_f64();
    let apart = (server_per_s - answers_per_s).abs() > limit_ratio * answers_per_s;
    apart.then_some(Rule::TokensApart { server_per_s, answers_per_s, limit_ratio })
}

/// Output tokens in the window, by the usage in the answers.
pub(crate) fn output_tokens_per_s(record: &PointRecord) -> Option<f64> {
    let counts = &record.totals.generation;
    let seconds = record.measured_ns.as_secs_f64();
    let tokens = tokens_per_character(counts).filter(|_| seconds > 0.0)?;
    Some(counts.characters as f64 * tokens / seconds)
}

/// The same by the server's own counter, or the counters of all servers.
pub(crate) fn server_output_tokens_per_s(record: &PointRecord) -> Option<f64> {
    model_uses(&record.resources, "output_tokens").map(|used| used.mean).reduce(|a, b| a + b)
}

/// Output in the window is counted in characters as it comes; the answers that ended well give the
/// tokens per character. Without any there is no rate of tokens.
fn tokens_per_character(counts: &GenerationCounts) -> Option<f64> {
    let is_available = counts.output_tokens > 0 && counts.counted_characters > 0;
    is_available.then(|| counts.output_tokens as f64 / counts.counted_characters as f64)
}

#[cfg(test)]
mod tests;
