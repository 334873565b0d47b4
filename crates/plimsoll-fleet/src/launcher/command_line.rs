//! Command lines as a POSIX shell splits and quotes them, without a shell: nothing is expanded.

use thiserror::Error;

/// Why a text cannot be split into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SplitError {
    /// A quote is opened and never closed.
    #[error("the quote {0} is not closed")]
    Unclosed(char),
    /// The last character is a backslash, which quotes nothing.
    #[error("it ends with a backslash; write \\\\ for one")]
    LoneBackslash,
}

/// The tokens of a command line: POSIX.1-2017, Shell Command Language, 2.2 Quoting. Operators such
/// as `|` are plain characters.
///
/// # Errors
/// When a quote or a backslash is left open.
pub fn split(text: &str) -> Result<Vec<String>, SplitError> {
    let mut tokens = Vec::new();
    // The current token; `''` is a token too.
    let mut word: Option<String> = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => quoted(&mut rest, c, word.get_or_insert_default())?,
            '\\' => match rest.next().ok_or(SplitError::LoneBackslash)? {
                '\n' => {}
                escaped => word.get_or_insert_default().push(escaped),
            },
            ' ' | '\t' | '\n' => tokens.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    tokens.extend(word);
    Ok(tokens)
}

/// Up to the closing quote.
fn quoted(
    rest: &mut std::str::Chars<'_>,
    quote: char,
    word: &mut String,
) -> Result<(), SplitError> {
    let unclosed = SplitError::Unclosed(quote);
    loop {
        match rest.next().ok_or(unclosed)? {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match rest.next().ok_or(unclosed)? {
                '\n' => {}
                c @ ('$' | '`' | '"' | '\\') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

/// The word as a shell reads it back.
pub(super) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The tokens, quoted so that a shell reads them back.
pub(super) fn join<S: AsRef<str>>(tokens: &[S]) -> String {
    let tokens: Vec<String> = tokens.iter().map(|word| quote(word.as_ref())).collect();
    tokens.join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        for (text, tokens) in [
            ("", &[][..]),
            (" \t\n", &[]),
            ("ip netns exec A", &["ip", "netns", "exec", "A"]),
            ("  a   b  ", &["a", "b"]),
            (r#"a 'b c' "d e""#, &["a", "b c", "d e"]),
            (r"a\ b \'c\\", &["a b", r"'c\"]),
            (r#""a\"b\\c\d\$e\`""#, &[r#"a"b\c\d$e`"#]),
            (r"'a\b' ''", &[r"a\b", ""]),
            ("a'b'\"c\"d", &["abcd"]),
            ("a\\\nb 'c\nd' \"e\\\nf\"", &["ab", "c\nd", "ef"]),
            ("$HOME ~ * | ; > # x", &["$HOME", "~", "*", "|", ";", ">", "#", "x"]),
        ] {
            assert_eq!(split(text).unwrap(), tokens, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for (text, error) in [
            ("a 'b", SplitError::Unclosed('\'')),
            ("a \"b'", SplitError::Unclosed('"')),
            ("\"a\\", SplitError::Unclosed('"')),
            ("a\\", SplitError::LoneBackslash),
        ] {
            assert_eq!(split(text), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_back(tokens in proptest::collection::vec(".*", 0..6)) {
            prop_assert_eq!(split(&join(&tokens)).unwrap(), tokens);
        }

        #[test]
        fn any_text_is_split_or_refused(text in "[ -~\n\t]*") {
            let _ = split(&text);
        }
    }
}
