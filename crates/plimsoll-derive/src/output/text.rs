//! Fields of the files.

/// A field of CSV. RFC 4180 §2
pub(super) fn csv_field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A basic string. <https://toml.io/en/v1.0.0#string>
pub(super) fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
