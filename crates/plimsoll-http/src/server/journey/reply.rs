//! Bodies in which a user finds what the journey takes from them.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};

use crate::journey::PageRequest;
use crate::journey::take::{JsonPointer, Take, TakeSource};

/// The body of a reply to `request`, with the value of each take in its body; and its media type.
pub(super) fn body<'v>(
    request: &PageRequest,
    title: &str,
    value: impl Fn(&Take) -> &'v str,
) -> (Vec<u8>, &'static str) {
    let content = request.content.as_deref().unwrap_or_default();
    let is_json = request.takes.iter().any(|take| matches!(take.from, TakeSource::Json(_)));
    let mut texts = String::new();
    for take in &request.takes {
        match &take.from {
            TakeSource::Field(name) => {
                let value = value(take);
                texts += &format!("<input type=\"hidden\" name=\"{name}\" value=\"{value}\">\n");
            }
            TakeSource::Regex(regex) => texts += &matched(regex.as_str(), value(take)),
            TakeSource::Json(_) | TakeSource::Header(_) | TakeSource::Cookie(_) => {}
        }
    }
    if !is_json {
        let html = format!(
            "<!doctype html>\n<title>{title}</title>\n<form method=\"post\">\n{texts}</form>\n\
             {content}\n"
        );
        return (html.into_bytes(), "text/html; charset=utf-8");
    }
    let mut json = Value::Object(Map::new());
    for take in &request.takes {
        if let TakeSource::Json(pointer) = &take.from {
            insert(&mut json, pointer, value(take));
        }
    }
    (format!("{json}{texts}{content}\n").into_bytes(), "application/json")
}

/// Puts a text where the pointer leads.
fn insert(json: &mut Value, pointer: &JsonPointer, text: &str) {
    let mut at = json;
    for token in pointer.tokens() {
        at = match token.parse::<usize>() {
            Ok(index) if index < ITEMS_MAX => {
                if !at.is_array() {
                    *at = Value::Array(Vec::new());
                }
                let Value::Array(items) = at else { return };
                items.resize(items.len().max(index + 1), Value::Null);
                &mut items[index]
            }
            _ => {
                if !at.is_object() {
                    *at = Value::Object(Map::new());
                }
                let Value::Object(members) = at else { return };
                members.entry(token.clone()).or_insert(Value::Null)
            }
        };
    }
    *at = Value::String(text.to_owned());
}

/// Items of an array that a reply is given.
const ITEMS_MAX: usize = 1_000;

/// A text that the regular expression matches, with `value` as its first group.
fn matched(regex: &str, value: &str) -> String {
    let mut text = String::new();
    if let Ok(hir) = ParserBuilder::new().unicode(false).utf8(false).build().parse(regex) {
        write_match(&hir, value, &mut text);
    }
    text + "\n"
}

fn write_match(hir: &Hir, value: &str, into: &mut String) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => *into += &String::from_utf8_lossy(&literal.0),
        HirKind::Class(Class::Unicode(class)) => {
            into.extend(class.iter().next().map(|range| range.start()));
        }
        HirKind::Class(Class::Bytes(class)) => {
            let has = |c: &u8| class.iter().any(|range| range.start() <= *c && *c <= range.end());
            let first = class.iter().next().map(|range| range.start());
            into.extend([b'a', b'0', b' '].into_iter().find(has).or(first).map(char::from));
        }
        HirKind::Repetition(repetition) => {
            let has_group = repetition.sub.properties().explicit_captures_len() > 0;
            for _ in 0..repetition.min.max(u32::from(has_group)) {
                write_match(&repetition.sub, value, into);
            }
        }
        HirKind::Capture(group) if group.index == 1 => *into += value,
        HirKind::Capture(group) => write_match(&group.sub, value, into),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write_match(part, value, into)),
        HirKind::Alternation(parts) => {
            let has_group = |part: &&Hir| part.properties().explicit_captures_len() > 0;
            let chosen = parts.iter().find(has_group).or(parts.first());
            chosen.into_iter().for_each(|part| write_match(part, value, into));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_for_a_regular_expression() {
        for regex in [
            r"t=(\w+)",
            r#"name="csrf" value="([^"]+)""#,
            r"(?:id|key): (\d+);",
            r"(?s)^.*<b>(.*?)</b>",
            r"[a-f]{3}-(?:x(\d+))?",
        ] {
            let text = matched(regex, "123");
            let regex = regex::bytes::RegexBuilder::new(regex).unicode(false).build().unwrap();
            let captures = regex.captures(text.as_bytes()).unwrap();
            assert_eq!(captures.get(1).unwrap().as_bytes(), b"123", "{regex}: {text}");
        }
    }

    #[test]
    fn a_text_is_put_where_a_pointer_leads() {
        let mut json = Value::Null;
        for (pointer, text) in [("/a/b", "1"), ("/a/list/1/id", "2"), ("/m~1n", "3")] {
            insert(&mut json, &JsonPointer::parse(pointer).unwrap(), text);
            assert_eq!(json.pointer(pointer), Some(&Value::String(text.to_owned())), "{json}");
        }
    }
}
