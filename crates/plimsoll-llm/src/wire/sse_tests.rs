use super::*;
use proptest::prelude::*;

/// The content of a body in these fragments, comments as `:`, and what is left at its end.
fn read<'a>(fragments: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, String) {
    let mut reader = EventReader::default();
    let mut items = Vec::new();
    for mut fragment in fragments {
        while let Some(next) = reader.next(&mut fragment) {
            items.push(match next {
                StreamItem::Event(data) => String::from_utf8_lossy(data).into_owned(),
                StreamItem::Error(data) => format!("error {}", String::from_utf8_lossy(data)),
                StreamItem::Bare(line) => format!("bare {}", String::from_utf8_lossy(line)),
                StreamItem::Comment => ":".to_owned(),
                StreamItem::TooLong => "too long".to_owned(),
            });
        }
        assert!(fragment.is_empty(), "all bytes are taken");
    }
    (items, String::from_utf8_lossy(reader.rest()).into_owned())
}

#[track_caller]
fn check(body: &str, events: &[&str], rest: &str) {
    for bytes in 1..=body.len() {
        let (items, left) = read(body.as_bytes().chunks(bytes));
        assert_eq!(items, events, "{body:?} in fragments of {bytes}");
        assert_eq!(left, rest, "{body:?} in fragments of {bytes}");
    }
}

#[test]
fn events_end_with_an_empty_line_of_any_kind() {
    check("data: a\n\ndata: b\n\n", &["a", "b"], "");
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"], "");
    check("data: a\r\rdata: b\r\r", &["a", "b"], "");
    check("data: a\n\r\ndata: b\r\n\rdata: c\r\n\n", &["a", "b", "c"], "");
    check("\n\n\r\n\rdata: a\n\n\n\n", &["a"], "");
}

#[test]
fn an_event_is_complete_with_the_cr_of_its_empty_line() {
    let mut reader = EventReader::default();
    let mut fragment: &[u8] = b"data: a\r\n\r";
    assert_eq!(reader.next(&mut fragment), Some(StreamItem::Event(b"a")));
    let mut fragment: &[u8] = b"\ndata: b\r\n\r\n";
    assert_eq!(reader.next(&mut fragment), Some(StreamItem::Event(b"b")));
    assert_eq!(reader.next(&mut fragment), None);
}

#[test]
fn only_one_space_after_the_colon_is_not_data() {
    check("data:a\n\ndata: a\n\ndata:  a \n\ndata\n\ndata:\n\n", &["a", "a", " a ", "", ""], "");
}

/// llama.cpp #16104, lemonade #2826.
#[test]
fn errors_are_told_from_events_by_field_by_type_and_by_having_neither() {
    check("data: a\n\nerror: {\"b\"}\n\ndata: c\n\n", &["a", "error {\"b\"}", "c"], "");
    check("event: error\ndata: a\ndata: b\n\ndata: c\n\n", &["error a\nb", "c"], "");
    check("data: a\nevent:error\n\nevent: error\n\n", &["error a", "error "], "");
    check("id: 1\n{\"a\":1}\n\ndata: b\n{\"c\"}\n\n", &["bare {\"a\":1}", "bare {\"c\"}", "b"], "");
    check("event: errors\nerrors: x\nerro: y\ndata: a\n\n", &["a"], "");
    check("data: a\n\nerror: {\"b\"}", &["a"], "{\"b\"}");
}

#[test]
fn lines_of_data_are_joined_and_other_fields_ignored() {
    let body = "event: delta\nid: 1\ndata: {\nretry: 10\ndata:}\ndatabase: x\nx\n\nid: 2\n\n";
    check(body, &["{\n}"], "");
}

#[test]
fn comments_are_seen_between_and_within_events() {
    check(": ping\n\ndata: a\n:\ndata: b\n\n:", &[":", ":", "a\nb"], ":");
}

#[test]
fn a_byte_order_mark_before_the_first_line_means_nothing() {
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"], "");
}

#[test]
fn the_rest_is_what_no_empty_line_ended() {
    check("data: a\n\ndata: [DONE]", &["a"], "[DONE]");
    check("data: a\n\ndata: [DONE]\n", &["a"], "[DONE]");
    check("data: a\n\n", &["a"], "");
}

#[test]
fn json_and_html_are_no_streams() {
    for body in [" {\n\"error\":1}\n\n", "<html>\n\n", "[\n]\n", "{\"data\":1}"] {
        for bytes in 1..=body.len() {
            let mut reader = EventReader::default();
            for mut fragment in body.as_bytes().chunks(bytes) {
                assert_eq!(reader.next(&mut fragment), None, "{body:?}");
            }
            assert!(reader.is_no_stream());
            assert_eq!(reader.rest(), body.as_bytes());
        }
    }
    let mut reader = EventReader::default();
    assert_eq!(reader.next(&mut &[b'{'; 100_000][..]), None);
    assert_eq!(reader.rest().len(), EXCERPT_BYTES_MAX);
    assert!(!EventReader::default().is_no_stream());
}

#[test]
fn an_event_over_the_limit_ends_the_stream_without_memory() {
    let fits = "x".repeat(EVENT_BYTES_MAX - "data: ".len());
    let too_long = "x".repeat(EVENT_BYTES_MAX + 1);
    let body = format!("data: {fits}\n\ndata: {too_long}\n\ndata: a\n\n");
    for bytes in [1_000, 65_536] {
        let (items, _) = read(body.as_bytes().chunks(bytes));
        let ends: Vec<&str> = items.iter().map(|item| &item[..item.len().min(9)]).collect();
        assert_eq!(ends, [&fits[..9], "too long"]);
        assert_eq!(items[0], fits);
    }
    let mut reader = EventReader::default();
    for _ in 0..3_000 {
        let mut fragment: &[u8] = &[b'x'; 1_000];
        while reader.next(&mut fragment).is_some() {}
        assert!(reader.heap_bytes() <= 2 * EVENT_BYTES_MAX + 2);
    }
    // Many short lines are one long event.
    let lines = "data: xxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(50_000);
    assert_eq!(read(lines.as_bytes().chunks(4_096)).0, ["too long"]);
    assert_eq!(read(std::iter::once(lines.as_bytes())).0, ["too long"]);
}

#[test]
fn an_event_that_lies_whole_in_a_fragment_takes_no_memory() {
    let mut reader = EventReader::default();
    let mut fragment: &[u8] = b": x\n\nid: 1\ndata: a\n\ndata: b\r\n\r\n";
    while reader.next(&mut fragment).is_some() {}
    assert_eq!(reader.heap_bytes(), 0);
}

/// The standard's algorithm, on the whole body.
fn parse_by_standard(body: &[u8]) -> Vec<String> {
    let body = String::from_utf8_lossy(body).replace("\r\n", "\n").replace('\r', "\n");
    let body = body.strip_prefix('\u{feff}').unwrap_or(&body);
    let (mut events, mut data) = (Vec::new(), None::<String>);
    // A last line without an end is none.
    let lines: Vec<&str> = body.split('\n').collect();
    for line in &lines[..lines.len() - 1] {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        match (line.is_empty(), name) {
            (true, _) => events.extend(data.take()),
            (_, "") => events.push(":".to_owned()),
            (_, "data") => {
                let value = value.strip_prefix(' ').unwrap_or(value);
                data = Some(data.map_or(value.to_owned(), |data| data + "\n" + value));
            }
            _ => {}
        }
    }
    events
}

proptest! {
    #[test]
    fn any_body_says_the_same_in_any_fragments(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "\n", "\r", "\r\n", "\n\n", "data", "data:", "data: ", ":", " ", "x", "é", "🙂",
                "\u{feff}", "id: 1", "event:y", "data: {}\n\n", "data: {}\r\n\r\n",
            ]),
            0..40,
        ),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let body = parts.concat().into_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        at.extend([0, body.len()]);
        at.sort_unstable();
        let (items, rest) = read(at.windows(2).map(|cut| &body[cut[0]..cut[1]]));
        prop_assert_eq!(&items, &parse_by_standard(&body));
        prop_assert_eq!((items, rest), read(body.chunks(1)));
    }
}
