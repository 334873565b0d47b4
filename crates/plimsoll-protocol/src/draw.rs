//! Draws that keep their shares even in a short run and with any number of clients.
//!
//! A draw depends only on the seed, the client and the number of its draws.
//!
//! - Ops and blocks are dealt from decks, one per client, so that even a part of a client's ops has
//!   the shares of the mix.
//! - Files come from sequences that all clients share: with `c` clients, the n-th draw of client
//!   `k` is number `n * c + k` of the sequence. So the files that all clients together draw are
//!   the same however many clients there are.
//!
//! Numbers that must be shared out evenly step through 0..1 by the golden ratio.

use plimsoll_engine::rng;

/// Cards of a deck, one per percent.
pub const CARDS: usize = 100;
/// Draws of a round of [`Strata`].
const STRATA: usize = 20;
/// 2^64 over the golden ratio: its multiples, modulo 2^64, lie evenly.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keeps the draws of different uses apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub u64);

/// Whose draws these are.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    /// Seed of the run.
    pub seed: u64,
    /// The client.
    pub client: u32,
    /// Clients of the load point.
    pub clients: u32,
}

impl Owner {
    /// Number of the owner's n-th draw in a sequence that all clients share.
    fn number(self, drawn: u64) -> u64 {
        drawn.wrapping_mul(self.clients.into()).wrapping_add(self.client.into())
    }

    /// Random bits for number `number` of a sequence.
    fn bits(self, stream: Stream, number: u64) -> u64 {
        rng::key(&[self.seed, stream.0, number])
    }

    /// Number `number` of a sequence that fills 0..1 evenly.
    fn even(self, stream: Stream, number: u64) -> f64 {
        let start = rng::key(&[self.seed, stream.0]);
        rng::unit(start.wrapping_add(number.wrapping_mul(GOLDEN)))
    }
}

/// Shares of a whole, to draw by.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Running sums; the last is 1.
    sums: Vec<f64>,
}

impl Weights {
    /// Weights with a positive sum, of which none is negative.
    pub fn new(weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let add = |weight: &f64| {
            sum += weight;
            sum / total
        };
        let mut sums: Vec<f64> = weights.iter().map(add).collect();
        if let Some(last) = sums.last_mut() {
            *last = 1.0;
        }
        Self { sums }
    }

    /// The part of all that one has.
    pub fn share(&self, index: usize) -> f64 {
        self.sums[index] - self.below(index)
    }

    /// The one at `quantile` (in 0..1).
    pub fn index_at(&self, quantile: f64) -> usize {
        self.sums.partition_point(|sum| *sum <= quantile).min(self.sums.len().saturating_sub(1))
    }

    /// The one at `quantile`, and how far into its share that is, in 0..1.
    pub fn within(&self, quantile: f64) -> (usize, f64) {
        let at = self.index_at(quantile);
        let below = self.below(at);
        let rest = (quantile - below) / (self.sums[at] - below);
        (at, rest.clamp(0.0, 1.0 - f64::EPSILON))
    }

    fn below(&self, index: usize) -> f64 {
        index.checked_sub(1).map_or(0.0, |before| self.sums[before])
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sums.len()
    }
}

/// Poisson(`mean`) truncated to 1, 2, … for as many as there are `weights`, and renormalised.
pub fn poisson(mean: f64, weights: &mut [f64]) {
    // Weights relative to k = 1; the factor exp(-mean) * mean cancels.
    let mut weight = 1.0;
    for (i, entry) in weights.iter_mut().enumerate() {
        *entry = weight;
        weight *= mean / (i as f64 + 2.0);
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
}

/// Deals by weights from decks of the owner's own: within a deck each count is rounded up or
/// down, over all decks of all clients the counts are those of the weights.
#[derive(Clone, Debug)]
pub struct OwnDeck {
    stream: Stream,
    drawn: u64,
    /// Number of the deck that `cards` are.
    round: Option<u64>,
    cards: [u8; CARDS],
}

impl OwnDeck {
    /// Nothing dealt yet.
    pub fn new(stream: impl Into<Stream>) -> Self {
        Self { stream: stream.into(), drawn: 0, round: None, cards: [0; CARDS] }
    }

    /// The next card: an index of `weights`, of which there are 256 at most.
    pub fn draw(&mut self, owner: Owner, weights: &Weights) -> usize {
        let card = self.card(owner, weights, self.drawn);
        self.drawn += 1;
        card
    }

    /// Card number `index`, whatever was dealt before: an index of `weights`.
    pub fn card(&mut self, owner: Owner, weights: &Weights, index: u64) -> usize {
        let (round, position) = round_and_position(index, CARDS);
        if self.round != Some(round) {
            self.round = Some(round);
            let number = owner.number(round);
            let shift = owner.even(self.stream, number);
            for (i, card) in self.cards.iter_mut().enumerate() {
                *card = weights.index_at((i as f64 + shift) / CARDS as f64) as u8;
            }
            spread(&mut self.cards, owner.bits(self.stream, number));
        }
        usize::from(self.cards[position])
    }
}

/// Deals whole percents from decks that all clients share; each begins at another card, so that
/// the clients together hold rare cards' shares before any has seen a whole deck.
#[derive(Clone, Debug)]
pub struct CommonDeck {
    stream: Stream,
    drawn: u64,
    cards: [u8; CARDS],
}

impl CommonDeck {
    /// Nothing dealt yet.
    pub fn new(stream: impl Into<Stream>) -> Self {
        Self { stream: stream.into(), drawn: 0, cards: [0; CARDS] }
    }

    /// The next card: an index of `percents`, which sum to [`CARDS`].
    pub fn draw(&mut self, owner: Owner, percents: &[u8]) -> usize {
        let (round, position) = round_and_position(self.drawn, CARDS);
        if position == 0 {
            let repeat = |(i, n): (usize, &u8)| std::iter::repeat_n(i as u8, usize::from(*n));
            let all = percents.iter().enumerate().flat_map(repeat);
            self.cards.iter_mut().zip(all).for_each(|(card, index)| *card = index);
            spread(&mut self.cards, owner.bits(self.stream, round));
        }
        self.drawn += 1;
        let cut = u64::from(owner.client) * CARDS as u64 / u64::from(owner.clients.max(1));
        usize::from(self.cards[(position + cut as usize) % CARDS])
    }
}

/// A sequence that all clients share: one of each twentieth of 0..1 in every twenty.
#[derive(Clone, Debug)]
pub struct Strata {
    stream: Stream,
    drawn: u64,
    round: Option<u64>,
    order: [u8; STRATA],
}

/// What [`Strata`] give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// In 0..1, filled evenly.
    pub quantile: f64,
    /// Further random bits.
    pub bits: u64,
}

impl Strata {
    /// Nothing drawn yet.
    pub fn new(stream: impl Into<Stream>) -> Self {
        Self { stream: stream.into(), drawn: 0, round: None, order: [0; STRATA] }
    }

    /// The owner's next.
    pub fn draw(&mut self, owner: Owner) -> Sample {
        let number = owner.number(self.drawn);
        let (round, position) = round_and_position(number, STRATA);
        if self.round != Some(round) {
            self.round = Some(round);
            self.order = std::array::from_fn(|i| i as u8);
            rng::shuffle(&mut self.order, !owner.bits(self.stream, round));
        }
        self.drawn += 1;
        let within = owner.even(self.stream, round);
        let quantile = (f64::from(self.order[position]) + within) / STRATA as f64;
        Sample { quantile, bits: owner.bits(self.stream, number) }
    }
}

impl Sample {
    /// A number in `0..bound`, independent of the quantile and the bits.
    pub fn below(self, bound: u32) -> u32 {
        rng::below(rng::key(&[self.bits]), u64::from(bound)) as u32
    }
}

fn round_and_position(drawn: u64, size: usize) -> (u64, usize) {
    (drawn / size as u64, (drawn % size as u64) as usize)
}

/// Card i of n alike goes to a random position within the i-th n-th of the deck, so that a part of
/// the deck has the shares of the whole. Cards alike lie together before.
fn spread(cards: &mut [u8; CARDS], key: u64) {
    let mut counts = [0u32; 1 << u8::BITS];
    cards.iter().for_each(|card| counts[usize::from(*card)] += 1);
    let mut keyed = [(0.0, 0u8); CARDS];
    let mut nth = 0;
    for (i, card) in cards.iter().enumerate() {
        let first = i == 0 || cards[i - 1] != *card;
        nth = if first { 0 } else { nth + 1 };
        let jitter = rng::unit(rng::key(&[key, i as u64]));
        let position = (f64::from(nth) + jitter) / f64::from(counts[usize::from(*card)]);
        keyed[i] = (position, *card);
    }
    keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    *cards = keyed.map(|(_, card)| card);
}

#[cfg(test)]
mod tests;
