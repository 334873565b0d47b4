//! What viewers are shown: a short list of events, each rendered once.
//!
//! Everybody reads the same list from where they are. Who comes late, or stands still for a while,
//! finds the newest report and the last seconds there; what was replaced meanwhile is gone.

use std::collections::VecDeque;
use std::path::Path;

use axum::body::Bytes;
use plimsoll_model::result::RunResult;
use plimsoll_report::ReportError;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::SecondView;

/// Seconds that are shown: as many as the page draws.
const SECONDS_MAX: usize = 512;

/// What an event is. Of seconds the last are kept, of the others the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Point,
    Second,
    Report,
    Over,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Second => "second",
            Self::Report => "report",
            Self::Over => "over",
        }
    }
}

/// The state of a run, as far as it is shown.
#[derive(Default)]
pub(super) struct Board {
    /// By number, ascending.
    events: VecDeque<(u64, Kind, Bytes)>,
    last: u64,
    pub(super) is_over: bool,
}

impl Board {
    pub(super) fn begin() -> (watch::Sender<Self>, watch::Receiver<Self>) {
        watch::channel(Self::default())
    }

    /// The first event behind that number, with its own.
    pub(super) fn after(&self, number: u64) -> Option<(u64, Bytes)> {
        let next = self.events.partition_point(|(event, ..)| *event <= number);
        self.events.get(next).map(|(event, _, frame)| (*event, frame.clone()))
    }

    fn put(&mut self, kind: Kind, news: &Value) {
        let limit = if kind == Kind::Second { SECONDS_MAX } else { 1 };
        let mut same = (0..self.events.len()).filter(|at| self.events[*at].1 == kind);
        if let Some(oldest) = same.next()
            && same.count() + 1 >= limit
        {
            self.events.remove(oldest);
        }
        self.last += 1;
        // JSON has no line ends of its own, whatever a server has sent.
        let frame = format!("event: {}\ndata: {news}\n\n", kind.name());
        self.events.push_back((self.last, kind, frame.into()));
    }
}

pub(super) struct Writer(watch::Sender<Board>);

impl Writer {
    pub(super) fn new(board: watch::Sender<Board>) -> Self {
        Self(board)
    }

    pub(super) fn begins(&mut self, title: &str) {
        self.0.send_modify(|board| board.put(Kind::Point, &json!({ "title": title })));
    }

    /// A second of it is over.
    pub(super) fn second(&mut self, title: &str, second: &SecondView) {
        let news = json!({
            "title": title,
            "second": second.second,
            "phase": second.phase.as_str(),
            "ops_per_s": second.ops_per_s,
            "bytes_per_s": second.bytes_per_s,
            "chunks_per_s": second.chunks_per_s,
            "p50_ns": second.response_p50_ns,
            "p99_ns": second.response_p99_ns,
            "errors": second.errors,
            "busy_ratio": second.generator_busy_ratio,
        });
        self.0.send_modify(|board| board.put(Kind::Second, &news));
    }

    pub(super) fn finished(&mut self, title: &str, run: &RunResult) -> Result<(), ReportError> {
        let html = plimsoll_report::html_body_so_far(run)?;
        let news = json!({ "said": format!("{title}: finished"), "html": html });
        self.0.send_modify(|board| board.put(Kind::Report, &news));
        Ok(())
    }

    /// The run is over: the page becomes its report.
    pub(super) fn over(&mut self, result: &RunResult, page: &Path) -> Result<(), ReportError> {
        let html = plimsoll_report::html_body(result)?;
        let report = json!({ "said": "The run is over.", "html": html });
        let said = format!(
            "The run is over, and this is its report. It is kept as {}; nothing serves this page \
             any more.",
            page.display()
        );
        self.0.send_modify(|board| {
            board.put(Kind::Report, &report);
            board.put(Kind::Over, &json!({ "said": said }));
        });
        Ok(())
    }
}

impl Drop for Writer {
    /// Nothing more comes, which a run that could not go on has not told.
    fn drop(&mut self) {
        self.0.send_modify(|board| {
            board.is_over = true;
            if board.events.iter().all(|(_, kind, _)| *kind != Kind::Over) {
                let said = "The run could not go on; the terminal says why.";
                board.put(Kind::Over, &json!({ "said": said }));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::Phase;

    use super::*;

    fn second(second: u32) -> SecondView {
        SecondView {
            second,
            phase: Phase::Measure,
            start_unix_ns: 0,
            end_unix_ns: 0,
            ops_per_s: 1_000.5,
            bytes_per_s: 2e6,
            chunks_per_s: 0.0,
            errors: 3,
            response_p50_ns: Some(1_200),
            response_p99_ns: None,
            generator_busy_ratio: 0.25,
        }
    }

    fn all_after(board: &Board, mut number: u64) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some((next, frame)) = board.after(number) {
            number = next;
            frames.push(String::from_utf8(frame.to_vec()).unwrap());
        }
        frames
    }

    #[test]
    fn who_comes_late_is_told_the_newest_of_each_kind_and_the_last_seconds() {
        let (board, shown) = Board::begin();
        let mut writer = Writer::new(board);
        for point in 1..=3 {
            writer.begins(&format!("point {point}/3"));
            (0..300).for_each(|s| writer.second(&format!("point {point}/3"), &second(s)));
            writer.finished(&format!("point {point}/3"), &RunResult::default()).unwrap();
        }
        let frames = all_after(&shown.borrow(), 0);
        let is = |frame: &str, name: &str| frame.starts_with(&format!("event: {name}\n"));
        let of = |name: &'static str| frames.iter().filter(move |frame| is(frame, name));
        assert_eq!((of("point").count(), of("second").count(), of("report").count()), (1, 512, 1));
        assert!(of("report").all(|frame| frame.contains("\"point 3/3: finished\"")));
        let last = of("second").next_back().unwrap();
        assert!(last.contains("\"second\":299") && last.contains("\"p99_ns\":null"), "{last}");
        // Who knows all but the last event is told that one.
        let number = shown.borrow().last;
        assert_eq!(all_after(&shown.borrow(), number - 1).len(), 1);
        assert_eq!(all_after(&shown.borrow(), number), [""; 0]);
    }

    #[test]
    fn a_frame_is_two_lines_whatever_a_server_has_sent() {
        let mut board = Board::default();
        board.put(Kind::Report, &json!({ "html": "<p>a\r\nevent: over\rb\n\n</p>" }));
        let frames = all_after(&board, 0);
        assert_eq!(frames[0].lines().count(), 3, "event, data, an empty line: {frames:?}");
        assert!(!frames[0].contains('\r'));
    }

    #[test]
    fn a_run_that_breaks_off_is_over_too() {
        let (board, shown) = Board::begin();
        drop(Writer::new(board));
        assert!(shown.borrow().is_over);
        assert!(all_after(&shown.borrow(), 0)[0].contains("could not go on"));
    }
}
