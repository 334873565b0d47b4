//! Files of text that a user gives: lists, suites, tables.

use std::io;
use std::path::Path;

/// The content of a file, in UTF-8, without the byte order mark of Windows editors (U+FEFF), which
/// would be part of the first line (gatling #3544).
///
/// # Errors
/// When it cannot be read, or is in another encoding.
pub fn read(path: &Path) -> io::Result<String> {
    text(std::fs::read(path)?)
}

/// The same for bytes that were read already.
///
/// # Errors
/// When they are in another encoding.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    let why = match bytes[..] {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            "it is in UTF-16, as PowerShell's > and some editors write it; save it as UTF-8"
        }
        _ => "it is not in UTF-8; save it as UTF-8",
    };
    let text = String::from_utf8(bytes).map_err(|_| io::Error::other(why))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_left_out_and_other_encodings_are_named() {
        let read = |bytes: &[u8]| text(bytes.to_vec()).map_err(|e| e.to_string());
        assert_eq!(read(b"\xef\xbb\xbf/a\r\n/b").as_deref(), Ok("/a\r\n/b"));
        assert_eq!(read(b"X: \xc3\xa4\n").as_deref(), Ok("X: \u{e4}\n"));
        for utf16 in [&b"\xff\xfe/\0a\0"[..], b"\xfe\xff\0/\0a"] {
            assert!(read(utf16).unwrap_err().contains("UTF-16"));
        }
        assert!(read(b"caf\xe9").unwrap_err().contains("not in UTF-8"));
    }
}
