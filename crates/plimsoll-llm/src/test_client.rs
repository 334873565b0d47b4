//! A client whose answer a test controls: bytes at instants, through a session of `plimsoll-http`.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{
    First, Io, Link, LinkError, LinkKind, Mark, Session, Ticket, TimeKind,
};
use plimsoll_http::parameters::{Connections, Statuses};
use plimsoll_http::session::HttpSession;
use plimsoll_http::site::{Bodies, HttpOp, Request, Site, SiteFrame, Version, WorkerSite};
use plimsoll_http::wire::request::{Method, RequestText};
use plimsoll_model::event::SessionCounters;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::reader::{AnswerReader, Requests};

const OP_TIMEOUT: Nanos = Nanos::from_secs(60);
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
/// Ends an answer at its length.
pub(crate) const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
/// The first chunk of most servers.
pub(crate) const ROLE: &str = r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#;

/// The script's state, faked.
#[derive(Debug, Default)]
struct FakeRequests(RefCell<Vec<String>>);

impl Requests for FakeRequests {
    fn tokens_requested(&self, key: u64) -> Option<u64> {
        Some(key)
    }
    fn keeps_texts(&self) -> bool {
        true
    }
    fn answered(&self, _key: u64, text: String) {
        self.0.borrow_mut().push(text);
    }
}

impl Bodies for FakeRequests {
    fn write(&self, _key: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

/// The session's calls, with the instant of each mark.
#[derive(Debug, Default)]
struct IoRecorder {
    at: Nanos,
    links: u64,
    marks: Vec<(u64, Mark)>,
    /// Those of output.
    outputs: Vec<(u64, Mark)>,
    closed: Vec<Link>,
    detail: String,
    done: Option<Outcome>,
}

impl Io for IoRecorder {
    fn connect(&mut self, _kind: LinkKind) -> Link {
        self.links += 1;
        Link(self.links)
    }
    fn send(&mut self, _link: Link, _bytes: &[u8]) {}
    fn discard(&mut self, _link: Link, _n: u64) {
        panic!("an answer is read");
    }
    fn close(&mut self, link: Link) {
        self.closed.push(link);
    }
    fn explain(&mut self, detail: fmt::Arguments<'_>) {
        self.detail = detail.to_string();
    }
    fn complete(&mut self, _ticket: Ticket, outcome: Outcome) {
        self.done = Some(outcome);
    }
    fn arrived(&self) -> Option<Nanos> {
        Some(self.at)
    }
    fn mark(&mut self, _ticket: Ticket, mark: Mark) {
        let marks = match mark {
            Mark::Output { .. } => &mut self.outputs,
            _ => &mut self.marks,
        };
        marks.push((self.at.0 / 1_000_000, mark));
    }
    fn report_trailing_bytes(&mut self, _kind: OpKind) {}
}

/// A client that has sent a request, and its outcome.
pub(crate) struct Asking {
    session: HttpSession<AnswerReader<FakeRequests>>,
    requests: Rc<FakeRequests>,
    recorder: IoRecorder,
}

impl Asking {
    /// A request for 10 tokens, whose reply has begun with this head.
    pub(crate) fn with_head(head: &str) -> Self {
        let requests = Rc::new(FakeRequests::default());
        let frame = SiteFrame {
            base: "http://h".to_owned(),
            host: "h".to_owned(),
            headers: &[],
            connections: Connections::KeepAlive,
            expected: Statuses::try_from(vec!["200".to_owned()]).unwrap(),
            version: Version::Http1,
        };
        let text = RequestText::plain(Method::POST, "/v1/chat/completions");
        let site = Site::with_bodies(frame, &text, "/v1/chat/completions");
        let site = WorkerSite::with_bodies(Arc::new(site), Rc::clone(&requests) as Rc<dyn Bodies>);
        let reader = AnswerReader::new(Rc::clone(&requests));
        let session = HttpSession::new(site, reader, OP_TIMEOUT);
        let mut asking = Self { session, requests, recorder: IoRecorder::default() };
        let (kind, request, key) = (OpKind(0), Request::Url(0), 10);
        let op = HttpOp { kind, request, method: Method::POST, verify: false, key };
        asking.session.issue(Ticket(0), op, Nanos::ZERO, &mut asking.recorder);
        asking.session.on_connected(Link(1), Nanos::ZERO, &mut asking.recorder);
        asking.bytes(1, head.as_bytes());
        asking
    }

    pub(crate) fn new() -> Self {
        Self::with_head(HEAD)
    }

    /// One read brings these bytes, which the kernel received `ms` after the request.
    pub(crate) fn bytes(&mut self, ms: u64, bytes: &[u8]) -> &mut Self {
        self.recorder.at = Nanos::from_millis(ms);
        // Read late, as a busy client does, and not always as late.
        let now = self.recorder.at.saturating_add(Nanos::from_millis(7 + ms % 13));
        self.session.on_bytes(Link(1), bytes, now, &mut self.recorder);
        self
    }

    /// One read brings this of the body, in a chunk of HTTP of its own.
    pub(crate) fn body(&mut self, ms: u64, body: &str) -> &mut Self {
        let chunk = format!("{:x}\r\n{body}\r\n", body.len());
        self.bytes(ms, chunk.as_bytes())
    }

    /// One read brings these events.
    pub(crate) fn events(&mut self, ms: u64, events: &[&str]) -> &mut Self {
        let body: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
        self.body(ms, &body)
    }

    /// One read brings an event for each of these texts.
    pub(crate) fn texts(&mut self, ms: u64, texts: &[&str]) -> &mut Self {
        let events: Vec<String> = texts.iter().map(|text| delta("content", text)).collect();
        self.events(ms, &events.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The answer ends as it should, with a count of tokens.
    pub(crate) fn end(&mut self, ms: u64, tokens: u64) -> &mut Self {
        let usage = usage(tokens);
        self.events(ms, &[FINISH, &usage, "[DONE]"]).bytes(ms, b"0\r\n\r\n")
    }

    /// Time passes until then, in which nothing comes.
    pub(crate) fn silent_until(&mut self, ms: u64) -> &mut Self {
        let now = Nanos::from_millis(ms);
        while let Some(deadline) = self.session.next_deadline().filter(|at| *at <= now) {
            self.session.on_timer(deadline, &mut self.recorder);
        }
        self
    }

    /// The connection was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.recorder.closed == [Link(1)]
    }

    /// When the answer was whole, if before its body.
    pub(crate) fn completed_at(&self) -> Option<u64> {
        self.recorder.marks.iter().find(|(_, mark)| *mark == Mark::Complete).map(|(at, _)| *at)
    }

    fn status(&self) -> OpStatus {
        self.recorder.done.expect("the request has ended").status
    }

    /// The connection ends: closed, or reset.
    pub(crate) fn closes(&mut self, errno: Option<i32>) -> &mut Self {
        let now = self.recorder.at;
        match errno {
            None => self.session.on_eof(Link(1), now, &mut self.recorder),
            Some(errno) => {
                let error = LinkError { class: ErrorClass::Transport, errno };
                self.session.on_failed(Link(1), error, now, &mut self.recorder);
            }
        }
        self
    }

    /// What was counted since the last call.
    pub(crate) fn counted(&mut self) -> SessionCounters {
        let mut counters = self.session.take_counters();
        for (_, mark) in std::mem::take(&mut self.recorder.outputs) {
            if let Mark::Output { chunks, characters } = mark {
                counters.generation.chunks += chunks;
                counters.generation.characters += characters;
            }
        }
        counters
    }

    /// The request has ended well.
    #[track_caller]
    pub(crate) fn succeeds(&self) {
        assert_eq!(self.status(), OpStatus::Ok, "{}", self.recorder.detail);
    }

    /// It has failed, and counts only as that.
    #[track_caller]
    pub(crate) fn fails(&mut self, class: ErrorClass, message: &str) {
        assert_eq!(self.status(), OpStatus::Failed(class), "{}", self.recorder.detail);
        assert!(
            self.recorder.detail.contains(message),
            "{:?} is not {message:?}",
            self.recorder.detail
        );
        let counts = self.counted().generation;
        assert_eq!(counts.counted_requests + counts.uncounted_requests, 0, "it is not counted");
        assert_eq!(self.value(TimeKind::TokenTime), None, "nor timed");
    }

    /// When a milestone was reached.
    pub(crate) fn first(&self, first: First) -> Option<u64> {
        let reached = self.recorder.marks.iter().filter(|(_, mark)| *mark == Mark::First(first));
        let at: Vec<u64> = reached.map(|(at, _)| *at).collect();
        assert!(at.len() <= 1, "{first:?} is reached once");
        at.first().copied()
    }

    pub(crate) fn values(&self, time_kind: TimeKind) -> Vec<u64> {
        let value = |(_, mark): &(u64, Mark)| match mark {
            Mark::Value(kind, value) if *kind == time_kind => Some(*value),
            _ => None,
        };
        self.recorder.marks.iter().filter_map(value).collect()
    }

    pub(crate) fn value(&self, time_kind: TimeKind) -> Option<u64> {
        self.values(time_kind).first().copied()
    }

    /// Times in ms.
    pub(crate) fn ms(&self, time_kind: TimeKind) -> Vec<u64> {
        self.values(time_kind).into_iter().map(|ns| ns / 1_000_000).collect()
    }

    pub(crate) fn text(&self) -> String {
        self.requests.0.borrow().last().cloned().unwrap()
    }
}

/// A chunk with this text, as it stands in JSON.
pub(crate) fn delta(field: &str, text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"{field}":"{text}"}}}}]}}"#)
}

/// The chunk with the count of tokens.
pub(crate) fn usage(tokens: u64) -> String {
    format!(
        "{{\"choices\":[],\"usage\":{{\"prompt_tokens\":17,\"completion_tokens\":{tokens},\
         \"prompt_tokens_details\":{{\"cached_tokens\":16}}}}}}"
    )
}
