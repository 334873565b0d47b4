use plimsoll_model::event::{GenerationCounts, ResourceUse};
use plimsoll_report::sentences::finding;

use super::*;
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
    let more = finding::text(&counted_by_server(1_200.0)[0].rule);
    assert!(more.contains("1,200 output tokens/s and the answers have 1,000"), "{more}");
    assert!(more.contains("others use this server"), "{more}");
    let fewer = finding::text(&counted_by_server(500.0)[0].rule);
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
    let contradictory = GenerationCounts { contradictory_requests: 1, ..counted(100) };
    assert_eq!(warnings(contradictory), ["tokens_contradictory"]);
}

#[test]
fn the_model_is_said_to_have_ended_only_answers_that_no_length_ended() {
    let sentences = |cut_short_requests, cut_at_length_requests| {
        let mut point = PointBuilder::closed(8).build();
        point.record.totals.generation =
            GenerationCounts { cut_short_requests, cut_at_length_requests, ..counted(100) };
        let warnings = point.verdict().warnings;
        warnings.iter().map(|warning| finding::text(&warning.rule)).collect::<Vec<_>>()
    };
    let at_length = "100 answers have fewer tokens than were asked for, and the server says";
    let by_model = "100 answers have fewer tokens than were asked for: the model ended them";
    for (all, at, expected) in [
        (32, 32, &[at_length][..]),
        (32, 0, &[by_model]),
        (6, 3, &[by_model, at_length]),
        (5, 5, &[]),
    ] {
        let sentences = sentences(all, at);
        assert_eq!(sentences.len(), expected.len(), "{sentences:?}");
        for (sentence, part) in sentences.iter().zip(expected) {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn characters_of_the_window_count_as_the_tokens_that_answers_say_they_have() {
    let mut record = PointBuilder::closed(8).build().record;
    assert_eq!(output_tokens_per_s(&record), None);
    let seconds = record.measured_ns.as_secs_f64();
    record.totals.generation = GenerationCounts {
        characters: 9_000,
        // Half of the answers report their number of tokens: one for each five characters.
        output_tokens: 800,
        counted_characters: 4_000,
        ..GenerationCounts::default()
    };
    let rate = output_tokens_per_s(&record).unwrap();
    assert!((rate - 1_800.0 / seconds).abs() < 1e-9, "{rate}");
}
