use std::collections::BTreeSet;

use super::*;

fn written(sequence: &WordSequence, key: u64, count: u32) -> String {
    let mut text = Vec::new();
    sequence.write(rng::key(&[key]), count, &mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn the_list_holds_plain_words_each_once() {
    let list: Vec<&str> = LIST.split_whitespace().collect();
    assert!((1_900..2_100).contains(&list.len()), "{}", list.len());
    assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len());
    assert!(list.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
}

#[test]
fn a_key_gives_as_many_words_as_are_wanted_and_the_same_ones_again() {
    let sequence = WordSequence::new(1);
    for count in [0, 1, 512, 65_056, 200_000] {
        let text = written(&sequence, 9, count);
        assert_eq!(text.split_whitespace().count(), count as usize);
        assert_eq!(text, written(&WordSequence::new(1), 9, count));
    }
    assert_ne!(written(&sequence, 9, 50), written(&sequence, 10, 50));
    assert_ne!(written(&sequence, 9, 50), written(&WordSequence::new(2), 9, 50));
    let mut last = Vec::new();
    sequence.write(u64::MAX, 3, &mut last);
    assert!(last.starts_with(b" "), "at the end of the sequence");
}

#[test]
fn a_salt_has_sixteen_digits_whatever_its_value() {
    for (salt, text) in [(0, "0000000000000000"), (0xdead_0000_0000_beef, "dead00000000beef")] {
        let mut written = Vec::new();
        write_salt(salt, &mut written);
        assert_eq!(written, text.as_bytes());
    }
}

fn probes(of: impl Fn(u32) -> u32) -> Vec<Probed> {
    PROBE_WORD_COUNTS.map(|word_count| Probed { word_count, tokens: of(word_count) }).to_vec()
}

#[test]
fn a_tokenizer_that_splits_every_word_alike_is_found_exactly() {
    let probed = probes(|word_count| 17 + 3 * word_count);
    let fit = Fit::through(&probed).unwrap();
    assert!((fit.base_tokens - 17.0).abs() < 1e-6 && (fit.tokens_a_word - 3.0).abs() < 1e-9);
    assert!(fit.furthest_tokens(&probed) < 1e-6);
    assert_eq!(fit.prompt_word_count(17 + 3 * 165), 165);
    assert_eq!(fit.part_word_count(300), 100);
    assert_eq!(fit.prompt_word_count(5), 1, "the template alone is longer");
}

#[test]
fn scatter_of_the_probes_moves_the_length_little() {
    let probed = probes(|word_count| (25.0 + 1.13 * f64::from(word_count)) as u32 + word_count % 7);
    let fit = Fit::through(&probed).unwrap();
    let word_count = f64::from(fit.prompt_word_count(512));
    assert!((25.0 + 1.13 * word_count - 512.0).abs() < 8.0, "{word_count}");
    assert!(fit.furthest_tokens(&probed) < 8.0);
}

#[test]
fn probes_that_lie_on_no_line_make_no_fit() {
    assert_eq!(Fit::through(&[]), None);
    assert_eq!(Fit::through(&[Probed { word_count: 64, tokens: 80 }]), None);
    assert_eq!(Fit::through(&probes(|_| 1)), None, "a server that always says the same");
    assert_eq!(Fit::UNKNOWN.prompt_word_count(512), 512);
}
