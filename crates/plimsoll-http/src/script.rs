//! What a client requests next. Op n depends on the seed, the client and n only.
//!
//! - `file_set`: each client draws from decks of 100 cards with exactly the method's class shares.
//!   Within a deck the classes are spread out, a hundred clients share the order of classes, and
//!   each begins at another card, so that clients of ten ops each keep the mix together. Files
//!   within a class are apportioned over the deck by systematic sampling: quantiles of the Poisson
//!   weights that step by the golden ratio from deck to deck, so that short runs keep the mix.
//!   Directories are uniform.
//! - `urls`: clients draw from a deck by weight, or independently if that deck would be large.
//!
//! With a shared schedule the schedule's index replaces the client's count.
//!
//! A client with a long-lived connection opens it at its instant, and keeps it.

use std::sync::Arc;

use plimsoll_engine::interface::{Script, ScriptContext, Step};
use plimsoll_engine::rng;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::page_cache::{AccessClass, AccessPattern};
use plimsoll_model::sessions::SessionsPlan;
use plimsoll_model::suite::{LoadSpec, Suite};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::PlanError;

use super::fileset::{CLASSES, FILES_PER_CLASS, FileId, file_bytes};
use super::parameters::{HttpWorkload, RequestSource};
use super::site::{HttpOp, Request};
use super::wire::request::Method;

/// Cards of a deck: one per percent.
pub(crate) const DECK_CARDS: usize = 100;
/// Largest deck of URLs; lists that need more are drawn by weight.
const URL_DECK_CARDS_MAX: u64 = 1_024;
/// Fractional part of the golden ratio: its multiples spread evenly over 0..1.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Keeps the streams of different uses apart.
mod stream {
    pub(super) const DECK: u64 = 1;
    pub(super) const QUANTILE: u64 = 2;
    pub(super) const DIRECTORY: u64 = 3;
    pub(super) const URL: u64 = 4;
    pub(super) const PARTS: u64 = 5;
}

/// The client or pool whose ops a script numbers, and where its decks begin.
#[derive(Clone, Copy, Debug)]
struct Owner {
    /// The client, or all of them.
    number: u64,
    /// Clients that share shuffles.
    group: u64,
    /// Share of a deck that the client begins after.
    cut: f64,
}

impl Owner {
    fn new(client: u32, shared: bool) -> Self {
        match shared {
            true => Self { number: u64::MAX, group: u64::MAX, cut: 0.0 },
            false => Self {
                number: u64::from(client),
                group: u64::from(client) / DECK_CARDS as u64,
                cut: (f64::from(client) * GOLDEN).fract(),
            },
        }
    }

    /// Number of the deck that op `index` comes from, and its position there.
    fn deck_position(self, index: u64, cards: usize) -> (u64, usize) {
        let cards = cards as u64;
        let cut = (self.cut * cards as f64) as u64;
        (index / cards, ((index % cards + cut) % cards) as usize)
    }
}

/// What the scripts of one load point share.
#[derive(Clone, Debug)]
pub(crate) struct FilePlan {
    /// Seed of the run.
    pub seed: u64,
    /// Percent of ops per class; sums to [`DECK_CARDS`].
    pub class_percent: [u8; CLASSES as usize],
    /// Probability that a file is number k or below, for k = 1..9; the last is 1.
    pub cumulative: [f64; FILES_PER_CLASS as usize],
    /// Directories in use.
    pub directories: u32,
    /// One reply in this many is compared with the file; 1 is all.
    pub verify_one_in: u32,
    /// Method of all requests.
    pub method: Method,
    /// The index of a step is that of a schedule that all clients share.
    pub shared: bool,
}

impl FilePlan {
    /// The file, 1 to 9, at a quantile of the distribution within a class.
    fn file_at(&self, quantile: f64) -> u8 {
        let below = self.cumulative.iter().filter(|sum| **sum <= quantile).count() as u8;
        (below + 1).min(FILES_PER_CLASS)
    }

    /// How often each file of the set is read; `None` of requests that read no content. Each of
    /// `servers` has the set.
    pub(crate) fn access_pattern(&self, servers: u64) -> Option<AccessPattern> {
        let items = u64::from(self.directories) * servers;
        let class = |class: u8| {
            let share = f64::from(self.class_percent[usize::from(class)]) / DECK_CARDS as f64;
            let below = |k: u8| k.checked_sub(1).map_or(0.0, |k| self.cumulative[usize::from(k)]);
            (1..=FILES_PER_CLASS).map(move |k| AccessClass {
                items,
                bytes: file_bytes(class, k),
                share: share * (below(k) - below(k - 1)),
            })
        };
        let classes = (0..CLASSES).flat_map(class).collect();
        (self.method == Method::GET).then_some(AccessPattern { classes })
    }
}

/// Poisson(`mean`) truncated to 1..9 and renormalised.
pub(crate) fn poisson_weights(mean: f64) -> [f64; FILES_PER_CLASS as usize] {
    let mut weights = [0.0; FILES_PER_CLASS as usize];
    plimsoll_protocol::draw::poisson(mean, &mut weights);
    weights
}

/// Running sums of `weights`, ending in exactly 1.
pub(crate) fn cumulative(
    weights: [f64; FILES_PER_CLASS as usize],
) -> [f64; FILES_PER_CLASS as usize] {
    let mut sum = 0.0;
    let mut sums = weights.map(|w| {
        sum += w;
        sum
    });
    sums[usize::from(FILES_PER_CLASS) - 1] = 1.0;
    sums
}

/// Script of `web-static`.
#[derive(Debug)]
pub(crate) struct FileScript {
    plan: Arc<FilePlan>,
    owner: Owner,
    deck_number: Option<u64>,
    /// Class and file, packed: `class * 16 + k`.
    deck: [u8; DECK_CARDS],
}

impl FileScript {
    /// The script of one client.
    pub(crate) fn new(plan: Arc<FilePlan>, client: u32) -> Self {
        let owner = Owner::new(client, plan.shared);
        Self { plan, owner, deck_number: None, deck: [0; DECK_CARDS] }
    }

    /// Op number `index`.
    pub(crate) fn op(&mut self, index: u64) -> HttpOp {
        let (number, position) = self.owner.deck_position(index, DECK_CARDS);
        if self.deck_number != Some(number) {
            self.fill_deck(number);
        }
        let card = self.deck[position];
        let key = rng::key(&[self.plan.seed, stream::DIRECTORY, self.owner.number, index]);
        let id = FileId {
            directory: rng::below(key, u64::from(self.plan.directories)) as u32,
            class: card / 16,
            k: card % 16,
        };
        // Clients are out of step, so that they do not all verify the same op.
        let verify_index =
            if self.plan.shared { index } else { index.wrapping_add(self.owner.number) };
        HttpOp {
            kind: OpKind(id.class),
            request: Request::File(id),
            method: self.plan.method,
            // A reply to HEAD has no content to compare.
            verify: self.plan.method == Method::GET
                && verify_index.is_multiple_of(u64::from(self.plan.verify_one_in)),
            key: 0,
        }
    }

    /// Classes are spread over the deck: card i of n lies at a random position within the i-th
    /// n-th, so that a part of a deck has the mix too. The choice of file is each client's own.
    fn fill_deck(&mut self, number: u64) {
        let plan = &self.plan;
        let order = rng::key(&[plan.seed, stream::DECK, self.owner.group, number]);
        let mut cards = [(0.0, 0u8); DECK_CARDS];
        let mut at = 0;
        for class in 0..CLASSES {
            let n = u64::from(plan.class_percent[usize::from(class)]);
            let parts = [plan.seed, stream::QUANTILE, self.owner.number, u64::from(class)];
            let own = rng::key(&parts);
            let step = (number & 0xffff_ffff) as f64 * GOLDEN;
            let u = (rng::unit(own) + step).fract();
            let first = at;
            for i in 0..n {
                let jitter = rng::unit(rng::key(&[order, u64::from(class), i]));
                cards[at].0 = (i as f64 + jitter) / n as f64;
                self.deck[at] = class * 16 + plan.file_at((i as f64 + u) / n as f64);
                at += 1;
            }
            rng::shuffle(&mut self.deck[first..at], rng::key(&[own, number]));
        }
        for (card, packed) in cards.iter_mut().zip(self.deck) {
            card.1 = packed;
        }
        cards.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.deck = cards.map(|(_, packed)| packed);
        self.deck_number = Some(number);
    }
}

impl Script for FileScript {
    type Op = HttpOp;

    fn next(&mut self, context: ScriptContext) -> Step<HttpOp> {
        Step::Issue(self.op(context.index))
    }
}

/// One entry of a weighted list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UrlCard {
    /// How it counts in the statistics.
    pub kind: OpKind,
    /// Its method.
    pub method: Method,
    /// Its share among the others, at least 1.
    pub weight: u32,
}

/// What the scripts of one load point share.
#[derive(Clone, Debug)]
pub(crate) struct UrlPlan {
    seed: u64,
    shared: bool,
    cards: Vec<UrlCard>,
    selection: UrlSelection,
    /// Some requests have random parts.
    is_drawn: bool,
    /// Clients hold their connections.
    long_lived: Option<LongLivedConnections>,
}

#[derive(Clone, Debug)]
enum UrlSelection {
    Only,
    /// Weights over their greatest common divisor.
    Deck(Vec<u32>),
    /// Running sums of the weights.
    Draw(Vec<u64>),
}

impl UrlPlan {
    /// A plan for a list of at least one URL.
    pub(crate) fn new(seed: u64, shared: bool, cards: Vec<UrlCard>) -> Self {
        let divisor = cards.iter().fold(0, |d, card| greatest_common_divisor(d, card.weight));
        let total: u64 = cards.iter().map(|card| u64::from(card.weight / divisor.max(1))).sum();
        let selection = if cards.len() == 1 {
            UrlSelection::Only
        } else if total <= URL_DECK_CARDS_MAX {
            let repeat = |(i, card): (usize, &UrlCard)| {
                std::iter::repeat_n(i as u32, (card.weight / divisor) as usize)
            };
            UrlSelection::Deck(cards.iter().enumerate().flat_map(repeat).collect())
        } else {
            let mut sum = 0;
            let add = |card: &UrlCard| {
                sum += u64::from(card.weight);
                sum
            };
            UrlSelection::Draw(cards.iter().map(add).collect())
        };
        Self { seed, shared, cards, selection, is_drawn: false, long_lived: None }
    }

    /// The same, whose requests have random parts if `is_drawn`.
    pub(crate) fn drawn(self, is_drawn: bool) -> Self {
        Self { is_drawn, ..self }
    }

    /// The same, whose clients keep their connections if `long_lived` is set.
    pub(crate) fn holding(self, long_lived: Option<LongLivedConnections>) -> Self {
        Self { long_lived, ..self }
    }

    /// Method of the first request of the list.
    pub(crate) fn first_method(&self) -> Method {
        self.cards.first().map(|card| card.method).unwrap_or_default()
    }

    /// URLs come from a deck that holds their weights exactly.
    pub(crate) fn uses_decks(&self) -> bool {
        !matches!(self.selection, UrlSelection::Draw(_))
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Script of `web-url`.
#[derive(Debug)]
pub(crate) struct UrlScript {
    plan: Arc<UrlPlan>,
    client: u32,
    owner: Owner,
    deck_number: Option<u64>,
    deck: Vec<u32>,
}

impl UrlScript {
    /// The script of one client.
    pub(crate) fn new(plan: Arc<UrlPlan>, client: u32) -> Self {
        let owner = Owner::new(client, plan.shared);
        Self { plan, client, owner, deck_number: None, deck: Vec::new() }
    }

    /// Op number `index`.
    pub(crate) fn op(&mut self, index: u64) -> HttpOp {
        let url = match &self.plan.selection {
            UrlSelection::Only => 0,
            UrlSelection::Deck(cards) => {
                let (number, position) = self.owner.deck_position(index, cards.len());
                if self.deck_number != Some(number) {
                    self.deck.clone_from(cards);
                    let parts = [self.plan.seed, stream::DECK, self.owner.group, number];
                    rng::shuffle(&mut self.deck, rng::key(&parts));
                    self.deck_number = Some(number);
                }
                self.deck[position]
            }
            UrlSelection::Draw(sums) => {
                let key = rng::key(&[self.plan.seed, stream::URL, self.owner.number, index]);
                let drawn = rng::below(key, sums.last().copied().unwrap_or(1));
                sums.partition_point(|sum| *sum <= drawn) as u32
            }
        };
        let card = self.plan.cards[url as usize];
        let key = match self.plan.is_drawn {
            true => rng::key(&[self.plan.seed, stream::PARTS, self.owner.number, index]),
            false => 0,
        };
        let UrlCard { kind, method, .. } = card;
        HttpOp { kind, request: Request::Url(url), method, verify: false, key }
    }
}

impl Script for UrlScript {
    type Op = HttpOp;

    fn next(&mut self, context: ScriptContext) -> Step<HttpOp> {
        let op = self.op(context.index);
        match &self.plan.long_lived {
            Some(long_lived) if context.index == 0 => long_lived.open(op, self.client, context.now),
            _ => Step::Issue(op),
        }
    }
}

/// The op that opens a long-lived connection: the first request of each client.
const OPENING: &str = "open";

/// How clients open the connections that they hold.
#[derive(Clone, Debug)]
pub(crate) struct LongLivedConnections {
    sessions: SessionsPlan,
    /// Kind of each client's first op.
    opening: OpKind,
}

impl LongLivedConnections {
    /// Adds the name of the op to `names`; `None` if connections are not long-lived.
    pub(crate) fn new(workload: &HttpWorkload, names: &mut Vec<String>) -> Option<Self> {
        let sessions = sessions(workload)?;
        names.push(OPENING.to_owned());
        // At most nine names are there before.
        Some(Self { sessions, opening: OpKind(names.len() as u8 - 1) })
    }

    /// The first request of a client, once its instant has come.
    pub(crate) fn open(&self, op: HttpOp, client: u32, now: Nanos) -> Step<HttpOp> {
        match self.sessions.start(client) {
            start if now < start => Step::SleepUntil(start),
            _ => Step::Issue(HttpOp { kind: self.opening, ..op }),
        }
    }
}

/// Of long-lived connections.
pub(crate) fn sessions(workload: &HttpWorkload) -> Option<SessionsPlan> {
    let starts_per_s = workload.opened_per_s?;
    Some(SessionsPlan { op: OPENING.to_owned(), starts_per_s })
}

/// A client keeps its own connection, and requests nothing before it is open. A user waits for each
/// reply; only sessions arrive.
pub(crate) fn check_load(suite: &Suite, workload: &HttpWorkload) -> Result<(), PlanError> {
    let unfit = |reason: &str| {
        Err(PlanError::Unfit { suite: suite.name.clone(), reason: reason.to_owned() })
    };
    match &suite.load {
        LoadSpec::Open { .. } if workload.opened_per_s.is_some() => unfit(
            "connections are held by the clients of a closed load; set load.mode to \"closed\"",
        ),
        load @ LoadSpec::Open { .. }
            if load.is_sessions() != (workload.requests == RequestSource::Journey) =>
        {
            unfit(
                "load.arrivals = \"sessions\" is for users and their journeys alone (suite \
                 web-users), and they have no other open load",
            )
        }
        LoadSpec::Closed { think, .. }
            if workload.requests == RequestSource::Journey && think.mean > Nanos::ZERO =>
        {
            unfit("think times are those of the journey's pages; leave load.think out")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
