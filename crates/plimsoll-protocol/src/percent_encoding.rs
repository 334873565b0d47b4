//! Percent-encoding in URLs (RFC 3986 §2.1).

/// `%2F` and the like as bytes; what is no such code stays.
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = code
            .filter(|code| code.iter().all(u8::is_ascii_hexdigit))
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    out
}
