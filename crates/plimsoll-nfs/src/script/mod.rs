//! Chooses a client's next request.
//!
//! The weights of the mix are shares of RPCs. Ops are drawn; a draw of several blocks continues
//! with follow-ons, which the session requests itself. Files are drawn from the whole accessed
//! tenth by every client alike, so that neither the files touched nor their popularity depend on
//! the number of clients. Only what changes a size or a name is divided among the clients: appends,
//! and names that are created and removed.

mod owned;
mod plan;

use std::sync::Arc;

use plimsoll_engine::interface::{Script, ScriptContext, Step, Ticket};
use plimsoll_model::outcome::{OpKind, Outcome};
use plimsoll_model::units::Nanos;
use plimsoll_protocol::draw::{CommonDeck, OwnDeck, Owner, Sample, Strata, Stream};

use self::owned::{Appends, OwnFile, SlotChange, Slots};
use super::fileset::{BLOCK_BYTES, class_of_kib, class_of_read};
use super::op::{Accessed, DirNo, LinkNo, NfsCall, NfsOp, Span, Verify};
use super::parameters::{MixOp, READ_BLOCKS, WRITE_BLOCKS};

pub use self::plan::{ScriptError, ScriptPlan};

const BLOCK_KIB: u32 = BLOCK_BYTES / 1_024;

/// The script of one client.
#[derive(Debug)]
pub struct NfsScript {
    plan: Arc<ScriptPlan>,
    owner: Owner,
    draws: Draws,
    appends: Appends,
    slots: Slots,
    last_written: Accessed,
    /// Drawn, but it may not start yet.
    kept: Option<Drawn>,
    /// Handed out; its ticket comes next.
    issuing: Option<Flight>,
    /// In flight, by ticket.
    flights: Vec<Option<Flight>>,
    in_flight: InFlight,
    /// Ended last; a follow-on is of its kind.
    ended: Option<Flight>,
}

/// How often the client drew what.
#[derive(Debug)]
struct Draws {
    kind: OwnDeck,
    read_blocks: CommonDeck,
    write_blocks: CommonDeck,
    append: Strata,
    append_to: Strata,
    named: Strata,
    dir_or_link: Strata,
    part_of_block: Strata,
    read: [Strata; READ_BLOCKS.len()],
    overwrite: [Strata; WRITE_BLOCKS.len()],
    reads: u64,
}

#[derive(Debug)]
struct Drawn {
    kind: OpKind,
    request: OpRequest,
}

/// An op as drawn. What it applies to is chosen when it starts.
#[derive(Debug)]
enum OpRequest {
    Call(NfsCall),
    Append { to: OwnFile, bytes: u32, blocks_left: u32 },
    Create,
    Remove,
    Commit,
}

/// What the script keeps about an op in flight.
#[derive(Clone, Copy, Debug)]
enum Flight {
    Read,
    Write,
    Slot(SlotChange),
    Other,
}

#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    all: u32,
    reads: u32,
    writes: u32,
}

impl NfsScript {
    /// The script of `client`, one of the plan's.
    pub fn new(plan: Arc<ScriptPlan>, client: u32) -> Self {
        let owner = Owner { seed: plan.seed, client, clients: plan.clients };
        let accessed = plan.files.accessed();
        let appends = Appends::new(owner, accessed, plan.workload.access_groups);
        Self {
            owner,
            draws: Draws::new(),
            slots: Slots::new(owner, plan.files.slots()),
            last_written: appends.any().unwrap_or(Accessed(0)),
            appends,
            kept: None,
            issuing: None,
            flights: Vec::new(),
            in_flight: InFlight::default(),
            ended: None,
            plan,
        }
    }

    fn draw(&mut self) -> Drawn {
        let kind = self.draws.kind.draw(self.owner, &self.plan.kinds);
        let files = self.plan.files;
        let request = match self.plan.ops[kind] {
            MixOp::Read => OpRequest::Call(self.read()),
            MixOp::Write => self.write(),
            MixOp::Create => OpRequest::Create,
            MixOp::Remove => OpRequest::Remove,
            MixOp::Commit => OpRequest::Commit,
            MixOp::Lookup => OpRequest::Call(NfsCall::Lookup(self.named())),
            MixOp::GetAttr => OpRequest::Call(NfsCall::GetAttr(self.named())),
            MixOp::SetAttr => OpRequest::Call(NfsCall::SetAttr(self.named())),
            MixOp::Access => OpRequest::Call(NfsCall::Access(self.named())),
            MixOp::FsStat => OpRequest::Call(NfsCall::FsStat),
            MixOp::ReadLink => {
                OpRequest::Call(NfsCall::ReadLink(LinkNo(self.draw_index(files.links()))))
            }
            MixOp::ReadDir => OpRequest::Call(NfsCall::ReadDir(self.directory())),
            MixOp::ReadDirPlus => OpRequest::Call(NfsCall::ReadDirPlus(self.directory())),
        };
        // At most thirteen ops.
        Drawn { kind: OpKind(kind as u8), request }
    }

    fn named(&mut self) -> Accessed {
        self.plan.popularity.pick(self.draws.named.draw(self.owner), 0)
    }

    fn directory(&mut self) -> DirNo {
        DirNo(self.draw_index(self.plan.files.directories()))
    }

    fn draw_index(&mut self, bound: u32) -> u32 {
        self.draws.dir_or_link.draw(self.owner).below(bound)
    }

    fn read(&mut self) -> NfsCall {
        let share = self.draws.read_blocks.draw(self.owner, &self.plan.workload.read_blocks);
        let blocks = READ_BLOCKS[share];
        let sample = self.draws.read[share].draw(self.owner);
        let file = self.plan.popularity.pick(sample, class_of_read(blocks));
        let offset = first_byte(file, blocks, sample);
        let bytes = (file.bytes() - offset).min(u64::from(BLOCK_BYTES)) as u32;
        // Clients are out of step, so that they do not all verify at once.
        let sequence = self.draws.reads + u64::from(self.owner.client);
        self.draws.reads += 1;
        let verify = match sequence.is_multiple_of(u64::from(self.plan.workload.verify_one_in)) {
            true => Verify::Content,
            false => Verify::Length,
        };
        NfsCall::Read(Span { file, offset, bytes, blocks_left: blocks - 1 }, verify)
    }

    fn write(&mut self) -> OpRequest {
        let share = self.draws.write_blocks.draw(self.owner, &self.plan.workload.write_blocks);
        let blocks = WRITE_BLOCKS[share];
        let bytes = match blocks {
            0 => {
                let quantile = self.draws.part_of_block.draw(self.owner).quantile;
                (1 + (quantile * f64::from(BLOCK_KIB - 1)) as u32) * 1_024
            }
            _ => BLOCK_BYTES,
        };
        let blocks_left = blocks.saturating_sub(1);
        let percent = f64::from(self.plan.workload.append_percent);
        if self.draws.append.draw(self.owner).quantile * 100.0 < percent {
            let sample = self.draws.append_to.draw(self.owner);
            if let Some(to) = self.appends.pick(&self.plan.popularity, sample) {
                return OpRequest::Append { to, bytes, blocks_left };
            }
        }
        let smallest = class_of_kib(blocks_left * BLOCK_KIB + bytes / 1_024);
        let sample = self.draws.overwrite[share].draw(self.owner);
        let file = self.plan.popularity.pick(sample, smallest);
        let offset = first_byte(file, blocks_left + 1, sample);
        let span = Span { file, offset, bytes, blocks_left };
        OpRequest::Call(NfsCall::Write(span, self.plan.stability))
    }

    /// The op, when it may go out now.
    fn start(&mut self, drawn: &Drawn) -> Option<(NfsOp, Flight)> {
        let bounds = &self.plan.workload;
        let may_read = self.in_flight.reads < bounds.reads_outstanding_max;
        let may_write = self.in_flight.writes < bounds.writes_outstanding_max;
        let (call, flight) = match drawn.request {
            OpRequest::Call(call @ NfsCall::Read(..)) => {
                may_read.then_some((call, Flight::Read))?
            }
            OpRequest::Call(call @ NfsCall::Write(span, _)) if may_write => {
                self.last_written = span.file;
                (call, Flight::Write)
            }
            OpRequest::Append { to, bytes, blocks_left } if may_write => {
                let kib = blocks_left * BLOCK_KIB + bytes / 1_024;
                let (file, offset) = self.appends.extend(to, kib);
                self.last_written = file;
                let span = Span { file, offset, bytes, blocks_left };
                (NfsCall::Write(span, self.plan.stability), Flight::Write)
            }
            OpRequest::Call(NfsCall::Write(..)) | OpRequest::Append { .. } => return None,
            OpRequest::Call(call) => (call, Flight::Other),
            OpRequest::Create => change(self.slots.create()?),
            OpRequest::Remove => change(self.slots.remove()?),
            OpRequest::Commit => (NfsCall::Commit(self.last_written), Flight::Other),
        };
        let kind = match (call, self.plan.create) {
            // Also where a name had to be created before it can be removed.
            (NfsCall::Create(_), Some(kind)) => kind,
            _ => drawn.kind,
        };
        Some((NfsOp::first(kind, call), flight))
    }

    fn take_off(&mut self, ticket: Ticket, flight: Flight) {
        let index = ticket.0 as usize;
        if self.flights.len() <= index {
            self.flights.resize(index + 1, None);
        }
        self.flights[index] = Some(flight);
        self.in_flight.all += 1;
        self.in_flight.reads += u32::from(matches!(flight, Flight::Read));
        self.in_flight.writes += u32::from(matches!(flight, Flight::Write));
    }
}

fn change(change: SlotChange) -> (NfsCall, Flight) {
    let call = match change {
        SlotChange::Create(slot) => NfsCall::Create(slot),
        SlotChange::Remove(slot, presence) => NfsCall::Remove(slot, presence),
    };
    (call, Flight::Slot(change))
}

/// Where `blocks` blocks of `file` begin.
fn first_byte(file: Accessed, blocks: u32, sample: Sample) -> u64 {
    let all = file.bytes().div_ceil(u64::from(BLOCK_BYTES)) as u32;
    u64::from(sample.below((all + 1).saturating_sub(blocks).max(1))) * u64::from(BLOCK_BYTES)
}

impl Draws {
    fn new() -> Self {
        Self {
            kind: OwnDeck::new(Purpose::Kind),
            read_blocks: CommonDeck::new(Purpose::ReadBlocks),
            write_blocks: CommonDeck::new(Purpose::WriteBlocks),
            append: Strata::new(Purpose::Append),
            append_to: Strata::new(Purpose::AppendTo),
            named: Strata::new(Purpose::Named),
            dir_or_link: Strata::new(Purpose::DirOrLink),
            part_of_block: Strata::new(Purpose::PartOfBlock),
            read: std::array::from_fn(|i| Strata::new(Purpose::Read(i as u8))),
            overwrite: std::array::from_fn(|i| Strata::new(Purpose::Overwrite(i as u8))),
            reads: 0,
        }
    }
}

impl Script for NfsScript {
    type Op = NfsOp;

    /// A process keeps as many ops in flight as its bounds allow; it never thinks.
    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, _context: ScriptContext) -> Step<NfsOp> {
        if self.in_flight.all >= self.plan.workload.outstanding_max {
            return Step::WaitForOutcome;
        }
        let drawn = self.kept.take().unwrap_or_else(|| self.draw());
        match self.start(&drawn) {
            Some((op, flight)) => {
                self.issuing = Some(flight);
                Step::Issue(op)
            }
            None => {
                self.kept = Some(drawn);
                Step::WaitForOutcome
            }
        }
    }

    fn on_issued(&mut self, ticket: Ticket) {
        if let Some(flight) = self.issuing.take() {
            self.take_off(ticket, flight);
        }
    }

    fn on_outcome(&mut self, ticket: Ticket, outcome: &Outcome, _now: Nanos) {
        let flight = self.flights.get_mut(ticket.0 as usize).and_then(Option::take);
        let Some(flight) = flight else { return };
        self.in_flight.all -= 1;
        match flight {
            Flight::Read => self.in_flight.reads -= 1,
            Flight::Write => self.in_flight.writes -= 1,
            Flight::Slot(change) => self.slots.settle(change, outcome.status),
            Flight::Other => {}
        }
        self.ended = Some(flight);
    }

    fn on_follow_on(&mut self, _ended: Ticket, ticket: Ticket) {
        if let Some(flight) = self.ended.take() {
            self.take_off(ticket, flight);
        }
    }
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Which op.
    Kind,
    /// Blocks of a READ.
    ReadBlocks,
    /// Blocks of a WRITE.
    WriteBlocks,
    /// Whether a WRITE appends.
    Append,
    /// File of an op without data.
    Named,
    /// File of a READ, by the index of its blocks in a suite.
    Read(u8),
    /// File of a WRITE over what is there, likewise.
    Overwrite(u8),
    /// File of a WRITE at the end.
    AppendTo,
    /// A directory or a link.
    DirOrLink,
    /// Bytes of a WRITE of less than a block.
    PartOfBlock,
}

impl From<Purpose> for Stream {
    fn from(purpose: Purpose) -> Self {
        use Purpose as P;
        Self(match purpose {
            P::Kind => 0,
            P::ReadBlocks => 1,
            P::WriteBlocks => 2,
            P::Append => 3,
            P::Named => 4,
            P::AppendTo => 5,
            P::DirOrLink => 6,
            P::PartOfBlock => 7,
            P::Read(index) => 0x100 + u64::from(index),
            P::Overwrite(index) => 0x200 + u64::from(index),
        })
    }
}

#[cfg(test)]
mod tests;
