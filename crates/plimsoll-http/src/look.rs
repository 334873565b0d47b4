//! One request before any load, as it will be sent: a wrong path, a missing token or a redirect is
//! reported within a second, with the server's own text.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_engine::interface::{LinkKind, Session};
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::blocking::{Blocking, BlockingError};
use plimsoll_protocol::net::{Channel, ChannelError, Dial, SetupError, SourcePort};
use plimsoll_protocol::{PlanRequest, ResolvedTarget};

use super::excerpt::plain_text;
use super::h2::event::Fault;
use super::h2::windows::{H2Settings, PeerSettings};
use super::h2_session::H2Session;
use super::reader::IsComplete;
use super::session::HttpSession;
use super::site::{HttpOp, Request, Site, WorkerSite};
use super::tls::{ALPN_HTTP2, Tls, TlsSite};
use super::warm::channel;
use super::wire::Malformed;
use super::wire::request::Method;

/// How to run regardless.
const INSIST: &str = "--no-check measures it all the same";

/// What is to be done about a server that speaks another version of HTTP.
pub const HTTP2_ONLY: &str =
    "the server speaks only HTTP/2, as gRPC servers do: use --http 2, or --http auto over TLS";
const HTTP1_ONLY: &str = "the server answers in HTTP/1: leave out --http 2, or use a port that \
    speaks HTTP/2";
/// The same for one that was spoken to in HTTP/2.
pub const NOT_HTTP2: &str = "see whether the port speaks HTTP/2; servers without TLS often speak only \
    HTTP/1.1: then leave out --http 2";

/// A request and the server to send it to.
pub struct Look<'a> {
    /// The requests of this target.
    pub site: Arc<Site>,
    /// Where it is.
    pub target: &'a ResolvedTarget,
    /// Encryption, if it is on.
    pub tls: Option<Rc<TlsSite>>,
    /// Of the first request of the list.
    pub method: Method,
    /// Draws its random parts.
    pub key: u64,
    /// Longest wait for its reply.
    pub timeout: Duration,
    /// Of HTTP/2, where that is spoken.
    pub h2: Option<H2Settings>,
    /// Whether the body of the reply is whole, if not by HTTP.
    pub is_complete: IsComplete,
}

/// What a session that keeps the body of its reply knows of the answer.
trait Answered: Session<Op = HttpOp> {
    /// The body, and how the server fails to support this version of HTTP.
    fn answer(&mut self) -> (Vec<u8>, Option<Misfit>);

    /// The server's settings.
    fn peer(&self) -> Option<PeerSettings> {
        None
    }
}

/// How a server speaks another version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Misfit {
    /// It speaks HTTP/2.
    Http2,
    /// It speaks HTTP/1.
    Http1,
    /// It does not speak HTTP/2.
    NotHttp2,
}

impl Answered for HttpSession {
    fn answer(&mut self) -> (Vec<u8>, Option<Misfit>) {
        let is_http2 = self.malformed() == Some(Malformed::Http2);
        (self.take_body(), is_http2.then_some(Misfit::Http2))
    }
}

impl Answered for H2Session {
    fn answer(&mut self) -> (Vec<u8>, Option<Misfit>) {
        let misfit = match self.fault() {
            Some(Fault::Http1) => Some(Misfit::Http1),
            Some(Fault::NotHttp2) => Some(Misfit::NotHttp2),
            _ => None,
        };
        (self.take_body(), misfit)
    }

    fn peer(&self) -> Option<PeerSettings> {
        Self::peer(self)
    }
}

impl<S: Answered> Answered for Tls<S> {
    fn answer(&mut self) -> (Vec<u8>, Option<Misfit>) {
        self.session_mut().answer()
    }

    fn peer(&self) -> Option<PeerSettings> {
        self.session().peer()
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Answer {
    /// As the engine would count it.
    pub status: OpStatus,
    /// The session's description of a failure; the URL precedes it.
    pub detail: String,
    /// The beginning of the reply's body.
    pub body: Vec<u8>,
    /// The settings of a server of HTTP/2.
    pub peer: Option<PeerSettings>,
    misfit: Option<Misfit>,
}

impl Look<'_> {
    /// Sends one request, and explains a bad reply. Returns the settings of a server of HTTP/2.
    pub(crate) fn perform(self, dial: &dyn Dial) -> Result<Option<PeerSettings>, SetupError> {
        let answer = self.ask(dial)?;
        let OpStatus::Failed(class) = answer.status else { return Ok(answer.peer) };
        let why = self.misfit(&answer, dial);
        if dial.stop().load(Ordering::Relaxed) {
            return Err(SetupError::Stopped);
        }
        Err(self.unusable(why.unwrap_or_else(|| self.complaint(class, &answer))))
    }

    /// Why no good answer came from a server that speaks another version of HTTP, and what to do.
    pub fn misfit(&self, answer: &Answer, dial: &dyn Dial) -> Option<String> {
        let misfit = answer.misfit.or_else(|| {
            let is_http2 = self.h2.is_none()
                && answer.status == OpStatus::Failed(ErrorClass::Transport)
                && self.agrees_on_http2(dial);
            is_http2.then_some(Misfit::Http2)
        })?;
        Some(match misfit {
            Misfit::Http2 => HTTP2_ONLY.to_owned(),
            Misfit::Http1 => HTTP1_ONLY.to_owned(),
            Misfit::NotHttp2 => format!("{}; {NOT_HTTP2}", answer.why()),
        })
    }

    /// Sends one request.
    pub fn ask(&self, dial: &dyn Dial) -> Result<Answer, SetupError> {
        let site = WorkerSite::new(self.site.clone());
        let timeout = Nanos(self.timeout.as_nanos().try_into().unwrap_or(u64::MAX));
        match self.h2 {
            None => self.ask_by(HttpSession::capturing(site, self.is_complete, timeout), dial),
            Some(H2Settings { windows, .. }) => {
                self.ask_by(H2Session::capturing(site, windows, self.is_complete, timeout), dial)
            }
        }
    }

    /// The target cannot be measured, and why.
    pub fn unusable(&self, why: impl fmt::Display) -> SetupError {
        SetupError::Unusable(format!("{}: {why}", self.target.url))
    }

    fn ask_by<S: Answered>(&self, session: S, dial: &dyn Dial) -> Result<Answer, SetupError> {
        match self.tls.clone() {
            None => self.ask_through(session, dial),
            Some(tls) => self.ask_through(Tls::new(session, tls), dial),
        }
    }

    fn ask_through<S: Answered>(&self, session: S, dial: &dyn Dial) -> Result<Answer, SetupError> {
        let channel = self.dial(dial).map_err(|e| self.unusable(e))?;
        let mut client = Blocking::new(session, channel, dial.stop())
            .silent_for(self.timeout)
            .noting(dial.nonconformities());
        let Self { method, key, .. } = *self;
        let request = Request::Url(0);
        let op = HttpOp { kind: OpKind(0), request, method, verify: false, key };
        // The settings of a server are lost with a connection that is given up.
        let mut peer = None;
        let ended = client.run(op).or_else(|error| match error {
            // The session knows the awaited event and the progress of the request.
            BlockingError::Channel(ChannelError::Timeout) => {
                peer = client.session_mut().peer();
                client.time_out().ok_or(error)
            }
            _ => Err(error),
        });
        let ended = ended.map_err(|error| match error {
            BlockingError::Stopped => SetupError::Stopped,
            broken => self.unusable(format_args!(
                "{} was sent, and then: {broken}; see whether it is a web server; {INSIST}",
                method.as_str()
            )),
        })?;
        let (body, misfit) = client.session_mut().answer();
        let peer = client.session_mut().peer().or(peer);
        Ok(Answer { status: ended.outcome.status, detail: ended.detail, body, peer, misfit })
    }

    fn dial(&self, dial: &dyn Dial) -> Result<Box<dyn Channel>, ChannelError> {
        match &self.target.unix {
            Some(path) => dial.dial_unix(path),
            None => dial.dial(self.target.address, LinkKind::Stream, SourcePort::Any),
        }
    }

    /// A server that agreed on no protocol with HTTP/1.1 alone and hung up agrees on HTTP/2.
    fn agrees_on_http2(&self, dial: &dyn Dial) -> bool {
        let (Some(tls), Ok(mut channel)) = (&self.tls, self.dial(dial)) else { return false };
        let agreed = tls.agreed(&[ALPN_HTTP2], &mut *channel, &dial.stop(), self.timeout);
        agreed.as_deref() == Some(ALPN_HTTP2)
    }

    fn complaint(&self, class: ErrorClass, answer: &Answer) -> String {
        let text = plain_text(&answer.body);
        let quote = match &*text {
            "" => String::new(),
            text => format!(", saying {text:?}"),
        };
        let advice = match class {
            ErrorClass::Status(code) => of_status(code, &text),
            ErrorClass::Tls => {
                "trust the certificate with --cacert FILE, take any with --insecure, or write \
                 http:// where the port speaks no TLS"
            }
            ErrorClass::Malformed => {
                "see whether the port speaks HTTP, or TLS: then write https://"
            }
            ErrorClass::Timeout if answer.peer.is_none() => {
                "see whether it is a web server and what its log says, or wait longer with --timeout"
            }
            ErrorClass::Timeout => "see what the server's log says, or wait longer with --timeout",
            _ => "see what the server's log says",
        };
        let ended = match class {
            ErrorClass::Status(_) => "ended with",
            _ => "failed:",
        };
        let detail = answer.why();
        let detail = detail.split_once(", a redirect").map_or(detail, |(status, _)| status);
        format!("the first {} {ended} {detail}{quote}; {advice}; {INSIST}", self.method.as_str())
    }
}

/// Connects to each target and sends nothing: for an agent, since its controller has sent the first
/// requests.
pub fn reach(request: &PlanRequest<'_>) -> Result<(), SetupError> {
    let mut channels = request.targets.iter().map(|target| channel(target, request.dial));
    channels.try_for_each(|channel| channel.map(drop))
}

impl Answer {
    /// The session's description of a failure, without the URL.
    pub fn why(&self) -> &str {
        self.detail.split_once(": ").map_or(self.detail.as_str(), |(_, why)| why)
    }
}

/// What to do about an unexpected status.
fn of_status(code: u32, text: &str) -> &'static str {
    match code {
        300..400 => {
            "redirects are not followed: ask for the URL it leads to, or accept it with --set \
             'workload.expect=[\"2xx\",\"3xx\"]'"
        }
        400 if text.to_ascii_lowercase().contains("https") => {
            "the port speaks TLS: write https:// instead of http://"
        }
        401 => {
            "give a user with --basic-auth USER, or a token with -H \"Authorization: env:TOKEN\""
        }
        403 => "see whether this host or user may ask for it",
        404 | 410 => "check the path, or accept it with --set 'workload.expect=[\"404\"]'",
        405 => "ask with another method, -m METHOD",
        413 => "it takes no body (-d) of this size: raise its limit, or send a smaller one",
        411..=415 | 422 => "check the body (-d) and its type (-H \"Content-Type: …\")",
        426 => {
            "the server wants another protocol (its Upgrade header names it): if that is HTTP/2, \
             use --http 2"
        }
        505 => "the server wants another version of HTTP: use --http 2",
        429 => "the server limits how often one may ask: lift that for this host",
        500.. => "the server fails before there is any load: see what its log says",
        _ => "accept it with --set 'workload.expect=[…]', or ask otherwise",
    }
}
