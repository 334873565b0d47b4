//! One user: where they are on their journey, and what they have taken from replies. Everything that
//! is drawn follows from the seed, the number of the session and the number of the request in it.

use plimsoll_engine::rng;
use plimsoll_model::units::Nanos;

use super::cookies::{CookieJar, CookieRequest};
use super::data::DataRows;
use super::{Journeys, PageRequest, Variable};
use crate::wire::template::{Encoding, Template, Variables};

/// Keeps the draws of different uses apart.
mod stream {
    pub(super) const JOURNEY: u64 = 11;
    pub(super) const ROW: u64 = 12;
    pub(super) const PARTS: u64 = 13;
    pub(super) const NEXT: u64 = 14;
    pub(super) const THINK: u64 = 15;
    pub(super) const REPEAT: u64 = 16;
    pub(super) const REQUEST_REPEAT: u64 = 17;
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
    /// Sends the next request.
    Ready,
    /// Waits for a reply.
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
    request: usize,
    /// Of the page.
    repeats_left: u32,
    /// Of the request.
    request_repeats_left: u32,
    /// Requests sent in the session.
    pub(crate) steps: u64,
    /// Of the variables that are taken from replies.
    values: Vec<Vec<u8>>,
    /// Of each data set.
    rows: Vec<u64>,
    pub(crate) jar: CookieJar,
    /// Path and query of the request.
    pub(crate) path: Vec<u8>,
    /// The redirect that the request follows, and how many came before it.
    redirect: Option<Redirect>,
    /// What the replies before it set that is taken, with the indexes of the variables.
    pub(crate) set_by_redirects: Vec<(u16, Vec<u8>)>,
    /// When the page was due, if its first request was sent.
    page_due: Option<Nanos>,
    /// When the session was due.
    session_due: Nanos,
    thought: Nanos,
}

/// A redirect that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// With GET, whatever the method of the request was.
    pub(crate) with_get: bool,
    /// Of this request so far.
    pub(crate) count: u32,
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
            request: 0,
            repeats_left: 0,
            request_repeats_left: 0,
            steps: 0,
            values: vec![Vec::new(); journeys.variables.len()],
            rows: vec![0; journeys.data.len()],
            jar: CookieJar::default(),
            path: Vec::new(),
            redirect: None,
            set_by_redirects: Vec::new(),
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
        (self.steps, self.repeats_left) = (0, 0);
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
        self.go_to_page(context, journey.first);
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
        self.redirect = None;
        self.set_by_redirects.clear();
    }

    fn go_to_request(&mut self, context: &SessionContext<'_>, request: usize) {
        self.request = request;
        let its = &context.journeys.requests[request];
        self.request_repeats_left = its.repeat.draw(self.key(context, stream::REQUEST_REPEAT));
    }

    fn key(&self, context: &SessionContext<'_>, purpose: u64) -> u64 {
        rng::key(&[context.draws.seed, purpose, self.session, self.steps])
    }

    /// The request that is in flight, or is next.
    pub(crate) fn request<'j>(&self, journeys: &'j Journeys) -> &'j PageRequest {
        &journeys.requests[self.request]
    }

    /// Index of that request, and the redirect that it follows.
    pub(crate) const fn current(&self) -> (usize, Option<Redirect>) {
        (self.request, self.redirect)
    }

    /// The request, which was due at `due`, goes out: makes its path, unless a redirect named it.
    pub(crate) fn send(
        &mut self,
        context: &SessionContext<'_>,
        origin: &Origin,
        (due, now): (Nanos, Nanos),
    ) {
        if self.steps == 0 {
            self.session_due = due;
        }
        self.page_due.get_or_insert(due);
        self.steps += 1;
        self.phase = UserPhase::Waiting;
        if self.redirect.is_none() {
            let template = &self.request(context.journeys).path;
            let mut path = std::mem::take(&mut self.path);
            path.clear();
            self.write(template, context, origin, now, &mut path);
            self.path = path;
        }
    }

    fn write(
        &self,
        template: &Template,
        context: &SessionContext<'_>,
        origin: &Origin,
        now: Nanos,
        into: &mut Vec<u8>,
    ) {
        let variables = UserVariables { user: self, journeys: context.journeys, origin, now };
        // Other parts than those of header and body.
        let key = self.parts_key(context).wrapping_add(2);
        template.write_with(key, 0, &variables, into);
    }

    /// Draws the random parts of the request.
    pub(crate) fn parts_key(&self, context: &SessionContext<'_>) -> u64 {
        self.key(context, stream::PARTS) ^ context.draws.nonce
    }

    /// Keeps a value that was taken.
    pub(crate) fn keep(&mut self, variable: u16, value: &[u8]) {
        let kept = &mut self.values[usize::from(variable)];
        kept.clear();
        kept.extend_from_slice(value);
    }

    /// The reply leads elsewhere: the same request goes on there at once.
    pub(crate) fn follow(&mut self, path: Vec<u8>, redirect: Redirect) {
        self.path = path;
        self.redirect = Some(redirect);
        self.phase = UserPhase::Ready;
    }

    /// The reply to the request is good: what comes next, and what is complete.
    pub(crate) fn advance(&mut self, context: &SessionContext<'_>, now: Nanos) -> Completed {
        let page = &context.journeys.pages[self.page];
        self.redirect = None;
        self.set_by_redirects.clear();
        self.request_repeats_left = self.request_repeats_left.saturating_sub(1);
        let is_repeated = self.request_repeats_left > 0;
        if is_repeated || self.request + 1 < page.requests.end {
            if !is_repeated {
                self.go_to_request(context, self.request + 1);
            }
            self.phase = UserPhase::Ready;
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

    /// The request with which cookies go and come.
    pub(crate) fn cookie_request<'u>(
        &'u self,
        origin: &'u Origin,
        now: Nanos,
    ) -> CookieRequest<'u> {
        let end = memchr::memchr(b'?', &self.path).unwrap_or(self.path.len());
        let (host, path) = (origin.host.as_str(), &self.path[..end]);
        CookieRequest { host, path, is_secure: origin.scheme == "https", now }
    }

    /// What no message may have: values that were taken, those of the user's rows, cookies.
    pub(crate) fn secrets<'u>(&'u self, journeys: &'u Journeys) -> impl Iterator<Item = &'u [u8]> {
        let of_rows = self.rows.iter().zip(&journeys.data).flat_map(|(row, data)| {
            (0..data.columns.len()).map(move |column| data.value(*row, column))
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

/// The values of a user's variables.
#[derive(Debug)]
pub(crate) struct UserVariables<'a> {
    pub(crate) user: &'a User,
    pub(crate) journeys: &'a Journeys,
    pub(crate) origin: &'a Origin,
    pub(crate) now: Nanos,
}

impl Variables for UserVariables<'_> {
    fn write(&self, number: u16, into: &mut Vec<u8>) {
        let Self { user, journeys, .. } = self;
        match journeys.variables.get(usize::from(number)) {
            Some(Variable::Cookies) => {
                user.jar.write(&user.cookie_request(self.origin, self.now), into);
            }
            Some(Variable::Path) => into.extend_from_slice(&user.path),
            Some(Variable::Origin) => {
                into.extend_from_slice(self.origin.scheme.as_bytes());
                into.extend_from_slice(b"://");
                into.extend_from_slice(self.origin.host_field.as_bytes());
            }
            Some(Variable::Taken(_)) => {
                into.extend_from_slice(&user.values[usize::from(number)]);
            }
            Some(Variable::Column { data, column }) => {
                into.extend_from_slice(journeys.data[*data].value(user.rows[*data], *column));
            }
            None => {}
        }
    }
}

/// Path and query that a redirect leads to on the same server; `None` where it leads elsewhere. RFC
/// 3986 §5.2
pub(crate) fn resolve(location: &[u8], origin: &Origin, path: &[u8]) -> Option<Vec<u8>> {
    let location = std::str::from_utf8(location).ok()?.trim();
    let location = location.split('#').next().unwrap_or_default();
    let absolute = format!("{}:", origin.scheme);
    let below = match location.get(..absolute.len()) {
        Some(start) if start.eq_ignore_ascii_case(&absolute) => &location[absolute.len()..],
        _ => location,
    };
    let target = match below.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (host, target) = rest.split_at(end);
            if without_default_port(host, &origin.scheme)
                != without_default_port(&origin.host_field, &origin.scheme)
            {
                return None;
            }
            if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
        }
        None if below.len() < location.len() || has_scheme(below) => return None,
        None if below.starts_with('/') => below.to_owned(),
        None => {
            let end = path.iter().position(|byte| *byte == b'?').unwrap_or(path.len());
            let base = String::from_utf8_lossy(&path[..end]).into_owned();
            let directory = base.rsplit_once('/').map_or("", |(directory, _)| directory);
            match below {
                "" => base,
                query if query.starts_with('?') => format!("{base}{query}"),
                relative => without_dots(&format!("{directory}/{relative}")),
            }
        }
    };
    let mut bytes = target.into_bytes();
    Encoding::Target.apply(0, &mut bytes);
    Some(bytes)
}

fn without_default_port(host: &str, scheme: &str) -> String {
    let port = if scheme == "https" { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase()
}

fn has_scheme(text: &str) -> bool {
    let name = text.split(['/', '?', '#']).next().unwrap_or_default();
    name.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// RFC 3986 §5.2.4
fn without_dots(path: &str) -> String {
    let (path, query) =
        path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let slash = if path.ends_with("/.") || path.ends_with("/..") { "/" } else { "" };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("/{}{slash}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_to_a_path_on_the_same_server_or_elsewhere() {
        let origin = Origin {
            scheme: "http".into(),
            host: "shop.example".into(),
            host_field: "shop.example:80".into(),
        };
        for (location, target) in [
            ("/a?b=c#d", Some("/a?b=c")),
            ("http://shop.example/a", Some("/a")),
            ("HTTP://SHOP.example:80?x", Some("/?x")),
            ("//shop.example/a b", Some("/a%20b")),
            ("next?y=1", Some("/shop/next?y=1")),
            ("../up/./", Some("/up/")),
            ("?page=2", Some("/shop/cart?page=2")),
            ("", Some("/shop/cart")),
            ("https://shop.example/", None),
            ("http://other.example/", None),
            ("//other.example", None),
            ("http:next", None),
            ("mailto:a@b", None),
        ] {
            let resolved = resolve(location.as_bytes(), &origin, b"/shop/cart?page=1");
            let resolved = resolved.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(resolved.as_deref(), target, "{location}");
        }
        assert_eq!(resolve(b"/\xff", &origin, b"/"), None);
    }
}
