//! Output tokens a second: by the answers, and by the server's own counter.

use plimsoll_model::event::GenerationCounts;
use plimsoll_model::event::PointRecord;

use crate::limit::told_of_models;

/// Output tokens in the window, as the answers have them.
pub(crate) fn output_tokens_per_s(record: &PointRecord) -> Option<f64> {
    let counts = &record.totals.generation;
    let seconds = record.measured_ns.as_secs_f64();
    let tokens = tokens_per_character(counts).filter(|_| seconds > 0.0)?;
    Some(counts.characters as f64 * tokens / seconds)
}

/// The same as the server's own counter says, or the counters of all servers.
pub(crate) fn server_output_tokens_per_s(record: &PointRecord) -> Option<f64> {
    told_of_models(&record.resources, "output_tokens").map(|told| told.mean).reduce(|a, b| a + b)
}

/// Output in the window is counted in characters as it comes; how many tokens that is, the answers
/// say that ended well. Without any there is no rate of tokens.
fn tokens_per_character(counts: &GenerationCounts) -> Option<f64> {
    let known = counts.output_tokens > 0 && counts.counted_characters > 0;
    known.then(|| counts.output_tokens as f64 / counts.counted_characters as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::PointBuilder;

    #[test]
    fn characters_of_the_window_count_as_the_tokens_that_answers_say_they_have() {
        let mut record = PointBuilder::closed(8).build().record;
        assert_eq!(output_tokens_per_s(&record), None);
        let seconds = record.measured_ns.as_secs_f64();
        record.totals.generation = GenerationCounts {
            characters: 9_000,
            // Half of the answers say how many tokens they have: one for each five characters.
            output_tokens: 800,
            counted_characters: 4_000,
            ..GenerationCounts::default()
        };
        let found = output_tokens_per_s(&record).unwrap();
        assert!((found - 1_800.0 / seconds).abs() < 1e-9, "{found}");
    }
}
