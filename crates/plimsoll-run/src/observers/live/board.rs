//! What viewers see: a short list of events, each rendered once.
//!
//! All viewers read the same list, each from its own position. A viewer that connects late, or
//! pauses, gets the newest report and the last seconds; replaced events are gone.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use plimsoll_model::result::RunResult;
use plimsoll_report::ReportError;
use serde_json::{Value, json};

use super::super::SecondView;

/// Seconds that are kept: as many as the page draws.
const SECONDS_MAX: usize = 512;

/// What happens in a run.
pub(super) enum Message {
    /// A load point of this title.
    Begins(String),
    /// A second of the load point of this title has ended.
    Second(String, SecondView),
    /// The load point of this title has finished; the run so far.
    Finished(String, Box<RunResult>),
    /// The run has ended; its report is this file.
    RunFinished(Box<RunResult>, PathBuf),
}

/// Kind of an event. The last seconds are kept, and one event of every other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Point,
    Second,
    Report,
    Finished,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Second => "second",
            Self::Report => "report",
            Self::Finished => "over",
        }
    }
}

/// The visible state of a run.
#[derive(Default)]
pub(super) struct Board {
    /// By number, ascending.
    events: VecDeque<(u64, Kind, String)>,
    last: u64,
    pub(super) is_finished: bool,
}

impl Board {
    /// The first event after that number, with its own number.
    pub(super) fn after(&self, number: u64) -> Option<(u64, &str)> {
        let next = self.events.partition_point(|(event, ..)| *event <= number);
        self.events.get(next).map(|(event, _, frame)| (*event, frame.as_str()))
    }

    /// Shows what has happened in the run.
    pub(super) fn take(&mut self, message: Message) -> Result<(), ReportError> {
        match message {
            Message::Begins(title) => self.push(Kind::Point, &json!({ "title": title })),
            Message::Second(title, second) => self.second(&title, &second),
            Message::Finished(title, run) => {
                let html = plimsoll_report::html_body_so_far(&run)?;
                let news = json!({ "said": format!("{title}: finished"), "html": html });
                self.push(Kind::Report, &news);
            }
            Message::RunFinished(result, page) => self.finish(&result, &page)?,
        }
        Ok(())
    }

    /// Ends the events. A run that failed has not sent its end.
    pub(super) fn end(&mut self) {
        self.is_finished = true;
        if self.events.iter().all(|(_, kind, _)| *kind != Kind::Finished) {
            let message = "The run could not go on; the terminal says why.";
            self.push(Kind::Finished, &json!({ "said": message }));
        }
    }

    /// A second of the load point has ended.
    fn second(&mut self, title: &str, second: &SecondView) {
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
        self.push(Kind::Second, &news);
    }

    /// The run has ended: the page becomes its report.
    fn finish(&mut self, result: &RunResult, page: &Path) -> Result<(), ReportError> {
        let html = plimsoll_report::html_body(result)?;
        let message = format!(
            "The run is over, and this is its report. It is kept as {}; nothing serves this page \
             any more.",
            page.display()
        );
        self.push(Kind::Report, &json!({ "said": "The run is over.", "html": html }));
        self.push(Kind::Finished, &json!({ "said": message }));
        Ok(())
    }

    fn push(&mut self, kind: Kind, news: &Value) {
        let limit = if kind == Kind::Second { SECONDS_MAX } else { 1 };
        let mut same = (0..self.events.len()).filter(|at| self.events[*at].1 == kind);
        if let Some(oldest) = same.next()
            && same.count() + 1 >= limit
        {
            self.events.remove(oldest);
        }
        self.last += 1;
        // JSON has no raw line ends, whatever a server has sent.
        let frame = format!("event: {}\ndata: {news}\n\n", kind.name());
        self.events.push_back((self.last, kind, frame));
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
            frames.push(frame.to_owned());
        }
        frames
    }

    #[test]
    fn who_comes_late_is_told_the_newest_of_each_kind_and_the_last_seconds() {
        let mut board = Board::default();
        for point in 1..=3 {
            let title = format!("point {point}/3");
            board.take(Message::Begins(title.clone())).unwrap();
            for s in 0..300 {
                board.take(Message::Second(title.clone(), second(s))).unwrap();
            }
            board.take(Message::Finished(title, Box::default())).unwrap();
        }
        let frames = all_after(&board, 0);
        let is = |frame: &str, name: &str| frame.starts_with(&format!("event: {name}\n"));
        let of = |name: &'static str| frames.iter().filter(move |frame| is(frame, name));
        assert_eq!((of("point").count(), of("second").count(), of("report").count()), (1, 512, 1));
        assert!(of("report").all(|frame| frame.contains("\"point 3/3: finished\"")));
        let last = of("second").next_back().unwrap();
        assert!(last.contains("\"second\":299") && last.contains("\"p99_ns\":null"), "{last}");
        // A viewer that has all but the last event gets that one.
        let number = board.last;
        assert_eq!(all_after(&board, number - 1).len(), 1);
        assert_eq!(all_after(&board, number), [""; 0]);
    }

    #[test]
    fn a_frame_is_two_lines_whatever_a_server_has_sent() {
        let mut board = Board::default();
        board.push(Kind::Report, &json!({ "html": "<p>a\r\nevent: over\rb\n\n</p>" }));
        let frames = all_after(&board, 0);
        assert_eq!(frames[0].lines().count(), 3, "event, data, an empty line: {frames:?}");
        assert!(!frames[0].contains('\r'));
    }

    #[test]
    fn a_run_that_breaks_off_is_over_too() {
        let mut board = Board::default();
        board.end();
        assert!(board.is_finished);
        assert!(all_after(&board, 0)[0].contains("could not go on"));
    }
}
