//! Standard error of a child as lines that may be shown.

use std::collections::VecDeque;
use std::mem;

/// Longest part of a line that is shown.
const LINE_BYTES_MAX: usize = 1_024;
/// Lines of one child that are shown; who prints more is not listened to.
const LINES_MAX: u32 = 1_000;
/// Lines that are kept for the end.
const LAST_LINES_MAX: usize = 8;
const LEFT_OUT: &str = "(further lines are left out)";

/// Bytes in, lines out.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    is_cut: bool,
    shown: u32,
    last: VecDeque<String>,
}

impl Lines {
    /// Calls `show` for each line that is complete.
    pub(super) fn feed(&mut self, bytes: &[u8], mut show: impl FnMut(String)) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match part.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (part, false),
            };
            let room = LINE_BYTES_MAX - self.line.len();
            self.is_cut |= text.len() > room;
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.finish(&mut show);
            }
        }
    }

    /// The same for a line that nothing ended.
    pub(super) fn finish(&mut self, mut show: impl FnMut(String)) {
        let mut line = printable(&mem::take(&mut self.line));
        if mem::take(&mut self.is_cut) {
            line.push('…');
        }
        if line.is_empty() {
            return;
        }
        if self.last.len() == LAST_LINES_MAX {
            self.last.pop_front();
        }
        self.last.push_back(line.clone());
        self.shown = self.shown.saturating_add(1);
        match self.shown {
            ..=LINES_MAX => show(line),
            shown if shown == LINES_MAX + 1 => show(LEFT_OUT.to_owned()),
            _ => {}
        }
    }

    /// The newest lines, shown or not.
    pub(super) fn last(&self) -> Vec<String> {
        self.last.iter().cloned().collect()
    }
}

/// A terminal takes no order from it.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut shown = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        match c {
            '\t' => shown.push(' '),
            // Marks that change the direction of text can hide its content.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(c.escape_unicode());
            }
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut shown) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.feed(chunk, |line| shown.push(line));
        }
        lines.finish(|line| shown.push(line));
        shown
    }

    #[test]
    fn chunks_become_lines() {
        assert_eq!(lines(&[b"a\nb", b"c\r\n\n", b"d"]), ["a", "bc", "d"]);
        assert_eq!(lines(&[b"\x1b[2Ja\tb\x07\xff\n"]), ["\\u{1b}[2Ja b\\u{7}\u{fffd}"]);
        assert_eq!(lines(&["a\u{202e}b".as_bytes()]), ["a\\u{202e}b"]);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let shown = lines(&[&[b'x'; 3_000], &[b'x'; 3_000], b"\nnext\n"]);
        assert_eq!(shown, ["x".repeat(LINE_BYTES_MAX) + "…", "next".to_owned()]);
    }

    #[test]
    fn who_floods_is_shown_at_first_and_kept_at_last() {
        let (mut lines, mut shown) = (Lines::default(), Vec::new());
        for number in 0..5_000 {
            lines.feed(format!("{number}\n").as_bytes(), |line| shown.push(line));
        }
        assert_eq!(shown.len(), 1_001);
        assert_eq!((shown[999].as_str(), shown[1_000].as_str()), ("999", LEFT_OUT));
        assert_eq!(lines.last().last().unwrap(), "4999");
        assert_eq!(lines.last().len(), LAST_LINES_MAX);
    }

    proptest! {
        #[test]
        fn no_bytes_order_a_terminal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (half, rest) = bytes.split_at(bytes.len() / 2);
            for line in lines(&[half, rest]) {
                prop_assert!(!line.is_empty() && !line.contains(char::is_control));
            }
        }
    }
}
