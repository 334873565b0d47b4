//! What a client asks for next. Op n depends on the seed, the client and n only.
//!
//! - `file_set`: each client deals from decks of 100 cards with exactly the method's class
//!   shares. Within a deck the classes are spread out, a hundred clients share the order of
//!   classes, and each begins at another card, so that clients who do ten ops each hold the mix
//!   together. Files within a class are apportioned over the deck by systematic sampling: the
//!   quantiles `(i + u) / n` of the Poisson weights, where `u` steps by the golden ratio from deck
//!   to deck, so that short runs hold the mix. Directories are uniform.
//! - `urls`: clients deal from a deck by weight, or, when the weights would need a large deck,
//!   draw by weight.
//!
//! With a shared schedule the schedule's index takes the place of the client's count.

use std::sync::Arc;

use plimsoll_engine::seam::{Script, Step, Turn};
use plimsoll_model::outcome::OpKind;

use super::fileset::{CLASSES, FILES_PER_CLASS, FileId};
use super::held::Held;
use super::site::{HttpOp, Request};
use super::wire::request::Method;
use plimsoll_engine::rng;

/// Cards of a deck: one per percent.
pub(crate) const DECK_CARDS: usize = 100;
/// Largest deck of URLs; lists that need more are drawn, not dealt.
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

/// Whose ops a script numbers, and where its decks begin.
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

    /// Number of the deck that op `index` comes from, and its place there.
    fn place(self, index: u64, cards: usize) -> (u64, usize) {
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
    /// The index of a turn is that of a schedule all clients share.
    pub shared: bool,
}

impl FilePlan {
    /// The file, 1 to 9, at a quantile of the distribution within a class.
    fn file_at(&self, quantile: f64) -> u8 {
        let below = self.cumulative.iter().filter(|sum| **sum <= quantile).count() as u8;
        (below + 1).min(FILES_PER_CLASS)
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
        let (number, place) = self.owner.place(index, DECK_CARDS);
        if self.deck_number != Some(number) {
            self.fill_deck(number);
        }
        let card = self.deck[place];
        let key = rng::key(&[self.plan.seed, stream::DIRECTORY, self.owner.number, index]);
        let id = FileId {
            directory: rng::below(key, u64::from(self.plan.directories)) as u32,
            class: card / 16,
            k: card % 16,
        };
        // Clients are out of step, so that they do not all verify the same op.
        let turn = if self.plan.shared { index } else { index.wrapping_add(self.owner.number) };
        HttpOp {
            kind: OpKind(id.class),
            request: Request::File(id),
            method: self.plan.method,
            // A reply to HEAD has no content to compare.
            verify: self.plan.method == Method::GET
                && turn.is_multiple_of(u64::from(self.plan.verify_one_in)),
            key: 0,
        }
    }

    /// Classes are spread over the deck: card i of n lies at a random place within the i-th n-th,
    /// so that a part of a deck holds the mix too. Which file it is, is the client's own.
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

    fn next(&mut self, turn: Turn) -> Step<HttpOp> {
        Step::Issue(self.op(turn.index))
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
    deal: Deal,
    /// Some requests have random parts.
    is_drawn: bool,
    /// Clients hold their connections.
    held: Option<Held>,
}

#[derive(Clone, Debug)]
enum Deal {
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
        let deal = if cards.len() == 1 {
            Deal::Only
        } else if total <= URL_DECK_CARDS_MAX {
            let repeat = |(i, card): (usize, &UrlCard)| {
                std::iter::repeat_n(i as u32, (card.weight / divisor) as usize)
            };
            Deal::Deck(cards.iter().enumerate().flat_map(repeat).collect())
        } else {
            let mut sum = 0;
            let add = |card: &UrlCard| {
                sum += u64::from(card.weight);
                sum
            };
            Deal::Draw(cards.iter().map(add).collect())
        };
        Self { seed, shared, cards, deal, is_drawn: false, held: None }
    }

    /// The same, whose requests have random parts if `is_drawn`.
    pub(crate) fn drawn(self, is_drawn: bool) -> Self {
        Self { is_drawn, ..self }
    }

    /// The same, whose clients hold their connections if `held`.
    pub(crate) fn holding(self, held: Option<Held>) -> Self {
        Self { held, ..self }
    }

    /// Method of the first request of the list.
    pub(crate) fn first_method(&self) -> Method {
        self.cards.first().map(|card| card.method).unwrap_or_default()
    }

    /// URLs come from a deck that holds their weights exactly.
    pub(crate) fn is_dealt(&self) -> bool {
        !matches!(self.deal, Deal::Draw(_))
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
        let url = match &self.plan.deal {
            Deal::Only => 0,
            Deal::Deck(cards) => {
                let (number, place) = self.owner.place(index, cards.len());
                if self.deck_number != Some(number) {
                    self.deck.clone_from(cards);
                    let parts = [self.plan.seed, stream::DECK, self.owner.group, number];
                    rng::shuffle(&mut self.deck, rng::key(&parts));
                    self.deck_number = Some(number);
                }
                self.deck[place]
            }
            Deal::Draw(sums) => {
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

    fn next(&mut self, turn: Turn) -> Step<HttpOp> {
        let op = self.op(turn.index);
        match &self.plan.held {
            Some(held) if turn.index == 0 => held.open(op, self.client, turn.now),
            _ => Step::Issue(op),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_plan(shared: bool) -> Arc<FilePlan> {
        Arc::new(FilePlan {
            seed: 11,
            class_percent: [35, 50, 14, 1],
            cumulative: cumulative(poisson_weights(5.0)),
            directories: 44,
            verify_one_in: 64,
            method: Method::GET,
            shared,
        })
    }

    fn file(op: HttpOp) -> FileId {
        match op.request {
            Request::File(id) => id,
            Request::Url(_) => panic!("not a file"),
        }
    }

    #[test]
    fn weights_within_a_class_are_those_of_the_method() {
        let percent = poisson_weights(5.0).map(|w| (w * 1000.0).round() / 10.0);
        assert_eq!(percent, [3.5, 8.8, 14.6, 18.3, 18.3, 15.2, 10.9, 6.8, 3.8]);
        let shares = [0.35, 0.5, 0.14, 0.01];
        let mean: f64 = (0..4u8)
            .flat_map(|class| (1..=9u8).map(move |k| (class, k)))
            .map(|(class, k)| {
                let bytes = FileId { directory: 0, class, k }.bytes() as f64;
                shares[usize::from(class)] * poisson_weights(5.0)[usize::from(k) - 1] * bytes
            })
            .sum();
        assert_eq!(mean.round(), 14_566.0);
    }

    #[test]
    fn every_deck_of_every_client_holds_exactly_the_class_shares() {
        for client in 0..20 {
            let mut script = FileScript::new(file_plan(false), client);
            for deck in 0..10 {
                let mut counts = [0; 4];
                for i in 0..100 {
                    counts[usize::from(file(script.op(deck * 100 + i)).class)] += 1;
                }
                assert_eq!(counts, [35, 50, 14, 1]);
            }
        }
    }

    #[test]
    fn clients_with_a_few_ops_each_hold_the_mix_together() {
        for first in [0, 37, 95, 1_000] {
            let mut counts = [0u32; 4];
            for client in 0..64 {
                let mut script = FileScript::new(file_plan(false), client);
                // As uneven as independent schedules are.
                for index in first..first + 7 + u64::from(client % 7) {
                    counts[usize::from(file(script.op(index)).class)] += 1;
                }
            }
            let n = f64::from(counts.iter().sum::<u32>());
            for (count, share) in counts.iter().zip([0.35, 0.5, 0.14, 0.01]) {
                let off = (f64::from(*count) / n - share).abs();
                assert!(off < 0.01, "{counts:?} from {first}");
            }
        }
    }

    #[test]
    fn files_within_a_class_are_apportioned_even_in_a_short_run() {
        let mut counts = [0u32; 9];
        for client in 0..64 {
            let mut script = FileScript::new(file_plan(false), client);
            for index in 0..300 {
                let id = file(script.op(index));
                if id.class == 1 {
                    counts[usize::from(id.k) - 1] += 1;
                }
            }
        }
        let n: u32 = counts.iter().sum();
        for (count, weight) in counts.iter().zip(poisson_weights(5.0)) {
            let share = f64::from(*count) / f64::from(n);
            assert!((share - weight).abs() < 0.005, "{share} for {weight}");
        }
    }

    #[test]
    fn an_op_depends_on_its_index_and_not_on_the_order_of_asking() {
        let ops = |script: &mut FileScript, order: &[u64]| -> Vec<(u64, HttpOp)> {
            let mut ops: Vec<_> = order.iter().map(|i| (*i, script.op(*i))).collect();
            ops.sort_by_key(|(i, _)| *i);
            ops
        };
        let mut forward = FileScript::new(file_plan(true), 0);
        let mut other_client = FileScript::new(file_plan(true), 5);
        assert_eq!(
            ops(&mut forward, &[0, 1, 150, 151, 900]),
            ops(&mut other_client, &[900, 1, 151, 0, 150])
        );
        let mut own = FileScript::new(file_plan(false), 5);
        assert_ne!(ops(&mut own, &[0, 1, 2, 3, 4, 5]), ops(&mut forward, &[0, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn directories_are_drawn_evenly() {
        let mut script = FileScript::new(file_plan(true), 0);
        let mut counts = [0; 44];
        for index in 0..44_000 {
            counts[file(script.op(index)).directory as usize] += 1;
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
    }

    #[test]
    fn one_reply_in_n_is_verified_and_clients_are_out_of_step() {
        let mut verified = [0; 64];
        for client in 0..4 {
            let mut script = FileScript::new(file_plan(false), client);
            for index in 0..64 {
                verified[index as usize] += u32::from(script.op(index).verify);
            }
        }
        assert_eq!(verified.iter().sum::<u32>(), 4);
        assert!(verified.iter().all(|n| *n <= 1));
    }

    fn url_plan(weights: &[u32]) -> UrlPlan {
        let card = |(i, w): (usize, &u32)| UrlCard {
            kind: OpKind(i as u8),
            method: Method::GET,
            weight: *w,
        };
        UrlPlan::new(3, true, weights.iter().enumerate().map(card).collect())
    }

    #[test]
    fn urls_come_exactly_by_weight_from_each_deck() {
        let plan = url_plan(&[200, 100, 700]);
        assert!(plan.is_dealt());
        let mut script = UrlScript::new(Arc::new(plan), 0);
        let mut counts = [0; 3];
        for index in 0..10 {
            counts[usize::from(script.op(index).kind.0)] += 1;
        }
        assert_eq!(counts, [2, 1, 7]);
    }

    #[test]
    fn weights_too_fine_for_a_deck_are_drawn() {
        let plan = url_plan(&[1, 9_999]);
        assert!(!plan.is_dealt());
        let mut script = UrlScript::new(Arc::new(plan), 0);
        let rare = (0..100_000).filter(|i| script.op(*i).kind == OpKind(0)).count();
        assert!((1..40).contains(&rare), "{rare}");
    }
}
