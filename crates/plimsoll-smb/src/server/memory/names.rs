//! Names, which ignore case, and patterns of names (MS-FSA 2.1.4.4).

/// The form in which names are compared.
pub(super) fn fold(name: &str) -> String {
    if name.is_ascii() { name.to_ascii_lowercase() } else { name.to_lowercase() }
}

/// What a client looks for.
pub(super) enum Pattern {
    /// Everything.
    All,
    /// The entry of this folded name.
    One(String),
    /// Whatever matches.
    Some(Wildcards),
}

impl Pattern {
    pub(super) fn of(text: Option<&str>) -> Self {
        match text {
            None | Some("" | "*" | "*.*") => Self::All,
            Some(text) if text.contains(['*', '?', '<', '>', '"']) => {
                Self::Some(Wildcards(fold(text).chars().collect()))
            }
            Some(text) => Self::One(fold(text)),
        }
    }
}

/// A folded pattern with wildcards: `*` and `?`, and the DOS forms `<` (anything up to the last
/// dot), `>` (one character, or none at a dot or the end) and `"` (a dot, or the end).
pub(super) struct Wildcards(Vec<char>);

impl Wildcards {
    /// Follows all places of the pattern that a name can have reached: their number bounds the
    /// work, whatever the pattern.
    pub(super) fn matches(&self, folded: &str) -> bool {
        let last_dot = folded.char_indices().rev().find(|(_, c)| *c == '.').map(|(at, _)| at);
        let mut reached = vec![false; self.0.len() + 1];
        reached[0] = true;
        for (at, c) in folded.char_indices() {
            self.skip(&mut reached, Some(c));
            reached = self.step(&reached, c, last_dot == Some(at));
        }
        self.skip(&mut reached, None);
        reached[self.0.len()]
    }

    /// Passes over what may match nothing before `next`.
    fn skip(&self, reached: &mut [bool], next: Option<char>) {
        for (at, wanted) in self.0.iter().enumerate() {
            let nothing = match wanted {
                '*' | '<' => true,
                '>' => matches!(next, None | Some('.')),
                '"' => next.is_none(),
                _ => false,
            };
            reached[at + 1] |= reached[at] && nothing;
        }
    }

    /// Passes over one character of the name.
    fn step(&self, reached: &[bool], c: char, is_last_dot: bool) -> Vec<bool> {
        let mut after = vec![false; reached.len()];
        for (at, wanted) in self.0.iter().enumerate().filter(|(at, _)| reached[*at]) {
            let (stays, passes) = match wanted {
                '*' => (true, false),
                '<' => (!is_last_dot, false),
                '?' => (false, true),
                '>' => (false, c != '.'),
                '"' => (false, c == '.'),
                literal => (false, *literal == c),
            };
            after[at] |= stays;
            after[at + 1] |= passes;
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        match Pattern::of(Some(pattern)) {
            Pattern::All => true,
            Pattern::One(key) => key == fold(name),
            Pattern::Some(wildcards) => wildcards.matches(&fold(name)),
        }
    }

    #[test]
    fn patterns_find_what_dos_found() {
        let cases = [
            ("*", "a", true),
            ("*.*", "no-dot", true),
            ("readme", "README", true),
            ("a*", "Abc", true),
            ("a*c", "abcb", false),
            ("a?c", "abc", true),
            ("a?", "a", false),
            ("*.txt", "a.b.TXT", true),
            ("*.txt", "a.txt.bak", false),
            // `<` stops at the last dot, `"` is it.
            ("<\"doc", "a.b.doc", true),
            ("<", "a.b", false),
            ("<.b", "a.b", true),
            // `a>>>` finds a name of up to four characters.
            ("a>>>", "a", true),
            ("a>>>", "abcd", true),
            ("a>>>", "abcde", false),
            ("a>>.c", "ab.c", true),
            ("a\"", "a", true),
            ("a\"", "ab", false),
            ("Ä*", "ärger", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_no_work_without_end() {
        let pattern = "*a".repeat(100) + "b";
        assert!(!matches(&pattern, &"a".repeat(255)));
    }
}
