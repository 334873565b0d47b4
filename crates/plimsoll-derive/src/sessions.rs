//! Sessions: the requests of one client without a long pause, as pages that follow each other.

use std::collections::{BTreeMap, HashMap};

use plimsoll_model::units::Nanos;

use crate::arrivals::{ArrivalTest, ArrivalTestOutcome, RateBins};
use crate::fit::Sample;
use crate::pages::Pages;
use crate::paths::HashKeyed;
use crate::request::Request;

/// Clients whose last request is remembered.
const CLIENTS_MAX: usize = 300_000;
/// Pauses that other tools take for the end of a session, in minutes: counted for comparison.
const OTHER_TIMEOUTS: [Nanos; 3] =
    [Nanos::from_secs(600), Nanos::from_secs(1_800), Nanos::from_secs(3_600)];
/// Requests between two looks for clients that have left.
const SWEEP_EVERY: u64 = 1 << 18;

/// What the log has of the pages of one kind of visitor, in sessions.
#[derive(Default)]
pub(crate) struct VisitorSessions {
    pub sessions: u64,
    /// Page views.
    pub views: u64,
    /// From its first request to its last byte, in microseconds.
    pub lengths: Sample,
    /// First pages.
    pub starts: BTreeMap<u16, u64>,
    pub pages: Vec<PageSessions>,
}

/// What the log has of one page.
#[derive(Default)]
pub(crate) struct PageSessions {
    pub views: u64,
    /// Pages that followed; `None` is the end.
    pub next: BTreeMap<Option<u16>, u64>,
    /// Microseconds from its last byte to the next page.
    pub thinks: Sample,
    /// Whole replies.
    pub sizes: Sample,
    pub statuses: BTreeMap<u16, u64>,
    /// Requests of resources after it.
    pub resources: BTreeMap<u16, u64>,
}

/// What the log has of one resource.
#[derive(Default)]
pub(crate) struct ResourceSizes {
    pub sizes: Sample,
    pub statuses: BTreeMap<u16, u64>,
}

/// Sessions of a log in the making.
pub(crate) struct SessionFinder<'a> {
    pages: &'a Pages,
    timeout: Nanos,
    clients: HashKeyed<Client>,
    requests: u64,
    pub visitors: [VisitorSessions; 2],
    pub resources: HashMap<u16, ResourceSizes>,
    /// All think times.
    pub thinks: Sample,
    /// All sizes of whole replies.
    pub sizes: Sample,
    pub rate: RateBins,
    tests: Vec<ArrivalTest>,
    /// Sessions if a pause of 10, 30 or 60 minutes ended them.
    pub by_timeout: [u64; 3],
    /// Sessions that were cut because too many clients were there.
    pub cut: u64,
    /// Clients at least: those that returned after an hour count again.
    pub distinct_clients: u64,
}

/// The client's current session.
struct Client {
    begin: Nanos,
    /// The last byte of all so far.
    end: Nanos,
    /// The last page and its last byte.
    page: Option<(u16, Nanos)>,
    visitor: u8,
    is_open: bool,
}

impl<'a> SessionFinder<'a> {
    /// No request yet; `start` is the first one's begin.
    pub fn new(pages: &'a Pages, timeout: Nanos, (start, resolution): (Nanos, Nanos)) -> Self {
        let sessions = |pages: usize| VisitorSessions {
            pages: (0..pages).map(|_| PageSessions::default()).collect(),
            ..VisitorSessions::default()
        };
        let windows = [Nanos::from_secs(600), Nanos::from_secs(3_600)];
        Self {
            pages,
            timeout,
            clients: HashKeyed::default(),
            requests: 0,
            visitors: [0, 1].map(|visitor| sessions(pages.pages[visitor].len())),
            resources: HashMap::new(),
            thinks: Sample::default(),
            sizes: Sample::default(),
            rate: RateBins::new(start),
            tests: windows.map(|window| ArrivalTest::new(window, resolution, start)).into(),
            by_timeout: [0; 3],
            cut: 0,
            distinct_clients: 0,
        }
    }

    /// The next request of the log.
    pub fn request(&mut self, request: &Request) {
        self.requests += 1;
        if self.requests.is_multiple_of(SWEEP_EVERY) || self.clients.len() >= CLIENTS_MAX {
            self.sweep(request.begin);
        }
        let begins_session = self.continue_session(request);
        self.rate.count(request.begin, begins_session);
        if begins_session {
            self.tests.iter_mut().for_each(|test| test.arrival(request.begin));
        }
        if let Some(bytes) = request.whole_bytes() {
            self.sizes.insert(bytes);
        }
        let Some(client) = self.clients.get_mut(&request.client) else { return };
        let visitor = &mut self.visitors[usize::from(client.visitor)];
        client.end = client.end.max(request.end());
        if let (Some((page, page_end)), Some(resource)) =
            (&mut client.page, self.pages.resource(request))
        {
            *page_end = (*page_end).max(request.end());
            *visitor.pages[usize::from(*page)].resources.entry(resource).or_default() += 1;
            let resource = self.resources.entry(resource).or_default();
            resource.sizes.extend(request.whole_bytes());
            *resource.statuses.entry(request.status).or_default() += 1;
            return;
        }
        let Some(page) = self.pages.page(request) else { return };
        match client.page {
            Some((last, page_end)) => {
                let think = request.begin.saturating_sub(page_end).0 / 1_000;
                let last = &mut visitor.pages[usize::from(last)];
                last.thinks.insert(think);
                *last.next.entry(Some(page)).or_default() += 1;
                self.thinks.insert(think);
            }
            None => *visitor.starts.entry(page).or_default() += 1,
        }
        client.page = Some((page, request.end()));
        visitor.views += 1;
        let page = &mut visitor.pages[usize::from(page)];
        page.views += 1;
        page.sizes.extend(request.whole_bytes());
        *page.statuses.entry(request.status).or_default() += 1;
    }

    /// Its client's session goes on, or a new one begins.
    fn continue_session(&mut self, request: &Request) -> bool {
        let client = self.clients.entry(request.client).or_insert_with(|| {
            self.distinct_clients += 1;
            self.by_timeout.iter_mut().for_each(|sessions| *sessions += 1);
            Client {
                begin: request.begin,
                end: request.begin,
                page: None,
                visitor: u8::from(request.is_bot),
                is_open: false,
            }
        });
        let pause = request.begin.saturating_sub(client.end);
        for (sessions, timeout) in self.by_timeout.iter_mut().zip(OTHER_TIMEOUTS) {
            *sessions += u64::from(pause > timeout);
        }
        if client.is_open && pause <= self.timeout {
            return false;
        }
        let visitor = &mut self.visitors[usize::from(client.visitor)];
        if client.is_open {
            visitor.session_ended(client);
        }
        visitor.sessions += 1;
        *client = Client {
            begin: request.begin,
            end: request.begin,
            page: None,
            is_open: true,
            ..*client
        };
        true
    }

    /// Forgets clients that have been gone for long; if there are too many, for less long.
    fn sweep(&mut self, now: Nanos) {
        let mut idle = OTHER_TIMEOUTS[2].max(self.timeout);
        loop {
            let visitors = &mut self.visitors;
            let mut cut = 0;
            self.clients.retain(|_, client| {
                let pause = now.saturating_sub(client.end);
                if pause > idle && client.is_open {
                    cut += u64::from(pause <= self.timeout);
                    visitors[usize::from(client.visitor)].session_ended(client);
                }
                pause <= idle
            });
            self.cut += cut;
            if self.clients.len() < CLIENTS_MAX / 4 * 3 || idle == Nanos::ZERO {
                return;
            }
            idle = Nanos(idle.0 / 2);
        }
    }

    /// After the last request: every session ends. The outcome of the tests.
    pub fn finish(&mut self) -> Vec<ArrivalTestOutcome> {
        for client in self.clients.values().filter(|client| client.is_open) {
            self.visitors[usize::from(client.visitor)].session_ended(client);
        }
        self.clients.clear();
        self.tests.drain(..).map(ArrivalTest::finish).collect()
    }
}

impl VisitorSessions {
    fn session_ended(&mut self, client: &Client) {
        if let Some((page, _)) = client.page {
            *self.pages[usize::from(page)].next.entry(None).or_default() += 1;
        }
        self.lengths.insert(client.end.saturating_sub(client.begin).0 / 1_000);
    }
}

impl Sample {
    fn extend(&mut self, value: Option<u64>) {
        value.into_iter().for_each(|value| self.insert(value));
    }
}
