//! Which op comes when: cards dealt from a deck that an application session plays to its end.

use crate::op::SmbKind;
use crate::parameters::DiskMixModel;
use plimsoll_engine::rng;

/// What may come next: an op, and for some its expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Card {
    Read,
    Write,
    OpenExisting,
    OpenMissing,
    OpenNew,
    Close,
    QueryPath,
    QueryMissing,
    FindMatch,
    FindNone,
    QueryFs,
    QueryFile,
    SetFile,
    Flush,
    Rename,
    Lock,
    Unlock,
    Unlink,
}

impl Card {
    pub(crate) const ALL: [Self; 18] = [
        Self::Read,
        Self::Write,
        Self::OpenExisting,
        Self::OpenMissing,
        Self::OpenNew,
        Self::Close,
        Self::QueryPath,
        Self::QueryMissing,
        Self::FindMatch,
        Self::FindNone,
        Self::QueryFs,
        Self::QueryFile,
        Self::SetFile,
        Self::Flush,
        Self::Rename,
        Self::Lock,
        Self::Unlock,
        Self::Unlink,
    ];

    /// Cards that need an open file.
    const AT_HAND: [Self; 7] = [
        Self::Read,
        Self::Write,
        Self::QueryFile,
        Self::SetFile,
        Self::Flush,
        Self::Lock,
        Self::Unlock,
    ];
}

/// Cards of each kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerCard<T>([T; Card::ALL.len()]);

impl<T> std::ops::Index<Card> for PerCard<T> {
    type Output = T;
    fn index(&self, card: Card) -> &T {
        &self.0[card as usize]
    }
}

impl<T> std::ops::IndexMut<Card> for PerCard<T> {
    fn index_mut(&mut self, card: Card) -> &mut T {
        &mut self.0[card as usize]
    }
}

impl PerCard<u32> {
    const NONE: Self = Self([0; Card::ALL.len()]);

    /// Cards that need an open file.
    pub(crate) fn at_hand(&self) -> u32 {
        Card::AT_HAND.iter().map(|card| self[*card]).sum()
    }
}

/// How many cards of each kind an application session has on average.
#[derive(Clone, Debug)]
pub(crate) struct CardShares {
    expected: PerCard<f64>,
    reads_between: u32,
    /// Every session opens a shared document too.
    shared: bool,
}

impl CardShares {
    pub(crate) fn new(model: &DiskMixModel, shared_percent: f64) -> Self {
        let shares = model.shares();
        let ops = f64::from(model.ops_per_pass) / f64::from(model.sessions);
        let of = |kind: SmbKind| shares[kind as usize] * ops;
        let part = |percent: f64| percent / 100.0;
        let missing = part(model.missing_create_percent);
        let existing = part(model.open_existing_percent);
        let expected = |card| match card {
            Card::Read => of(SmbKind::Read),
            Card::Write => of(SmbKind::Write),
            Card::OpenExisting => of(SmbKind::Create) * (existing - missing),
            Card::OpenMissing => of(SmbKind::Create) * missing,
            Card::OpenNew => of(SmbKind::Create) * (1.0 - existing),
            Card::QueryPath => of(SmbKind::QueryPath) * (1.0 - part(model.missing_query_percent)),
            Card::QueryMissing => of(SmbKind::QueryPath) * part(model.missing_query_percent),
            Card::FindMatch => of(SmbKind::Find) * (1.0 - part(model.missing_find_percent)),
            Card::FindNone => of(SmbKind::Find) * part(model.missing_find_percent),
            Card::QueryFs => of(SmbKind::QueryFs),
            Card::QueryFile => of(SmbKind::QueryFile),
            Card::SetFile => of(SmbKind::SetFile),
            Card::Flush => of(SmbKind::Flush),
            Card::Rename => of(SmbKind::Rename),
            Card::Lock => of(SmbKind::Lock),
            // As many as there are to close, to unlock and to remove.
            Card::Close | Card::Unlock | Card::Unlink => 0.0,
        };
        Self {
            expected: PerCard(Card::ALL.map(expected)),
            reads_between: model.reads_between,
            shared: shared_percent > 0.0,
        }
    }

    /// The cards of a client's application session number `session`, from `begin` (in 0..1) on, and
    /// those of the seed file that is read after it. Rounded so that the counts are as expected
    /// over many sessions and many clients.
    pub(crate) fn of_session(
        &self,
        session: u64,
        begin: f64,
        key: u64,
    ) -> (PerCard<u32>, PerCard<u32>) {
        let mut main = PerCard::NONE;
        for card in Card::ALL {
            let shift = rng::unit(rng::key(&[key, card as u64]));
            let until = |n: f64| n.mul_add(self.expected[card], shift).floor();
            let session = session as f64;
            main[card] = (until(session + 1.0) - until(session + begin)) as u32;
        }
        let mut between = PerCard::NONE;
        if self.reads_between > 0 {
            between[Card::Read] = self.reads_between.min(main[Card::Read]);
            between[Card::OpenExisting] = 1;
            between[Card::Close] = 1;
            main[Card::Read] -= between[Card::Read];
            main[Card::OpenExisting] = main[Card::OpenExisting].saturating_sub(1);
        }
        // Without a document there is nothing to read, without a new file nothing to rename.
        let documents = if self.shared { 2 } else { 1 };
        main[Card::OpenExisting] = main[Card::OpenExisting].max(documents);
        main[Card::OpenNew] = main[Card::OpenNew].max(1);
        main[Card::Close] = main[Card::OpenExisting] + main[Card::OpenNew];
        main[Card::Unlock] = main[Card::Lock];
        main[Card::Unlink] = main[Card::OpenNew];
        (main, between)
    }
}

/// Cards in the order in which they should come.
#[derive(Debug)]
pub(super) struct Deck {
    cards: Vec<Card>,
    at: usize,
    left: PerCard<u32>,
}

impl Deck {
    /// No card left.
    pub(super) fn empty() -> Self {
        Self { cards: Vec::new(), at: 0, left: PerCard::NONE }
    }

    /// Card i of n alike goes to a random position within the i-th n-th of the deck, so that a part
    /// of the deck has the shares of the whole.
    pub(super) fn fill(&mut self, counts: PerCard<u32>, key: u64) {
        let positions = |card: Card| {
            let n = counts[card];
            (0..n).map(move |i| {
                let jitter = rng::unit(rng::key(&[key, card as u64, u64::from(i)]));
                ((f64::from(i) + jitter) / f64::from(n), card)
            })
        };
        let mut keyed: Vec<(f64, Card)> = Card::ALL.into_iter().flat_map(positions).collect();
        keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.cards.clear();
        self.cards.extend(keyed.iter().map(|(_, card)| *card));
        self.at = 0;
        self.left = counts;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.cards.len()
    }

    /// Cards that have not been dealt.
    pub(super) fn left(&self) -> &PerCard<u32> {
        &self.left
    }

    /// The first card that can be played; those before it stay first in line.
    pub(super) fn draw(&mut self, playable: impl Fn(Card, &PerCard<u32>) -> bool) -> Option<Card> {
        let waiting = &self.cards[self.at..];
        let index = waiting.iter().position(|card| playable(*card, &self.left))?;
        self.cards[self.at..=self.at + index].rotate_right(1);
        let card = self.cards[self.at];
        self.at += 1;
        self.left[card] -= 1;
        Some(card)
    }
}
