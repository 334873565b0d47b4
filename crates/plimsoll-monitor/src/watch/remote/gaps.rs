//! When a source did not answer. Pure.

use plimsoll_model::units::NANOS_PER_SECOND;

/// The gaps of a run.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    since_ns: Option<u64>,
    last_ns: u64,
    count: u32,
    total_ns: u64,
    /// Why, the last time.
    words: String,
}

impl Gaps {
    /// The source did not answer; it may have been so before.
    pub(super) fn begin(&mut self, now_ns: u64, words: String) {
        self.words = words;
        self.last_ns = now_ns;
        if self.since_ns.is_none() {
            self.since_ns = Some(now_ns);
            self.count += 1;
        }
    }

    /// It answered.
    pub(super) fn end(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.since_ns.take() {
            self.total_ns += now_ns.saturating_sub(since_ns);
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.since_ns.is_some()
    }

    /// For a person; `None` when there were none.
    pub(super) fn text(&self) -> Option<String> {
        let open_ns = self.since_ns.map_or(0, |since_ns| self.last_ns.saturating_sub(since_ns));
        let seconds = (self.total_ns + open_ns) as f64 / NANOS_PER_SECOND as f64;
        let times = match self.count {
            0 => return None,
            1 => "once".to_owned(),
            count => format!("{count} times"),
        };
        let end = if self.is_away() { ", and was away at the end" } else { "" };
        Some(format!("did not answer {times}, {seconds:.1} s in all{end} ({})", self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NANOS_PER_SECOND;

    #[test]
    fn gaps_are_counted_and_told_with_the_last_words() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.text(), None);
        gaps.begin(SECOND, "no answer".into());
        gaps.begin(3 * SECOND, "refused".into());
        gaps.end(5 * SECOND);
        gaps.end(6 * SECOND);
        let text = gaps.text().unwrap();
        assert_eq!(text, "did not answer once, 4.0 s in all (refused)");
        gaps.begin(8 * SECOND, "gone".into());
        gaps.begin(9 * SECOND, "gone".into());
        let text = gaps.text().unwrap();
        assert_eq!(text, "did not answer 2 times, 5.0 s in all, and was away at the end (gone)");
    }
}
