use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn skipped(text: &[u8]) -> Result<(), Malformed> {
    let mut json = Json::new(text)?;
    json.skip()?;
    json.end()
}

fn string(text: &str) -> (String, u64) {
    let mut json = Json::new(text.as_bytes()).unwrap();
    let text = json.text().unwrap().unwrap();
    json.end().unwrap();
    (text.chars().collect(), text.characters())
}

#[test]
fn strings_are_counted_in_characters_and_lose_their_escapes() {
    for (text, plain, characters) in [
        (r#""""#, "", 0),
        (r#""café""#, "café", 4),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t", 8),
        (r#""\uD83D\uDE00!""#, "😀!", 2),
        (r#""\u00e9\u4e2d""#, "é中", 2),
        (r#""😀""#, "😀", 1),
        // Halves of pairs, and pairs in reverse order.
        (r#""\uD83Dx\uDE00""#, "\u{fffd}x\u{fffd}", 3),
        (r#""\uDE00\uD83D""#, "\u{fffd}\u{fffd}", 2),
        (r#""\uD83D\uD83D\uDE00""#, "\u{fffd}😀", 2),
        (r#""\uD83D\n""#, "\u{fffd}\n", 2),
    ] {
        assert_eq!(string(text), (plain.to_owned(), characters), "{text}");
    }
}

#[test]
fn what_is_no_json_is_found_where_it_is() {
    for (text, at) in [
        ("", 0),
        ("  ", 2),
        ("{", 1),
        ("{\"a\"}", 4),
        ("{\"a\":1,}", 7),
        ("[1 2]", 3),
        ("[1,]", 3),
        ("01", 1),
        ("-", 1),
        ("1.", 2),
        ("1e+", 3),
        ("+1", 0),
        ("nul", 0),
        ("\"a", 2),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 5),
        ("\"a\nb\"", 2),
        ("{}x", 2),
        ("[}", 1),
        ("{]", 1),
        ("\u{feff}{}", 0),
    ] {
        assert_eq!(skipped(text.as_bytes()), Err(Malformed::Syntax { at }), "{text:?}");
    }
    assert_eq!(skipped(b"\"\xff\""), Err(Malformed::Utf8));
}

#[test]
fn nesting_is_limited() {
    let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
    assert_eq!(skipped(nested(128).as_bytes()), Ok(()));
    assert_eq!(skipped(nested(130).as_bytes()), Err(Malformed::Depth));
    let nested = r#"{"a":"#.repeat(1_000_000);
    assert_eq!(skipped(nested.as_bytes()), Err(Malformed::Depth));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_is_json(value in any_json()) {
        prop_assert_eq!(skipped(value.to_string().as_bytes()), Ok(()));
        prop_assert_eq!(skipped(format!("\t\n {value:#}\r ").as_bytes()), Ok(()));
    }

    #[test]
    fn one_wrong_byte_is_judged_as_another_reader_judges_it(
        value in any_json(),
        at in any::<prop::sample::Index>(),
        byte in prop::sample::select(b"{}[]\",:\\ \n019-+.eutfx\x00\x7f\xff".to_vec()),
    ) {
        let mut text = value.to_string().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        let ours = skipped(&text);
        // serde_json does not check the encoding of what it ignores.
        let theirs = std::str::from_utf8(&text).ok()
            .map(serde_json::from_str::<serde::de::IgnoredAny>);
        prop_assert_eq!(ours.is_ok(), theirs.is_some_and(|read| read.is_ok()));
    }

    #[test]
    fn strings_come_back(text in any::<String>()) {
        let quoted = Value::from(text.clone()).to_string();
        prop_assert_eq!(string(&quoted), (text.clone(), text.chars().count() as u64));
        let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
        let escaped = format!("\"{}\"", units.collect::<String>());
        prop_assert_eq!(string(&escaped), (text.clone(), text.chars().count() as u64));
    }
}
