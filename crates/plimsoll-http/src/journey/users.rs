//! The users of one worker: a script that walks each along their journey, what their requests hold,
//! and what is taken from the replies.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{
    ClientContext, Io, Mark, Script, ScriptContext, SessionCounters, Step, Ticket, TimeKind,
};
use plimsoll_model::event::JourneyCounts;
use plimsoll_model::outcome::{ErrorClass, OpKind, OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use super::cookies::{SetCookie, value_set};
use super::fetch::Redirect;
use super::location::resolve;
use super::reply::{BodyEncoding, REDIRECTS_MAX, Refusal, ReplyParts, is_redirect, reads_body};
use super::take::{TakeSource, VALUE_BYTES_MAX};
use super::user::{
    Completed, Draws, Origin, SessionContext, User, UserPhase, UserVariables, cookie_request,
};
use super::{Journeys, PageRequest};
use crate::excerpt::plain_text;
use crate::reader::{At, CAPTURE_BYTES_MAX, Reader};
use crate::site::{HttpOp, Request, RequestVariables};
use crate::tls::TlsSite;
use crate::wire::request::Method;
use crate::wire::template::Variables as _;

/// Of the start of a reply, for a message.
const EXCERPT_BYTES_MAX: usize = 4_096;
/// Shorter values are no secrets, and may be anywhere by chance.
const SECRET_BYTES_MIN: usize = 4;

/// Index of a request among those of a site: as it stands, or what a redirect makes of it.
pub(crate) const fn site_request(request: usize, with_get: bool) -> u32 {
    request as u32 * 2 + with_get as u32
}

/// The user whose request an op is, and which of their fetches.
#[derive(Clone, Copy, Debug)]
struct FetchKey {
    user: usize,
    fetch: usize,
}

impl FetchKey {
    const FETCH_BITS: u32 = 8;

    const fn read(op: &HttpOp) -> Self {
        let user = (op.key >> Self::FETCH_BITS) as usize;
        Self { user, fetch: (op.key & ((1 << Self::FETCH_BITS) - 1)) as usize }
    }

    const fn key(self) -> u64 {
        (self.user as u64) << Self::FETCH_BITS | self.fetch as u64
    }
}

/// The users of one worker.
#[derive(Debug)]
pub(crate) struct Users {
    journeys: Arc<Journeys>,
    /// By endpoint.
    origins: Vec<Origin>,
    draws: Draws,
    users: RefCell<Vec<User>>,
    counts: RefCell<JourneyCounts>,
    /// The instant of the last step.
    now: Cell<Nanos>,
}

impl Users {
    pub(crate) fn new(journeys: Arc<Journeys>, origins: Vec<Origin>, draws: Draws) -> Self {
        Self {
            journeys,
            origins,
            draws,
            users: RefCell::default(),
            counts: RefCell::default(),
            now: Cell::new(Nanos::ZERO),
        }
    }

    fn context(&self) -> SessionContext<'_> {
        SessionContext { journeys: &self.journeys, draws: self.draws }
    }

    /// The index of the user that this client is.
    fn index_of(&self, context: &ClientContext) -> usize {
        let mut users = self.users.borrow_mut();
        // Reader and script of a client are made one after the other.
        if users.last().is_none_or(|user| user.client != context.client) {
            let endpoint = context.endpoint % self.origins.len().max(1);
            users.push(User::new(&self.journeys, context.client, endpoint));
        }
        users.len() - 1
    }

    fn origin(&self, user: &User) -> &Origin {
        &self.origins[user.endpoint]
    }

    fn request_of(&self, user: &User, op: &HttpOp) -> &PageRequest {
        &self.journeys.requests[user.fetch(FetchKey::read(op).fetch).request]
    }
}

impl RequestVariables for Users {
    fn key(&self, op: &HttpOp) -> u64 {
        let FetchKey { user, fetch } = FetchKey::read(op);
        self.users.borrow()[user].parts_key(fetch, &self.context())
    }

    fn write(&self, op: &HttpOp, number: u16, into: &mut Vec<u8>) {
        let users = self.users.borrow();
        let FetchKey { user, fetch } = FetchKey::read(op);
        let user = &users[user];
        let (path, origin) = (&user.fetch(fetch).path[..], self.origin(user));
        let (context, now) = (&self.context(), self.now.get());
        UserVariables { user, fetch, path, context, origin, now }.write(number, into);
    }
}

/// Walks one user along their journeys.
pub(crate) struct UserScript {
    users: Rc<Users>,
    index: usize,
    tls: Option<UserTls>,
}

/// TLS of one user alone.
pub(crate) struct UserTls {
    pub(crate) site: Rc<TlsSite>,
    /// Connections resume the TLS sessions of earlier ones.
    pub(crate) resumes: bool,
}

impl UserScript {
    pub(crate) fn new(users: Rc<Users>, context: &ClientContext, tls: Option<UserTls>) -> Self {
        let index = users.index_of(context);
        Self { users, index, tls }
    }
}

impl Script for UserScript {
    type Op = HttpOp;

    // A piece of work is a page.
    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, context: ScriptContext) -> Step<HttpOp> {
        let users = &self.users;
        let mut all = users.users.borrow_mut();
        let user = &mut all[self.index];
        users.now.set(context.now);
        if user.phase == UserPhase::Arriving {
            user.arrive(&users.context(), context.index);
            if let Some(UserTls { site, resumes }) = &self.tls {
                site.begin_user(user.certificate(&users.journeys), *resumes);
            }
        }
        match user.phase {
            UserPhase::Thinking(span) => {
                user.phase = UserPhase::Ready;
                Step::ThinkFor(span)
            }
            UserPhase::Ready | UserPhase::OutOfRows => {
                let is_first = user.is_new();
                let fetch = match user.phase {
                    // Without a row the session refuses the op, and the user leaves the load.
                    UserPhase::OutOfRows => 0,
                    _ => {
                        let times = (context.due, context.now);
                        match user.send(&users.context(), users.origin(user), times) {
                            Some(fetch) => fetch,
                            None => return Step::WaitForOutcome,
                        }
                    }
                };
                let key = FetchKey { user: self.index, fetch }.key();
                let fetch = user.fetch(fetch);
                let its = &users.journeys.requests[fetch.request];
                let with_get = fetch.redirect.is_some_and(|redirect| redirect.with_get);
                users.counts.borrow_mut().begun += u64::from(is_first);
                Step::Issue(HttpOp {
                    kind: OpKind(its.page as u8),
                    request: Request::Url(site_request(fetch.request, with_get)),
                    method: if with_get { Method::GET } else { its.text.method },
                    verify: false,
                    key,
                })
            }
            UserPhase::Waiting => Step::WaitForOutcome,
            UserPhase::Leaving => {
                user.phase = UserPhase::Arriving;
                Step::Think
            }
            UserPhase::Arriving => Step::Done,
        }
    }

    fn on_issued(&mut self, ticket: Ticket) {
        self.users.users.borrow_mut()[self.index].note_ticket(ticket);
    }

    fn on_outcome(&mut self, ticket: Ticket, outcome: &Outcome, _now: Nanos) {
        let user = &mut self.users.users.borrow_mut()[self.index];
        if user.end(ticket, outcome.is_failure(), &self.users.context()) {
            let counts = &mut *self.users.counts.borrow_mut();
            match outcome.status {
                OpStatus::Failed(ErrorClass::Abandoned) => counts.abandoned += 1,
                _ => counts.failed += 1,
            }
        }
    }
}

/// Reads the replies of one user.
#[derive(Debug)]
pub(crate) struct UserReader {
    users: Rc<Users>,
    index: usize,
}

impl UserReader {
    pub(crate) fn new(users: Rc<Users>, context: &ClientContext) -> Self {
        let index = users.index_of(context);
        Self { users, index }
    }

    /// The reply is good, or leads elsewhere.
    fn take_reply(&self, reply: &mut ReplyParts, at: &At<'_>) -> Result<Completed, Refusal> {
        let users = &*self.users;
        let mut all = users.users.borrow_mut();
        let user = &mut all[self.index];
        let fetch = FetchKey::read(at.op).fetch;
        let request = users.request_of(user, at.op);
        if reply.has_too_many_cookies {
            return Err(Refusal::Cookies);
        }
        let is_good = match &request.statuses[..] {
            [] => (200..300).contains(&at.status),
            statuses => statuses.contains(&at.status),
        };
        if !is_good {
            let Some(location) = reply.location.take().filter(|_| is_redirect(at.status)) else {
                return Err(Refusal::Status);
            };
            let before = user.fetch(fetch).redirect;
            let count = before.map_or(0, |redirect| redirect.count) + 1;
            if count > REDIRECTS_MAX {
                return Err(Refusal::Redirects);
            }
            let origin = &users.origins[user.endpoint];
            let path = resolve(&location, origin, &user.fetch(fetch).path);
            let path = path.ok_or(Refusal::Elsewhere)?;
            // RFC 9110 §15.4: browsers turn all methods but HEAD into GET, except for these two.
            let keeps_method = matches!(at.status, 307 | 308) || at.op.method == Method::HEAD;
            let with_get = !keeps_method || before.is_some_and(|it| it.with_get);
            user.follow(fetch, (path, Redirect { with_get, count }), &mut reply.taken);
            users.counts.borrow_mut().redirects += 1;
            return Ok(Completed::default());
        }
        reply.take_values(request, user, fetch)?;
        Ok(user.advance(fetch, &users.context(), at.now))
    }

    /// The start of the reply's body, without values that are secrets.
    fn excerpt(&self, reply: &ReplyParts, fetch: usize) -> String {
        let users = self.users.users.borrow();
        let body = reply.decoded().unwrap_or_default();
        let mut text =
            String::from_utf8_lossy(&body[..body.len().min(EXCERPT_BYTES_MAX)]).into_owned();
        for secret in users[self.index].secrets(fetch, &self.users.context()) {
            if secret.len() >= SECRET_BYTES_MIN {
                text = text.replace(&*String::from_utf8_lossy(secret), "…");
            }
        }
        plain_text(text.as_bytes())
    }
}

impl Reader for UserReader {
    type Reply = ReplyParts;

    const READS_FIELDS: bool = true;

    fn reads(&self, op: &HttpOp) -> bool {
        let Request::Url(index) = op.request else { return false };
        self.users.journeys.requests.get(index as usize / 2).is_some_and(reads_body)
    }

    fn take_field(&mut self, reply: &mut ReplyParts, op: &HttpOp, name: &[u8], value: &[u8]) {
        let users = &*self.users;
        let mut all = users.users.borrow_mut();
        let user = &mut all[self.index];
        let is_named = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        if is_named("set-cookie") {
            let mut jar = std::mem::take(&mut user.jar);
            let path = &user.fetch(FetchKey::read(op).fetch).path;
            let set = jar.set(value, &cookie_request(users.origin(user), path, users.now.get()));
            user.jar = jar;
            reply.has_too_many_cookies |= set == SetCookie::TooMany;
            users.counts.borrow_mut().ignored_cookies += u64::from(set == SetCookie::Ignored);
        } else if is_named("location") {
            reply.location = Some(value.to_vec());
        } else if is_named("content-encoding") {
            reply.encoding = match value.trim_ascii() {
                b"gzip" | b"x-gzip" => BodyEncoding::Gzip,
                b"identity" | b"" => BodyEncoding::Identity,
                _ => BodyEncoding::Other,
            };
        }
        for take in &users.request_of(user, op).takes {
            let taken = match &take.from {
                TakeSource::Header(header) if is_named(header) => Some(value.trim_ascii()),
                TakeSource::Cookie(cookie) if is_named("set-cookie") => {
                    value_set(value, cookie.as_bytes())
                }
                _ => None,
            };
            let is_new = reply.taken.iter().all(|(variable, _)| *variable != take.variable);
            if let Some(taken) = taken.filter(|taken| is_new && taken.len() <= VALUE_BYTES_MAX) {
                reply.taken.push((take.variable, taken.to_vec()));
            }
        }
    }

    fn take(&mut self, reply: &mut ReplyParts, op: &HttpOp, payload: &[u8]) {
        let bytes_max = if self.reads(op) { CAPTURE_BYTES_MAX } else { EXCERPT_BYTES_MAX };
        let room = bytes_max.saturating_sub(reply.body.len());
        reply.body.extend_from_slice(&payload[..payload.len().min(room)]);
    }

    fn read_ended(&mut self, _: &mut ReplyParts, _: &At<'_>, _: &mut impl Io) {}

    fn end(
        &mut self,
        reply: &mut ReplyParts,
        at: &At<'_>,
        io: &mut impl Io,
    ) -> Result<(), ErrorClass> {
        self.users.now.set(at.now);
        let outcome = self.take_reply(reply, at);
        if let Err(refusal) = &outcome {
            let excerpt = match self.excerpt(reply, FetchKey::read(at.op).fetch) {
                nothing if nothing.is_empty() => String::new(),
                text => format!(", saying {text:?}"),
            };
            let users = self.users.users.borrow();
            let shown = &self.users.request_of(&users[self.index], at.op).shown;
            let (method, status) = (at.op.method.as_str(), at.status);
            io.explain(format_args!("{method} {shown}: status {status}{refusal}{excerpt}"));
        }
        let completed = outcome.map_err(|refusal| refusal.class(at.status))?;
        let mut counts = self.users.counts.borrow_mut();
        if let Some(page) = completed.page {
            counts.pages += 1;
            io.mark(at.ticket, Mark::Value(TimeKind::Page, page.0));
        }
        if let Some((whole, busy)) = completed.journey {
            counts.completed += 1;
            io.mark(at.ticket, Mark::Value(TimeKind::Journey, whole.0));
            io.mark(at.ticket, Mark::Value(TimeKind::JourneyBusy, busy.0));
        }
        Ok(())
    }

    fn is_first_of_user(&self, op: &HttpOp) -> bool {
        let FetchKey { user, fetch } = FetchKey::read(op);
        self.users.users.borrow()[user].is_first(fetch)
    }

    fn gives_up_at(&self, op: &HttpOp) -> Option<Nanos> {
        self.users.users.borrow()[FetchKey::read(op).user].gives_up_at(&self.users.journeys)
    }

    fn lost(&self) -> Option<String> {
        let users = self.users.users.borrow();
        (users[self.index].phase == UserPhase::OutOfRows).then(|| {
            "a data file with order = \"each_once\" has no row left for a further session; give it \
             more rows, or write order = \"in_turn\""
                .to_owned()
        })
    }

    fn count_into(&mut self, counters: &mut SessionCounters) {
        counters.journeys.add(std::mem::take(&mut self.users.counts.borrow_mut()));
    }
}
