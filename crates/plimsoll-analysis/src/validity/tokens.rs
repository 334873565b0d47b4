//! Do the answers of a language model have the tokens that they were asked for, and do they say how
//! many?

use plimsoll_model::finding::{Rule, TokenFault};
use plimsoll_model::units::NANOS_PER_SECOND;

use super::{Evidence, exceeds};
use crate::times::summarise;
use crate::tokens::{output_tokens_per_s, server_output_tokens_per_s};

/// Part of the answers that may be shorter than was asked for before a reader is told: single ones
/// are what models do.
const CUT_SHORT_MAX_RATIO: f64 = 0.05;
/// By this part a server's counter and its answers may differ: samples begin and end milliseconds
/// beside the window.
const APART_MAX_RATIO: f64 = 0.02;

/// Without usage there is no rate of tokens; where some say it, it is theirs.
pub(super) fn uncounted(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let requests = counts.uncounted_requests;
    found(TokenFault::Uncounted, requests, (0.0, requests + counts.counted_requests))
}

/// A chunk with text has a token at the least.
pub(super) fn mismatched(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    found(TokenFault::Mismatched, counts.mismatched_requests, (0.0, counts.counted_requests))
}

/// Shorter answers are less work than was asked for.
pub(super) fn cut_short(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let limits = (CUT_SHORT_MAX_RATIO, counts.counted_requests);
    found(TokenFault::CutShort, counts.cut_short_requests, limits)
}

/// Answers with a fault, if they are more than this share of all.
fn found(fault: TokenFault, requests: u64, (ratio, of_requests): (f64, u64)) -> Option<Rule> {
    exceeds(requests, ratio, of_requests).then_some(Rule::Tokens { fault, requests, of_requests })
}

/// Some servers count the tokens of an answer when it ends, so that those of requests under way at
/// the borders of the window, the mean response time over its length, are another's.
pub(super) fn apart(e: &Evidence<'_>) -> Option<Rule> {
    let record = e.view.record;
    let server_per_s = server_output_tokens_per_s(record)?;
    let answers_per_s = output_tokens_per_s(record)?;
    let response_s = summarise(&e.times?.response, &[]).mean? / NANOS_PER_SECOND as f64;
    let limit_ratio = APART_MAX_RATIO + response_s / record.measured_ns.as_secs_f64();
    let apart = (server_per_s - answers_per_s).abs() > limit_ratio * answers_per_s;
    apart.then_some(Rule::TokensApart { server_per_s, answers_per_s, limit_ratio })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::GenerationCounts;
    use plimsoll_model::event::ResourceUse;

    use crate::testing::PointBuilder;

    fn warnings(counts: GenerationCounts) -> Vec<&'static str> {
        let mut point = PointBuilder::closed(8).build();
        point.record.totals.generation = counts;
        assert!(point.verdict().valid, "they only warn");
        point.verdict().warnings.iter().map(|warning| warning.rule.name()).collect()
    }

    fn counted(requests: u64) -> GenerationCounts {
        GenerationCounts { counted_requests: requests, ..GenerationCounts::default() }
    }

    #[test]
    fn answers_that_say_their_tokens_and_have_them_are_no_finding() {
        assert!(warnings(counted(100)).is_empty());
        assert!(warnings(GenerationCounts { cut_short_requests: 5, ..counted(100) }).is_empty());
    }

    #[test]
    fn a_server_that_counts_other_tokens_than_it_answered_with_is_told() {
        let counted_by_server = |per_s: f64| {
            let mut point = PointBuilder::closed(8).response_ns(100_000_000).build();
            let seconds = point.record.measured_ns.as_secs_f64();
            point.record.totals.generation = GenerationCounts {
                characters: (4_000.0 * seconds) as u64,
                output_tokens: 1_000,
                counted_characters: 4_000,
                ..counted(100)
            };
            let uses = [ResourceUse::of_window("model.output_tokens", "1/s", per_s, per_s)];
            point.record.resources = uses.into();
            point.verdict().warnings
        };
        assert!(counted_by_server(1_015.0).is_empty());
        let more = counted_by_server(1_200.0)[0].rule.to_string();
        assert!(more.contains("1,200 output tokens/s and the answers have 1,000"), "{more}");
        assert!(more.contains("others use this server"), "{more}");
        let fewer = counted_by_server(500.0)[0].rule.to_string();
        assert!(fewer.contains("measure the servers one by one"), "{fewer}");
    }

    #[test]
    fn tokens_that_are_missing_wrong_or_too_few_are_named() {
        let uncounted = GenerationCounts { uncounted_requests: 1, ..counted(99) };
        assert_eq!(warnings(uncounted), ["tokens_uncounted"]);
        let mismatched = GenerationCounts { mismatched_requests: 1, ..counted(99) };
        assert_eq!(warnings(mismatched), ["tokens_mismatched"]);
        let cut_short = GenerationCounts { cut_short_requests: 6, ..counted(100) };
        assert_eq!(warnings(cut_short), ["tokens_cut_short"]);
    }
}
