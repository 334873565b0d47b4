//! One client's replay of a load file: line after line, pass after pass.
//!
//! Where SMB2 answers differently from SMB1, or a replay from its recording, another status than
//! the recorded one is expected. `docs/load-files.md` has each case with its reason.

use std::sync::Arc;

use plimsoll_engine::interface::{Script, ScriptContext, Step, Ticket};
use plimsoll_engine::rng;
use plimsoll_model::outcome::Outcome;
use plimsoll_model::units::Nanos;

use super::grammar::{Status, Verb};
use super::line::Line;
use super::record::Record;
use super::{LoadFile, levels, names};
use crate::op::{
    Content, Disposition, Expected, ExpectedLength, HandleNo, PathText, SmbCall, SmbOp,
};
use crate::wire::status::END_OF_FILE;

/// CreateOptions a client may set on SMB2 (MS-SMB2 2.2.13). The others must not be used or are
/// ignored: synchronous I/O, tree connection, complete if oplocked, open by file id, requiring an
/// oplock, reserve opfilter, free space query, remote instance.
pub(crate) const OPTIONS_OF_SMB2: u64 = 0x0062_DA4F;

/// Keys of a replay's content are below this; offsets can be added to them without overflow.
const CONTENT_KEYS: u64 = 1 << 20;
/// Tells a replay's keys from those of other scripts.
const CONTENT_SALT: u64 = 0x7265_706c_6179;

/// The script of one client.
///
/// A pass over the file is a piece of work: the engine thinks before it. An op goes out when the
/// one before it has ended.
#[derive(Debug)]
pub(crate) struct Replay {
    file: Arc<LoadFile>,
    own: PathText,
    content: Content,
    /// The next record.
    at: usize,
    /// The think time before this pass is over.
    begun: bool,
    in_flight: u32,
}

impl Replay {
    /// The replay of client number `client`, from 0.
    pub(crate) fn new(file: Arc<LoadFile>, client: u32) -> Self {
        let key = rng::below(rng::key(&[CONTENT_SALT, u64::from(client)]), CONTENT_KEYS);
        let own = names::own_name(client);
        Self { file, own, content: Content { key }, at: 0, begun: false, in_flight: 0 }
    }

    fn call(&self, record: &Record) -> Option<SmbCall> {
        let line = self.file.line(record);
        let expected = expected(&line);
        Some(SmbCall { op: self.op(&line, expected)?, expected })
    }

    fn path(&self, line: &Line<'_>, at: usize) -> PathText {
        names::on_share(line.values[at].text(), &self.own)
    }

    /// `None` for what is no operation.
    fn op(&self, line: &Line<'_>, expected: Expected) -> Option<SmbOp> {
        let number = |at: usize| line.values[at].number();
        // The parser holds these arguments within 32 bits.
        let word = |at: usize| number(at) as u32;
        let path = |at: usize| self.path(line, at);
        let handle = HandleNo(word(0));
        Some(match line.verb {
            Verb::NtCreateX => SmbOp::Create {
                path: path(0),
                handle: HandleNo(word(3)),
                disposition: disposition(number(2)),
                options: (number(1) & OPTIONS_OF_SMB2) as u32,
            },
            Verb::Close => SmbOp::Close { handle },
            Verb::Flush => SmbOp::Flush { handle },
            Verb::ReadX => {
                let expected_length = match expected {
                    Expected::Success => ExpectedLength::Exactly(word(3)),
                    _ => ExpectedLength::Any,
                };
                SmbOp::Read {
                    handle,
                    offset: number(1),
                    length: word(2),
                    expected_length,
                    check: None,
                }
            }
            Verb::WriteX | Verb::Write => {
                let content = self.content;
                SmbOp::Write { handle, offset: number(1), length: word(2), content }
            }
            Verb::LockX => SmbOp::Lock { handle, offset: number(1), length: number(2) },
            Verb::UnlockX => SmbOp::Unlock { handle, offset: number(1), length: number(2) },
            Verb::Rename => SmbOp::Rename { path: path(0), to: path(1), replace: false },
            Verb::Unlink => SmbOp::Unlink { path: path(0) },
            Verb::Mkdir => SmbOp::Mkdir { path: path(0) },
            Verb::Rmdir => SmbOp::Rmdir { path: path(0) },
            Verb::Deltree => SmbOp::Deltree { path: path(0) },
            Verb::QueryPath => {
                SmbOp::QueryPath { path: path(0), level: levels::file(number(1))?.level }
            }
            Verb::QueryFile => SmbOp::QueryFile { handle, level: levels::file(number(1))?.level },
            Verb::SetFile => SmbOp::SetFile { handle, set: levels::change(number(1))?.level },
            Verb::QueryFs => SmbOp::QueryFs { level: levels::volume(number(0))?.level },
            Verb::FindFirst => self.find(line)?,
            Verb::Sleep => return None,
        })
    }

    fn find(&self, line: &Line<'_>) -> Option<SmbOp> {
        let mask = line.values[0].text();
        let (directory, pattern) = mask.rsplit_once('\\').unwrap_or(("", mask));
        let pattern = pattern.replace(names::OWN_MARK, self.own.as_str());
        Some(SmbOp::Find {
            directory: names::on_share(directory, &self.own),
            // A part of a name whose whole fits.
            pattern: PathText::new(&pattern).ok()?,
            level: levels::find(line.values[1].number())?.level,
            entries_max: line.values[2].number() as u32,
        })
    }
}

fn disposition(number: u64) -> Disposition {
    match number {
        0 => Disposition::Supersede,
        1 => Disposition::Open,
        2 => Disposition::Create,
        3 => Disposition::OpenIf,
        4 => Disposition::Overwrite,
        _ => Disposition::OverwriteIf,
    }
}

impl Script for Replay {
    type Op = SmbCall;

    /// A pass is.
    const EVERY_OP_IS_A_PIECE: bool = false;

    fn next(&mut self, context: ScriptContext) -> Step<SmbCall> {
        if self.in_flight > 0 {
            return Step::WaitForOutcome;
        }
        // The loop ends: a file without operations is no load file.
        loop {
            if self.at == self.file.records().len() {
                (self.at, self.begun) = (0, false);
            }
            if !self.begun {
                self.begun = true;
                return Step::Think;
            }
            let record = self.file.records()[self.at];
            self.at += 1;
            if let Some(call) = self.call(&record) {
                return Step::Issue(call);
            }
            let micros = record.numbers()[0];
            if record.verb == Verb::Sleep && micros > 0 {
                let pause = Nanos(micros.saturating_mul(1000));
                return Step::SleepUntil(context.now.saturating_add(pause));
            }
        }
    }

    fn on_issued(&mut self, _: Ticket) {
        self.in_flight += 1;
    }

    fn on_outcome(&mut self, _: Ticket, _: &Outcome, _: Nanos) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

/// What a line expects of an SMB2 server.
pub(crate) fn expected(line: &Line<'_>) -> Expected {
    match line.status {
        Status::OK => exception(line).unwrap_or(Expected::Success),
        status => status.expected(),
    }
}

/// Of a line that expects success.
fn exception(line: &Line<'_>) -> Option<Expected> {
    let number = |at: usize| line.values[at].number();
    match line.verb {
        // All clients share the directory: the first one makes it, the others find it.
        Verb::Mkdir if !names::is_own(line.values[0].text()) => Some(Expected::Anything),
        // SMB1 answers a read at the end of the file with success and no bytes, SMB2 with
        // STATUS_END_OF_FILE (MS-SMB2 3.3.5.12).
        Verb::ReadX if number(2) > 0 && number(3) == 0 => Some(Expected::Failure(END_OF_FILE)),
        _ => None,
    }
}
