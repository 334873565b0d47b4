//! Where values are taken from, as a journey's file says it.

use regex::bytes::RegexBuilder;

use super::written::WrittenTake;
use crate::journey::take::{JsonPointer, TakeSource};

/// Memory of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// What a take may be.
pub(super) const TAKE_HELP: &str = "write one of { json = \"/token\" }, { header = \"X-Token\" }, { cookie = \
                         \"sid\" }, { regex = \"t=(\\\\w+)\" }, { field = \"csrf\" }";

/// Where a value is taken from; why not, as text.
pub(super) fn take_source(written: &WrittenTake) -> Result<TakeSource, String> {
    let WrittenTake { json, header, cookie, regex, field } = written.clone();
    let given = [&json, &header, &cookie, &regex, &field].into_iter().flatten().count();
    if given != 1 {
        return Err(format!("{given} sources are named, not one"));
    }
    if let Some(pointer) = json {
        let read = JsonPointer::parse(&pointer);
        return read
            .map(TakeSource::Json)
            .ok_or_else(|| format!("{pointer:?} is no JSON pointer, which begins with a slash"));
    }
    if let Some(text) = regex {
        // Bytes of any encoding: \w and \d are those of ASCII.
        let regex = RegexBuilder::new(&text).unicode(false).size_limit(REGEX_BYTES_MAX).build();
        return regex.map(TakeSource::Regex).map_err(|e| format!("regular expression: {e}"));
    }
    let by_name = header.map(|name| TakeSource::Header(name.to_ascii_lowercase()));
    let by_name = by_name.or(cookie.map(TakeSource::Cookie)).or(field.map(TakeSource::Field));
    by_name.ok_or_else(|| "no source is named".to_owned())
}
