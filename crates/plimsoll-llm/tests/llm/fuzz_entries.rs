//! The entry points of the fuzz targets on the stable toolchain, with inputs near the real ones.

use plimsoll_fuzz::llm_entries;
use proptest::prelude::*;

/// Parts of the dictionary of the targets, and whatever else.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let dictionary = include_str!("../../../../fuzz/llm.dict");
    let quoted = dictionary.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    let plain = |word: &str| {
        let word = word.replace("\\x0a", "\n").replace("\\x0d", "\r").replace("\\\"", "\"");
        word.replace("\\xef\\xbb\\xbf", "\u{feff}").replace("\\\\", "\\").into_bytes()
    };
    let entries: Vec<Vec<u8>> = quoted.map(plain).collect();
    assert!(entries.len() > 20);
    prop_oneof![
        6 => prop::sample::select(entries),
        1 => prop::sample::select(b"{}[],:\"\n\r \\0a".to_vec()).prop_map(|byte| vec![byte]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

/// An event like a server's, right but for what is in it.
fn event() -> impl Strategy<Value = Vec<u8>> {
    let text = (any::<String>(), 0u64..200, any::<bool>()).prop_map(|(text, tokens, is_chat)| {
        let text = serde_json::Value::from(text);
        let choice = match is_chat {
            true => format!("\"delta\":{{\"content\":{text}}}"),
            false => format!("\"text\":{text}"),
        };
        let usage = format!("\"usage\":{{\"completion_tokens\":{tokens}}}");
        format!("{{\"choices\":[{{{choice}}}],{usage}}}").into_bytes()
    });
    prop_oneof![2 => text, 1 => prop::collection::vec(part(), 0..12).prop_map(|it| it.concat())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_bytes_break_the_reader_of_streams(
        fragment in any::<u8>(),
        times in prop_oneof![9 => 0u8..3, 1 => 0u8..20],
        events in prop::collection::vec((part(), event(), part()), 0..8),
    ) {
        let mut data = vec![fragment, times];
        for (before, event, after) in events {
            data.extend([before, event, after].concat());
        }
        llm_entries::sse(&data);
    }

    #[test]
    fn no_bytes_break_the_reader_of_events(
        event in event(),
        change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut data = event;
        if let Some((at, byte)) = change.filter(|_| !data.is_empty()) {
            let at = at.index(data.len());
            data[at] = byte;
        }
        llm_entries::picks(&data);
    }
}
