//! A client whose answer arrives as a test says: bytes at instants, through a session of
//! `plimsoll-http`.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::seam::{
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

/// What the script would know.
#[derive(Debug, Default)]
struct Asked(RefCell<Vec<String>>);

impl Requests for Asked {
    fn tokens_asked(&self, key: u64) -> Option<u64> {
        Some(key)
    }
    fn keeps_texts(&self) -> bool {
        true
    }
    fn answered(&self, _key: u64, text: String) {
        self.0.borrow_mut().push(text);
    }
}

impl Bodies for Asked {
    fn write(&self, _key: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

/// What the session says, with the instant of each mark.
#[derive(Debug, Default)]
struct Said {
    at: Nanos,
    links: u64,
    marks: Vec<(u64, Mark)>,
    detail: String,
    done: Option<Outcome>,
}

impl Io for Said {
    fn connect(&mut self, _kind: LinkKind) -> Link {
        self.links += 1;
        Link(self.links)
    }
    fn send(&mut self, _link: Link, _bytes: &[u8]) {}
    fn discard(&mut self, _link: Link, _n: u64) {
        panic!("an answer is read");
    }
    fn close(&mut self, _link: Link) {}
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
        self.marks.push((self.at.0 / 1_000_000, mark));
    }
    fn surplus(&mut self, _kind: OpKind) {}
}

/// A client that has asked, and what became of it.
pub(crate) struct Asking {
    session: HttpSession<AnswerReader<Asked>>,
    requests: Rc<Asked>,
    said: Said,
}

impl Asking {
    /// A request for 10 tokens, whose reply has begun with this head.
    pub(crate) fn with_head(head: &str) -> Self {
        let requests = Rc::new(Asked::default());
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
        let mut asking = Self { session, requests, said: Said::default() };
        let (kind, request, key) = (OpKind(0), Request::Url(0), 10);
        let op = HttpOp { kind, request, method: Method::POST, verify: false, key };
        asking.session.issue(Ticket(0), op, Nanos::ZERO, &mut asking.said);
        asking.session.on_connected(Link(1), Nanos::ZERO, &mut asking.said);
        asking.bytes(1, head.as_bytes());
        asking
    }

    pub(crate) fn new() -> Self {
        Self::with_head(HEAD)
    }

    /// One read brings these bytes, which the kernel received `ms` after the request.
    pub(crate) fn bytes(&mut self, ms: u64, bytes: &[u8]) -> &mut Self {
        self.said.at = Nanos::from_millis(ms);
        // Read late, as a busy client does, and not always as late.
        let now = self.said.at.saturating_add(Nanos::from_millis(7 + ms % 13));
        self.session.on_bytes(Link(1), bytes, now, &mut self.said);
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

    fn status(&self) -> OpStatus {
        self.said.done.expect("the request has ended").status
    }

    /// The connection ends: closed, or reset.
    pub(crate) fn closes(&mut self, errno: Option<i32>) -> &mut Self {
        let now = self.said.at;
        match errno {
            None => self.session.on_eof(Link(1), now, &mut self.said),
            Some(errno) => {
                let error = LinkError { class: ErrorClass::Transport, errno };
                self.session.on_failed(Link(1), error, now, &mut self.said);
            }
        }
        self
    }

    /// What was counted since the last call.
    pub(crate) fn counted(&mut self) -> SessionCounters {
        self.session.take_counters()
    }

    /// The request has ended well.
    #[track_caller]
    pub(crate) fn succeeds(&self) {
        assert_eq!(self.status(), OpStatus::Ok, "{}", self.said.detail);
    }

    /// It has failed, and counts as nothing else.
    #[track_caller]
    pub(crate) fn fails(&mut self, class: ErrorClass, words: &str) {
        assert_eq!(self.status(), OpStatus::Failed(class), "{}", self.said.detail);
        assert!(self.said.detail.contains(words), "{:?} is not {words:?}", self.said.detail);
        let counts = self.counted().generation;
        assert_eq!(counts.counted_requests + counts.uncounted_requests, 0, "it is not counted");
        assert_eq!(self.value(TimeKind::TokenTime), None, "nor timed");
    }

    /// When a milestone was reached.
    pub(crate) fn first(&self, first: First) -> Option<u64> {
        let found = self.said.marks.iter().filter(|(_, mark)| *mark == Mark::First(first));
        let at: Vec<u64> = found.map(|(at, _)| *at).collect();
        assert!(at.len() <= 1, "{first:?} is reached once");
        at.first().copied()
    }

    pub(crate) fn values(&self, wanted: TimeKind) -> Vec<u64> {
        let value = |(_, mark): &(u64, Mark)| match mark {
            Mark::Value(kind, value) if *kind == wanted => Some(*value),
            _ => None,
        };
        self.said.marks.iter().filter_map(value).collect()
    }

    pub(crate) fn value(&self, wanted: TimeKind) -> Option<u64> {
        self.values(wanted).first().copied()
    }

    /// Times in ms.
    pub(crate) fn ms(&self, wanted: TimeKind) -> Vec<u64> {
        self.values(wanted).into_iter().map(|ns| ns / 1_000_000).collect()
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
