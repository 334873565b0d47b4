//! The beginning of what a server sent, as text for people.

/// Characters of a reply that a message quotes.
const QUOTED_CHARS_MAX: usize = 160;

/// The beginning of a reply's text, without HTML tags and without the head, whose title is mostly
/// repeated in the body.
pub fn plain_text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(16 * 1024)]).into_owned();
    let shown = text.split_once("</head>").map_or("", |(_, body)| body);
    match unmarked(shown) {
        nothing if nothing.is_empty() => unmarked(&text),
        plain => plain,
    }
}

fn unmarked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        plain.push_str(before);
        plain.push(' ');
        rest = after.split_once('>').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    quoted(&plain, QUOTED_CHARS_MAX)
}

/// The beginning of a server's text, in one line and without control characters.
pub fn quoted(text: &str, characters_max: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut quoted: String = plain.chars().take(characters_max).collect();
    if quoted.len() < plain.len() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_quoted_as_its_words() {
        let page =
            b"<html><head><title>404 Not Found</title></head>\r\n<body>\x1b[31m&nbsp;</body>";
        assert_eq!(plain_text(page), "[31m&nbsp;");
        let nginx = b"<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n\
                      <center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx</center>";
        assert_eq!(plain_text(nginx), "404 Not Found nginx");
        assert_eq!(plain_text(b"<head><title>Gone</title></head><body></body>"), "Gone");
        assert_eq!(plain_text(b""), "");
        assert_eq!(plain_text(&[b'x'; 500]).chars().count(), QUOTED_CHARS_MAX + 1);
    }
}
