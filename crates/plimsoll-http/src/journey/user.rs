//! One user: where they are on their journey, and what they have taken from replies. Everything that
//! is drawn follows from the seed, the number of the session and the number of the request in it.

use plimsoll_engine::interface::Ticket;
use plimsoll_engine::rng;
use plimsoll_model::units::Nanos;

use super::Journeys;
use super::cookies::CookieJar;
use super::data::{DataRows, RowOrder};
use super::fetch::{Fetch, FetchState, Redirect};
use crate::tls::ClientIdentity;

mod variables;

pub(crate) use self::variables::{UserVariables, cookie_request};

/// Keeps the draws of different uses apart.
mod stream {
    pub(super) const JOURNEY: u64 = 11;
    pub(super) const ROW: u64 = 12;
    pub(super) const PARTS: u64 = 13;
    pub(super) const NEXT: u64 = 14;
    pub(super) const THINK: u64 = 15;
    pub(super) const REPEAT: u64 = 16;
    pub(super) const REQUEST_REPEAT: u64 = 17;
    pub(super) const REQUEST_ROW: u64 = 18;
    pub(super) const START: u64 = 19;
}

/// The server that a user talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// `http` or `https`.
    pub(crate) scheme: String,
    /// Without its port.
    pub(crate) host: String,
    /// With its port, as in the field `Host`.
    pub(crate) host_field: String,
}

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserPhase {
    /// Begins a session with the next step.
    Arriving,
    /// Thinks for so long, and is then ready.
    Thinking(Nanos),
    /// Sends a request.
    Ready,
    /// Waits for replies.
    Waiting,
    /// Has ended a session.
    Leaving,
    /// No row of data is left for a further session.
    OutOfRows,
}

/// A simulated user.
#[derive(Debug)]
pub(crate) struct User {
    /// Number of the client, over all workers and agents.
    pub(crate) client: u32,
    /// Index of the server.
    pub(crate) endpoint: usize,
    pub(crate) phase: UserPhase,
    /// Sessions begun.
    sessions: u64,
    /// Number of the session, over all clients.
    session: u64,
    page: usize,
    /// Of the page.
    repeats_left: u32,
    /// Index of the request that goes out next, or the end of those of the page.
    next_request: usize,
    /// Of that request.
    request_repeats_left: u32,
    /// Requests begun in the session; redirects do not count.
    requests: u64,
    /// Those of the page under way; of others what was allocated is used again.
    fetches: Vec<Fetch>,
    /// The fetch that went out last, until its ticket is known.
    sent_last: Option<usize>,
    /// A request of the session has failed.
    has_failed: bool,
    /// Of the variables that are taken from replies.
    values: Vec<Vec<u8>>,
    /// Of each data set.
    rows: Vec<u64>,
    pub(crate) jar: CookieJar,
    /// When the page was due, if its first request was sent.
    page_due: Option<Nanos>,
    /// When the session was due.
    session_due: Nanos,
    thought: Nanos,
}

/// Times that are complete with a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Of a page.
    pub(crate) page: Option<Nanos>,
    /// Of a journey: with and without its think times.
    pub(crate) journey: Option<(Nanos, Nanos)>,
}

impl User {
    pub(crate) fn new(journeys: &Journeys, client: u32, endpoint: usize) -> Self {
        Self {
            client,
            endpoint,
            phase: UserPhase::Arriving,
            sessions: 0,
            session: 0,
            page: 0,
            repeats_left: 0,
            next_request: 0,
            request_repeats_left: 0,
            requests: 0,
            fetches: vec![Fetch::default()],
            sent_last: None,
            has_failed: false,
            values: vec![Vec::new(); journeys.variables.len()],
            rows: vec![0; journeys.data.len()],
            jar: CookieJar::default(),
            page_due: None,
            session_due: Nanos::ZERO,
            thought: Nanos::ZERO,
        }
    }

    /// Begins a session, which arrived with this index if sessions arrive; unless there is no row of
    /// data for it.
    pub(crate) fn arrive(&mut self, context: &SessionContext<'_>, arrival: u64) {
        let SessionContext { journeys, draws: Draws { seed, .. } } = *context;
        self.session = self.next_session(context).unwrap_or(arrival);
        self.sessions += 1;
        (self.requests, self.repeats_left, self.has_failed) = (0, 0, false);
        self.jar.clear();
        self.values.iter_mut().for_each(Vec::clear);
        for ((row, data), number) in self.rows.iter_mut().zip(&journeys.data).zip(0..) {
            let key = rng::key(&[seed, stream::ROW, self.session, number]);
            let Some(its) = data.row(self.session, key) else {
                self.phase = UserPhase::OutOfRows;
                return;
            };
            *row = its;
        }
        let drawn = rng::unit(rng::key(&[seed, stream::JOURNEY, self.session]));
        let total: f64 = journeys.journeys.iter().map(|journey| journey.weight).sum();
        let mut sum = 0.0;
        let chosen = journeys.journeys.iter().find(|journey| {
            sum += journey.weight / total;
            drawn < sum
        });
        let Some(journey) = chosen.or(journeys.journeys.last()) else { return };
        self.thought = Nanos::ZERO;
        let drawn = rng::unit(rng::key(&[seed, stream::START, self.session]));
        let start = journey.starts.iter().find(|(sum, _)| drawn < *sum).or(journey.starts.last());
        self.go_to_page(context, start.map_or(journey.first, |(_, page)| *page));
        self.phase = UserPhase::Ready;
    }

    /// The page of this index comes next.
    fn go_to_page(&mut self, context: &SessionContext<'_>, page: usize) {
        if page != self.page || self.repeats_left == 0 {
            self.repeats_left =
                context.journeys.pages[page].repeat.draw(self.key(context, stream::REPEAT));
        }
        self.page = page;
        self.go_to_request(context, context.journeys.pages[page].requests.start);
        self.page_due = None;
    }

    /// The request of this index comes next, or the first behind it that is made at all.
    fn go_to_request(&mut self, context: &SessionContext<'_>, request: usize) {
        let end = context.journeys.pages[self.page].requests.end;
        let key = self.key(context, stream::REQUEST_REPEAT);
        (self.next_request, self.request_repeats_left) = (end, 0);
        for (its, number) in context.journeys.requests[..end].iter().zip(0..).skip(request) {
            // Several are drawn before the next request of the session.
            let key = if its.repeat.may_be_none() { rng::key(&[key, number as u64]) } else { key };
            let repeats = its.repeat.draw(key);
            if repeats > 0 {
                (self.next_request, self.request_repeats_left) = (number, repeats);
                return;
            }
        }
    }

    fn key(&self, context: &SessionContext<'_>, purpose: u64) -> u64 {
        rng::key(&[context.draws.seed, purpose, self.session, self.requests])
    }

    pub(crate) fn fetch(&self, index: usize) -> &Fetch {
        &self.fetches[index]
    }

    /// The certificate of the user of this session.
    pub(crate) fn certificate<'j>(&self, journeys: &'j Journeys) -> Option<&'j ClientIdentity> {
        journeys.certificate(&self.rows)
    }

    /// No request of the session was sent.
    pub(crate) const fn is_new(&self) -> bool {
        self.requests == 0
    }

    /// The request of this fetch is the first of its session.
    pub(crate) fn is_first(&self, fetch: usize) -> bool {
        self.requests == 1 && self.fetches[fetch].redirect.is_none()
    }

    /// Index of the fetch whose request goes out next, if one may: that of a redirect at once, a
    /// further request of the page when the first is done and not too many are in flight.
    fn ready_fetch(&self, journeys: &Journeys) -> Option<usize> {
        if self.has_failed {
            return None;
        }
        let is_redirected = |fetch: &Fetch| fetch.state == FetchState::Redirected;
        if let Some(redirected) = self.fetches.iter().position(is_redirected) {
            return Some(redirected);
        }
        let page = &journeys.pages[self.page];
        let in_flight = self.open_fetches().count();
        let awaits_first = self.open_fetches().any(|fetch| fetch.request == page.requests.start);
        let may_begin = self.next_request < page.requests.end
            && in_flight < page.parallel as usize
            && !awaits_first;
        may_begin.then(|| {
            let has_ended = |fetch: &Fetch| fetch.state == FetchState::Ended;
            self.fetches.iter().position(has_ended).unwrap_or(self.fetches.len())
        })
    }

    fn open_fetches(&self) -> impl Iterator<Item = &Fetch> {
        self.fetches.iter().filter(|fetch| fetch.state != FetchState::Ended)
    }

    /// The next request, which was due at `due`, goes out: makes its path, unless a redirect named
    /// it. Index of its fetch; `None` if the user has to wait.
    pub(crate) fn send(
        &mut self,
        context: &SessionContext<'_>,
        origin: &Origin,
        (due, now): (Nanos, Nanos),
    ) -> Option<usize> {
        let index = self.ready_fetch(context.journeys)?;
        if index == self.fetches.len() {
            self.fetches.push(Fetch::default());
        }
        if self.is_new() {
            self.session_due = due;
        }
        self.page_due.get_or_insert(due);
        if self.fetches[index].state == FetchState::Ended {
            self.begin_fetch(index, context, origin, now);
        }
        self.fetches[index].state = FetchState::InFlight(None);
        self.sent_last = Some(index);
        self.await_or_send(context.journeys);
        Some(index)
    }

    fn begin_fetch(
        &mut self,
        index: usize,
        context: &SessionContext<'_>,
        origin: &Origin,
        now: Nanos,
    ) {
        self.requests += 1;
        let fetch = &mut self.fetches[index];
        (fetch.request, fetch.number, fetch.redirect) = (self.next_request, self.requests, None);
        fetch.set_by_redirects.clear();
        let mut path = std::mem::take(&mut fetch.path);
        path.clear();
        // Other parts than those of header and body.
        let key = self.parts_key(index, context).wrapping_add(2);
        let variables = UserVariables { user: self, fetch: index, path: &[], context, origin, now };
        context.journeys.requests[self.next_request].path.write_with(key, 0, &variables, &mut path);
        self.fetches[index].path = path;
        self.request_repeats_left = self.request_repeats_left.saturating_sub(1);
        if self.request_repeats_left == 0 {
            self.go_to_request(context, self.next_request + 1);
        }
    }

    /// Whether a further request may go out before a reply comes.
    fn await_or_send(&mut self, journeys: &Journeys) {
        let may_send = self.ready_fetch(journeys).is_some();
        self.phase = if may_send { UserPhase::Ready } else { UserPhase::Waiting };
    }

    /// The request that went out last has this ticket.
    pub(crate) fn note_ticket(&mut self, ticket: Ticket) {
        if let Some(sent) = self.sent_last.take() {
            self.fetches[sent].state = FetchState::InFlight(Some(ticket));
        }
    }

    /// Draws the random parts of a fetch's requests.
    pub(crate) fn parts_key(&self, fetch: usize, context: &SessionContext<'_>) -> u64 {
        let Draws { seed, nonce, .. } = context.draws;
        rng::key(&[seed, stream::PARTS, self.session, self.fetches[fetch].number]) ^ nonce
    }

    /// Keeps a value that was taken.
    pub(crate) fn keep(&mut self, variable: u16, value: &[u8]) {
        let kept = &mut self.values[usize::from(variable)];
        kept.clear();
        kept.extend_from_slice(value);
    }

    /// The reply leads elsewhere: the same request goes on there at once. `set`: what the reply set
    /// that is taken.
    pub(crate) fn follow(
        &mut self,
        fetch: usize,
        (path, redirect): (Vec<u8>, Redirect),
        set: &mut Vec<(u16, Vec<u8>)>,
    ) {
        let fetch = &mut self.fetches[fetch];
        (fetch.path, fetch.redirect) = (path, Some(redirect));
        fetch.set_by_redirects.append(set);
        // Of a session that has failed nothing more is sent.
        fetch.state = if self.has_failed { FetchState::Ended } else { FetchState::Redirected };
        self.phase = if self.has_failed { UserPhase::Waiting } else { UserPhase::Ready };
    }

    /// The reply to the request is good: what comes next, and what is complete.
    pub(crate) fn advance(
        &mut self,
        fetch: usize,
        context: &SessionContext<'_>,
        now: Nanos,
    ) -> Completed {
        self.fetches[fetch].state = FetchState::Ended;
        let page = &context.journeys.pages[self.page];
        let has_open_fetch = self.open_fetches().next().is_some();
        if self.has_failed || has_open_fetch || self.next_request < page.requests.end {
            self.await_or_send(context.journeys);
            return Completed::default();
        }
        let page_time = self.page_due.map(|due| now.saturating_sub(due));
        self.repeats_left = self.repeats_left.saturating_sub(1);
        let next = match self.repeats_left {
            0 => {
                let drawn = rng::unit(self.key(context, stream::NEXT));
                let chosen = page.next.iter().find(|(sum, _)| drawn < *sum).or(page.next.last());
                chosen.and_then(|(_, page)| *page)
            }
            _ => Some(self.page),
        };
        let Some(next) = next else {
            self.leave(context);
            let whole = now.saturating_sub(self.session_due);
            let journey = Some((whole, whole.saturating_sub(self.thought)));
            return Completed { page: page_time, journey };
        };
        let think = page.think.draw(self.key(context, stream::THINK));
        self.thought += think;
        self.go_to_page(context, next);
        self.phase = UserPhase::Thinking(think);
        Completed { page: page_time, journey: None }
    }

    /// The op of this ticket has ended. Its user leaves once a request has failed and no other is in
    /// flight. True where this op is the first of the session that failed.
    pub(crate) fn end(
        &mut self,
        ticket: Ticket,
        is_failure: bool,
        context: &SessionContext<'_>,
    ) -> bool {
        let sent = FetchState::InFlight(Some(ticket));
        let fetch = self.fetches.iter_mut().find(|fetch| fetch.state == sent);
        let is_first = match fetch {
            Some(fetch) if is_failure => {
                fetch.state = FetchState::Ended;
                !std::mem::replace(&mut self.has_failed, true)
            }
            _ => false,
        };
        if self.has_failed && self.phase != UserPhase::Leaving {
            let redirected =
                self.fetches.iter_mut().filter(|fetch| fetch.state == FetchState::Redirected);
            redirected.for_each(|fetch| fetch.state = FetchState::Ended);
            let has_open_fetch = self.open_fetches().next().is_some();
            match has_open_fetch {
                true => self.phase = UserPhase::Waiting,
                false => self.leave(context),
            }
        }
        is_first
    }

    /// When the user gives the page up.
    pub(crate) fn gives_up_at(&self, journeys: &Journeys) -> Option<Nanos> {
        let after = journeys.pages.get(self.page)?.abandon_after?;
        Some(self.page_due?.saturating_add(after))
    }

    /// The session has ended, well or with a request that failed.
    pub(crate) fn leave(&mut self, context: &SessionContext<'_>) {
        let next = self.next_session(context);
        let has_row = |data: &DataRows| next.is_none_or(|next| data.row(next, 0).is_some());
        self.phase = match context.journeys.data.iter().all(has_row) {
            true => UserPhase::Leaving,
            false => UserPhase::OutOfRows,
        };
    }

    /// Number of the next session; `None` where it is that of an arrival.
    fn next_session(&self, context: &SessionContext<'_>) -> Option<u64> {
        let clients = u64::from(context.draws.clients?);
        Some(u64::from(self.client) + self.sessions * clients)
    }

    /// The row that a fetch has of data of this index: that of the session, or its own.
    fn row(&self, fetch: usize, data: usize, context: &SessionContext<'_>) -> u64 {
        let rows = &context.journeys.data[data];
        if rows.order != RowOrder::EachRequest {
            return self.rows[data];
        }
        let number = self.fetches[fetch].number;
        let parts = [context.draws.seed, stream::REQUEST_ROW, self.session, data as u64, number];
        rows.row_of_request(rng::key(&parts))
    }

    /// What no message about a fetch may have: values that were taken, those of its rows, cookies.
    pub(crate) fn secrets<'u>(
        &'u self,
        fetch: usize,
        context: &SessionContext<'u>,
    ) -> impl Iterator<Item = &'u [u8]> {
        let context = *context;
        let of_rows = context.journeys.data.iter().enumerate().flat_map(move |(number, data)| {
            let row = self.row(fetch, number, &context);
            (0..data.columns.len()).map(move |column| data.value(row, column))
        });
        self.values.iter().map(Vec::as_slice).chain(of_rows).chain(self.jar.values())
    }
}

/// What the sessions of a load point share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionContext<'a> {
    pub(crate) journeys: &'a Journeys,
    pub(crate) draws: Draws,
}

/// What the draws of a load point follow from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    /// Seed of the run: rows, pages and think times follow from it.
    pub(crate) seed: u64,
    /// Differs from point to point and from run to run, and so do the random parts of requests: a
    /// name that a server keeps is a new one each time.
    pub(crate) nonce: u64,
    /// Clients of the load point, over all workers and agents; `None` where sessions arrive.
    pub(crate) clients: Option<u32>,
}

#[cfg(test)]
mod tests;
