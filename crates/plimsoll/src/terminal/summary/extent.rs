//! How much of a summary is shown.

use super::super::Screen;

/// Rows of the table of points; a longer ladder is thinned, its ends kept.
const ROWS_MAX: usize = 12;
/// Findings shown of each kind; the report has all.
const FINDINGS_MAX: usize = 4;
/// Lines of a headline text, which matters more than a finding.
const HEADLINE_LINES: usize = 2;
/// Sizes that are tried for a screen, the roomiest first: findings of each kind, lines of a
/// finding, rows of the table. A summary without a table has more room for the others.
const TRIED: [(usize, usize, usize); 11] = [
    (FINDINGS_MAX, 4, ROWS_MAX),
    (FINDINGS_MAX, 2, ROWS_MAX),
    (3, 2, ROWS_MAX),
    (3, 2, 8),
    (2, 2, 8),
    (2, 2, 6),
    (2, 1, 8),
    (2, 1, 6),
    (2, 1, 5),
    (1, 1, 4),
    (1, 1, 3),
];
const LINES_BELOW: usize = 1;
/// Indentation of a finding's text.
const INDENT: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub findings_max: usize,
    pub rows_max: usize,
    /// The distribution of response times, of a run of one point.
    pub distribution: bool,
    /// Of the screen; absent if nothing is cut.
    pub columns: Option<usize>,
    lines_max: usize,
    separator: &'static str,
}

impl Extent {
    /// For a file or a pipe: complete texts, separated parts.
    pub(super) const WHOLE: Self = Self {
        findings_max: FINDINGS_MAX,
        rows_max: ROWS_MAX,
        distribution: true,
        columns: None,
        lines_max: usize::MAX,
        separator: "\n",
    };

    /// The roomiest text that fits, else the shortest.
    pub(super) fn roomiest(screen: Screen, text: impl Fn(&Self) -> String) -> String {
        let mut shown = String::new();
        let tried = |distribution| TRIED.map(|sizes| (sizes, distribution));
        for ((findings_max, lines_max, rows_max), distribution) in
            tried(true).into_iter().chain(tried(false))
        {
            // First drop the blank lines between parts, then shorten the parts.
            for separator in ["\n", ""] {
                let columns = Some(screen.columns);
                let extent =
                    Self { findings_max, rows_max, distribution, columns, lines_max, separator };
                shown = text(&extent);
                if lines_on(&shown, screen.columns) + LINES_BELOW <= screen.rows {
                    return shown;
                }
            }
        }
        shown
    }

    /// The beginning of each part.
    pub(super) fn separator(&self) -> &'static str {
        self.separator
    }

    /// The part of a headline text that fits its lines.
    pub(super) fn headline(&self, text: &str) -> String {
        self.cut(text, self.lines_max.max(HEADLINE_LINES))
    }

    /// The part of a finding that fits its lines.
    pub(super) fn finding(&self, text: &str) -> String {
        self.cut(text, self.lines_max)
    }

    fn cut(&self, text: &str, lines: usize) -> String {
        let Some(columns) = self.columns else { return text.to_owned() };
        let room = columns.saturating_mul(lines).saturating_sub(INDENT);
        if text.chars().count() <= room {
            return text.to_owned();
        }
        let kept: String = text.chars().take(room.saturating_sub(1)).collect();
        format!("{}…", kept.trim_end())
    }
}

/// Lines a text takes on a screen that breaks those that are too long.
pub(super) fn lines_on(text: &str, columns: usize) -> usize {
    text.lines().map(|line| shown_chars(line).div_ceil(columns.max(1)).max(1)).sum()
}

/// Characters of a line without escape sequences.
fn shown_chars(line: &str) -> usize {
    let mut parts = line.split('\x1b');
    let plain = parts.next().map_or(0, |part| part.chars().count());
    let painted =
        parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.chars().count()));
    plain + painted.sum::<usize>()
}
