//! Do the answers of a language model have the tokens that they were asked for, and do they say how
//! many?

use plimsoll_model::finding::{Rule, TokenFault};

use super::Evidence;

/// Part of the answers that may be shorter than was asked for before a reader is told: single ones
/// are what models do.
const CUT_SHORT_MAX_RATIO: f64 = 0.05;

/// Without usage there is no rate of tokens; where some say it, it is theirs.
pub(super) fn uncounted(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let requests = counts.uncounted_requests;
    let of_requests = requests + counts.counted_requests;
    let fault = TokenFault::Uncounted;
    (requests > 0).then_some(Rule::Tokens { fault, requests, of_requests })
}

/// A chunk with text has a token at the least.
pub(super) fn mismatched(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let (requests, of_requests) = (counts.mismatched_requests, counts.counted_requests);
    let fault = TokenFault::Mismatched;
    (requests > 0).then_some(Rule::Tokens { fault, requests, of_requests })
}

/// Shorter answers are less work than was asked for.
pub(super) fn cut_short(e: &Evidence<'_>) -> Option<Rule> {
    let counts = &e.view.record.totals.generation;
    let (requests, of_requests) = (counts.cut_short_requests, counts.counted_requests);
    let fault = TokenFault::CutShort;
    let many = requests as f64 > of_requests as f64 * CUT_SHORT_MAX_RATIO;
    many.then_some(Rule::Tokens { fault, requests, of_requests })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::generation::GenerationCounts;

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
    fn tokens_that_are_missing_wrong_or_too_few_are_named() {
        let uncounted = GenerationCounts { uncounted_requests: 1, ..counted(99) };
        assert_eq!(warnings(uncounted), ["tokens_uncounted"]);
        let mismatched = GenerationCounts { mismatched_requests: 1, ..counted(99) };
        assert_eq!(warnings(mismatched), ["tokens_mismatched"]);
        let cut_short = GenerationCounts { cut_short_requests: 6, ..counted(100) };
        assert_eq!(warnings(cut_short), ["tokens_cut_short"]);
    }
}
