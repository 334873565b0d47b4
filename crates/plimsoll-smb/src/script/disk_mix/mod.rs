//! The `disk-mix` pattern: a statistical model of desktop applications on a file server.
//!
//! A client goes through application sessions, in a fixed order or in one that it shuffles anew for
//! each pass, and reads a seed file between them. Each session plays a deck of cards with the
//! shares of the mix; a card that cannot be played yet (a read before anything is open) waits until
//! it can. A session closes what it opens and removes what it makes, so that the next begins with
//! the same files.
//!
//! The differences between the method's sessions were never published. By the model alone each has
//! the whole mix and a document of its own; with `workload.model.applications` each has a script of
//! its own.
//!
//! Every status is known beforehand: no client opens a file twice at a time, seed files are never
//! removed and written only with what they hold, made files are removed and renamed when they are
//! closed, and names that must be missing are never created. So are the bytes: reads stay within
//! what was written. Clients that write to a shared file write what it has already, in any order,
//! and each locks a record that no other client locks or writes to.

mod files;
mod metadata;

#[cfg(test)]
pub(super) use metadata::RECORDS_AT;

use std::sync::Arc;

use plimsoll_engine::interface::{Script, ScriptContext, Step, Ticket};
use plimsoll_model::outcome::Outcome;
use plimsoll_model::units::Nanos;

use super::ScriptPlan;
use super::cards::{Card, Deck, PerCard};
use crate::op::{HandleNo, SmbCall};
use crate::parameters::SessionOrder;
use crate::script::applications::Application;
use crate::workspace::Home;
use files::{Files, Open};
use plimsoll_engine::rng;
use plimsoll_protocol::draw::{GOLDEN, Owner, Strata, Stream};

/// A staggered client begins its first session here at the latest.
const FIRST_BEGIN_MAX: f64 = 0.8;

/// Streams of what all clients draw together.
const READ_SIZE: Stream = Stream(0x300);
const WRITE_SIZE: Stream = Stream(0x301);
const OPEN_SHARED: Stream = Stream(0x302);
const READ_BETWEEN_SHARED: Stream = Stream(0x303);
/// Keeps what a client decides by itself apart from those.
const OWN_STREAM: u64 = 0x310;

/// The script of one client.
#[derive(Debug)]
pub(super) struct DiskMix {
    plan: Arc<ScriptPlan>,
    owner: Owner,
    files: Files,
    deck: Deck,
    part: Part,
    /// Application sessions begun.
    sessions: u64,
    /// Which of a pass the last one is.
    session_index: usize,
    /// The think time before the next session is over.
    thought: bool,
    in_flight: bool,
    ops: u64,
    reads: u64,
    draws: Draws,
    quotas: Quotas,
}

/// What the deck is of.
#[derive(Debug)]
enum Part {
    /// An application session; the cards of the seed file after it.
    Session { between: PerCard<u32> },
    /// A seed file read between sessions.
    Between,
}

#[derive(Debug)]
struct Draws {
    read_size: Strata,
    write_size: Strata,
    open_shared: Strata,
    between_shared: Strata,
}

#[derive(Debug)]
struct Quotas {
    sequential_reads: Quota,
    sequential_writes: Quota,
    shared_reads: Quota,
    shared_writes: Quota,
}

/// Keeps a share as well as whole numbers can; missed ones are made up for later.
#[derive(Debug)]
struct Quota {
    percent: f64,
    owed: f64,
}

impl Quota {
    fn new(percent: f64, key: u64) -> Self {
        Self { percent, owed: rng::unit(key) - 0.5 }
    }

    /// Counts one more of the whole; returns whether it should be one of the share.
    fn wants(&mut self) -> bool {
        self.owed += self.percent / 100.0;
        self.is_owed()
    }

    fn is_owed(&self) -> bool {
        self.owed >= 0.5
    }

    /// It was.
    fn take(&mut self) {
        self.owed -= 1.0;
    }
}

impl DiskMix {
    /// The script of `client`, one of the plan's.
    pub(super) fn new(plan: Arc<ScriptPlan>, client: u32) -> Self {
        let owner = Owner { seed: plan.seed, client, clients: plan.clients };
        let key = |n| rng::key(&[plan.seed, OWN_STREAM, u64::from(client), n]);
        let model = &plan.workload.model;
        Self {
            owner,
            files: Files::new(model.handles_open_max),
            deck: Deck::empty(),
            part: Part::Between,
            sessions: 0,
            session_index: 0,
            thought: false,
            in_flight: false,
            ops: 0,
            // Clients are out of step, so that they do not all verify at once.
            reads: u64::from(client),
            draws: Draws {
                read_size: Strata::new(READ_SIZE),
                write_size: Strata::new(WRITE_SIZE),
                open_shared: Strata::new(OPEN_SHARED),
                between_shared: Strata::new(READ_BETWEEN_SHARED),
            },
            quotas: Quotas {
                sequential_reads: Quota::new(model.sequential_read_percent, key(0)),
                sequential_writes: Quota::new(model.sequential_write_percent, key(1)),
                shared_reads: Quota::new(plan.workload.shared_percent, key(2)),
                shared_writes: Quota::new(plan.workload.shared_write_percent, key(3)),
            },
            plan,
        }
    }

    fn home(&self) -> Home {
        Home::Client(self.owner.client)
    }

    /// Random bits of this op and use.
    fn bits(&self, nth: u64) -> u64 {
        let client = u64::from(self.owner.client);
        rng::key(&[self.owner.seed, OWN_STREAM + 1, client, self.ops, nth])
    }

    /// A number in `0..bound` of this op and use.
    fn below(&self, nth: u64, bound: u32) -> u32 {
        rng::below(self.bits(nth), u64::from(bound)) as u32
    }

    /// What this session plays.
    fn application(&self) -> &Application {
        self.plan.desktop.session(self.session_index)
    }

    /// The pass of session `number`, and which of its application sessions that is.
    fn progress(&self, number: u64) -> (u64, usize) {
        let model = &self.plan.workload.model;
        let first = if model.stagger { u64::from(self.owner.client) } else { 0 };
        let (number, sessions) = (first + number, u64::from(model.sessions));
        let (pass, at) = (number / sessions, (number % sessions) as usize);
        match model.order {
            SessionOrder::Fixed => (pass, at),
            SessionOrder::Random => (pass, self.shuffled(pass)[at]),
        }
    }

    /// The applications in the order of one of this client's passes.
    fn shuffled(&self, pass: u64) -> Vec<usize> {
        let client = u64::from(self.owner.client);
        let sort_key = |application: &usize| {
            rng::key(&[self.owner.seed, OWN_STREAM + 4, client, pass, *application as u64])
        };
        let sessions = self.plan.workload.model.sessions as usize;
        let mut order: Vec<usize> = (0..sessions).collect();
        order.sort_by_key(sort_key);
        order
    }

    /// Where seed files are looked up by name: the client's own directory or the shared one.
    fn lookup_home(&self) -> Home {
        let shared = self.plan.workload.shared_percent;
        if rng::unit(self.bits(6)) * 100.0 < shared { Home::Shared } else { self.home() }
    }

    fn begin_session(&mut self) {
        let client = u64::from(self.owner.client);
        let key = rng::key(&[self.owner.seed, OWN_STREAM + 2, client]);
        let first = self.sessions == 0 && self.plan.workload.model.stagger;
        let begin = if first { FIRST_BEGIN_MAX * even(client, self.owner.seed) } else { 0.0 };
        let number = self.sessions;
        let (pass, session_index) = self.progress(number);
        (self.sessions, self.session_index) = (number + 1, session_index);
        // Rounding carries over to the next session of the same application.
        let (nth, own_key) = match self.plan.desktop.distinct {
            true => (pass, rng::key(&[key, session_index as u64])),
            false => (number, key),
        };
        let application = self.application();
        let (main, between) = application.cards.of_session(nth, begin, own_key);
        let percents = (application.sequential_read_percent, application.sequential_write_percent);
        (self.quotas.sequential_reads.percent, self.quotas.sequential_writes.percent) = percents;
        self.deck.fill(main, rng::key(&[key, number]));
        self.part = Part::Session { between };
    }

    /// Begins the seed file after a session; false when there is none.
    fn begin_between(&mut self) -> bool {
        let Part::Session { between } = self.part else { return false };
        self.part = Part::Between;
        self.deck.fill(between, self.bits(0));
        !self.deck.is_empty()
    }

    fn draw_card(&mut self) -> Card {
        let seed_files = self.application().files.len();
        let Self { deck, files, part, plan, .. } = self;
        let between = matches!(part, Part::Between);
        let readable = match plan.workload.shared_percent >= 50.0 {
            _ if between => files.open().next().is_some(),
            true => files.shared_document.is_some(),
            false => files.document.is_some(),
        };
        let seeds = files.open().filter(|(_, open)| !open.is_made()).count();
        let has_room = files.free().is_some();
        let has_closed = seeds + 1 < seed_files;
        let many = files.open().count() > plan.workload.model.handles_kept as usize;
        let made_closed = files.made_closed().next().is_some();
        let playable = |card, left: &PerCard<u32>| match card {
            Card::Read => readable,
            Card::Write => files.made_open() > 0,
            Card::OpenExisting => has_room && has_closed,
            Card::OpenNew => has_room,
            Card::Close => {
                let opens = left[Card::OpenExisting] + left[Card::OpenNew];
                (many || opens == 0) && closable(files, left).next().is_some()
            }
            Card::QueryFile => files.open().next().is_some(),
            Card::SetFile | Card::Flush => files.own().next().is_some(),
            Card::Rename => made_closed,
            Card::Lock => files.document.is_some() && files.locked.is_none(),
            Card::Unlock => files.locked.is_some(),
            // What is left must suffice for the renames.
            Card::Unlink => {
                let spare = files.made().len() > 1 || left[Card::OpenNew] > 0;
                made_closed && (left[Card::Rename] == 0 || spare)
            }
            Card::OpenMissing
            | Card::QueryPath
            | Card::QueryMissing
            | Card::FindMatch
            | Card::FindNone
            | Card::QueryFs => true,
        };
        deck.draw(playable).expect("opens go on until there is room to read, write and close")
    }

    fn play(&mut self, card: Card) -> SmbCall {
        match card {
            Card::Read => self.read(),
            Card::Write => self.write(),
            Card::OpenExisting => self.open_existing(),
            Card::OpenMissing => self.open_missing(),
            Card::OpenNew => self.open_new(),
            Card::Close => self.close(),
            Card::QueryPath => self.query_path(),
            Card::QueryMissing => self.query_missing(),
            Card::FindMatch => self.find_match(),
            Card::FindNone => self.find_none(),
            Card::QueryFs => self.query_fs(),
            Card::QueryFile => self.query_file(),
            Card::SetFile => self.set_file(),
            Card::Flush => self.flush(),
            Card::Rename => self.rename(),
            Card::Lock => self.lock(),
            Card::Unlock => self.unlock(),
            Card::Unlink => self.unlink(),
        }
    }
}

/// Handles that are not needed any more: documents stay open for ops that need an open file, the
/// last made file for writes. Only documents are locked.
fn closable<'d>(
    files: &'d Files,
    left: &PerCard<u32>,
) -> impl Iterator<Item = HandleNo> + Clone + 'd {
    let documents_stay = left.at_hand() > 0;
    let made_stay = left[Card::Write] > 0 && files.made_open() == 1;
    let closable = move |(handle, open): (HandleNo, &Open)| {
        let document = [files.document, files.shared_document].contains(&Some(handle));
        let stays = (document && documents_stay) || (open.is_made() && made_stay);
        (!stays).then_some(handle)
    };
    files.open().filter_map(closable)
}

/// Number `number` of a sequence that fills 0..1 evenly.
fn even(number: u64, seed: u64) -> f64 {
    let start = rng::key(&[seed, OWN_STREAM + 3]);
    rng::unit(start.wrapping_add(number.wrapping_mul(GOLDEN)))
}

/// One of the candidates, all equally likely.
fn pick<T>(candidates: impl Iterator<Item = T> + Clone, bits: u64) -> Option<T> {
    let count = candidates.clone().count() as u64;
    candidates.into_iter().nth(rng::below(bits, count) as usize)
}

impl Script for DiskMix {
    type Op = SmbCall;

    /// An application session is.
    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _context: ScriptContext) -> Step<SmbCall> {
        if self.in_flight {
            return Step::WaitForOutcome;
        }
        if self.deck.is_empty() && !self.begin_between() {
            self.thought = !self.thought;
            if self.thought {
                return Step::Think;
            }
            self.begin_session();
        }
        let card = self.draw_card();
        let call = self.play(card);
        self.ops += 1;
        Step::Issue(call)
    }

    fn on_issued(&mut self, _ticket: Ticket) {
        self.in_flight = true;
    }

    fn on_outcome(&mut self, _ticket: Ticket, _outcome: &Outcome, _now: Nanos) {
        self.in_flight = false;
    }
}
