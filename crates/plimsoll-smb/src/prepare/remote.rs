//! The share behind a connection: a session with blocking calls.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_engine::interface::{ClientContext, LinkKind, Session as _, Ticket};
use plimsoll_model::outcome::OpStatus;
use plimsoll_model::units::Nanos;

use super::super::logon::{Established, Offer};
use super::super::op::{
    Content, Disposition, Expected, ExpectedLength, FileChange, FileLevel, FindLevel, FsLevel,
    HandleNo, PathText, SmbCall, SmbOp,
};
use super::super::session::{Answer, BadName, Caching, SmbSession, SmbSite, name_of_entry};
use super::super::target::SmbTarget;
use super::super::wire::create::{CreateResponse, options};
use super::super::wire::fscc::{Entries, FsFullSizeInfo, FsSizeInfo};
use super::super::wire::info::{QueryDirectoryResponse, QueryInfoResponse};
use super::super::wire::open_file::ReadResponse;
use super::super::wire::{Command, status};
use super::share::{Entry, EntryStat, Kind, Share, ShareError, Site};
use plimsoll_engine::rng;
use plimsoll_protocol::blocking::{Blocking, Ended};
use plimsoll_protocol::content::{ContentTable, SLICE_BYTES_MAX};
use plimsoll_protocol::net::{Dial, SetupError, SourcePort};

/// Writes in flight: 2 MiB.
const WINDOW: u32 = 16;
/// Entries that one directory may have.
const ENTRIES_MAX: usize = 1_000_000;
/// Replies without a useful name: those with `.` and `..`, perhaps one by one.
const BARREN_MAX: u32 = 2;
/// Of the one file that is open.
const HANDLE: HandleNo = HandleNo(0);

/// Connections of this process so far.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// A connection with its session.
pub struct Remote(pub(super) Blocking<SmbSession>);

/// The share as set-up needs it.
pub(super) fn site(target: &SmbTarget, offer: &Offer, content: &ContentTable) -> SmbSite {
    SmbSite {
        credentials: target.credentials.clone(),
        offer: offer.clone(),
        unc: target.unc.clone(),
        prefix: target.base.clone(),
        caching: Caching::None,
        content: content.clone(),
        outstanding_max: WINDOW,
        unexpected_max: u32::MAX,
        buffers: Default::default(),
    }
}

impl Remote {
    /// Logs on. What is done over the connection ends soon after the flag is raised.
    pub fn open(
        target: &SmbTarget,
        offer: &Offer,
        content: &ContentTable,
        dial: &dyn Dial,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, SetupError> {
        Self::open_as(site(target, offer, content), target, dial, stop)
    }

    /// The same with settings of one's own.
    pub(super) fn open_as(
        site: SmbSite,
        target: &SmbTarget,
        dial: &dyn Dial,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, SetupError> {
        let mut own = Self::connect(site, target, dial, stop)?;
        own.ask(SmbOp::Echo).map_err(|error| error.unable_to("log on", &target.name))?;
        Ok(own)
    }

    /// Nobody has logged on yet: the first op does that.
    pub(super) fn connect(
        site: SmbSite,
        target: &SmbTarget,
        dial: &dyn Dial,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, SetupError> {
        // A server hands a connection of a client that it knows to the process that serves this
        // client, and that one may be about to end: every connection comes from a client of its
        // own.
        let nth = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let nonce = rng::key(&[dial.caller().nonce, nth]);
        let client =
            ClientContext { client: 0, endpoint: 0, seed: 0, op_timeout: Nanos::MAX, nonce };
        let session = SmbSession::new(Rc::new(site), client).answering();
        let channel = dial
            .dial(target.address, LinkKind::Stream, SourcePort::Any)
            .map_err(|error| ShareError::from(error).unable_to("log on", &target.name))?;
        let blocking = Blocking::new(session, channel, stop);
        Ok(Self(blocking.noting(dial.nonconformities())))
    }

    /// What was agreed on at the logon.
    pub fn established(&self) -> Option<&Established> {
        self.0.session().established()
    }

    /// Carries out the op; returns the replies' answers.
    fn ask(&mut self, op: SmbOp) -> Result<Vec<Answer>, ShareError> {
        let (answers, outcome) = self.ask_anyway(op)?;
        outcome.map(|()| answers)
    }

    /// Carries out the op; returns the replies' answers, and whether all of it was done.
    fn ask_anyway(
        &mut self,
        op: SmbOp,
    ) -> Result<(Vec<Answer>, Result<(), ShareError>), ShareError> {
        let ended = self.0.run(SmbCall { op, expected: Expected::Success })?;
        let answers = self.0.session_mut().take_answers();
        let outcome = self.check_outcome(ended, &answers);
        Ok((answers, outcome))
    }

    /// The command that failed names the failure.
    fn check_outcome(&self, ended: Ended, answers: &[Answer]) -> Result<(), ShareError> {
        match ended.outcome.status {
            OpStatus::Ok | OpStatus::ExpectedFailure => Ok(()),
            OpStatus::Unexpected { actual: status, .. } => {
                let refused = answers.iter().find(|answer| answer.status == status);
                let command = refused.map_or(Command::Create, |answer| answer.command);
                Err(ShareError::Status { command, status })
            }
            OpStatus::Failed(_) => {
                Err(ShareError::Failed(self.0.session().lost().unwrap_or(ended.detail)))
            }
        }
    }

    /// Opens or makes a file or directory, does something with it, and closes it in any case; the
    /// first failure counts.
    fn with_open<T>(
        &mut self,
        path: &str,
        (disposition, options): (Disposition, u32),
        work: impl FnOnce(&mut Self) -> Result<T, ShareError>,
    ) -> Result<T, ShareError> {
        self.ask(SmbOp::Create { path: text(path)?, handle: HANDLE, disposition, options })?;
        let result = work(self);
        match self.ask(SmbOp::Close { handle: HANDLE }) {
            Err(error) if result.is_ok() => Err(error),
            _ => result,
        }
    }

    /// Writes a stretch of the open file, several slices at once.
    fn write_stretch(
        &mut self,
        stretch: Range<u64>,
        content: Content,
        written: &AtomicU64,
    ) -> Result<(), ShareError> {
        let (mut offset, mut in_flight, mut failure) = (stretch.start, 0, None);
        let mut answers = Vec::new();
        // One command each, so that they come in the order of their offsets: some servers take no
        // bytes behind the end of a file.
        let most = u64::from(self.0.session().write_bytes_max());
        loop {
            while failure.is_none() && offset < stretch.end && self.0.session().has_room() {
                let length = (stretch.end - offset).min(most) as u32;
                let op = SmbOp::Write { handle: HANDLE, offset, length, content };
                self.0.issue(Ticket(0), SmbCall { op, expected: Expected::Success });
                offset += u64::from(length);
                in_flight += 1;
            }
            if in_flight == 0 {
                return failure.map_or(Ok(()), Err);
            }
            let ended = self.0.next_end()?;
            in_flight -= 1;
            written.fetch_add(ended.outcome.bytes_written, Ordering::Relaxed);
            answers.extend(self.0.session_mut().take_answers());
            if let Err(error) = self.check_outcome(ended, &answers) {
                failure.get_or_insert(error);
            }
        }
    }

    /// The server cannot answer this query, but may answer others. Some do not find what the
    /// command before in the same message opened.
    fn is_unknown(&self, error: &ShareError) -> bool {
        match error {
            ShareError::Failed(_) => self.0.session().lost().is_none(),
            error => matches!(
                error.status(),
                Some(
                    status::NOT_SUPPORTED
                        | status::NOT_IMPLEMENTED
                        | status::INVALID_INFO_CLASS
                        | status::INVALID_LEVEL
                        | status::INVALID_PARAMETER
                        | status::INVALID_HANDLE
                        | status::FILE_CLOSED
                )
            ),
        }
    }

    fn list_open(&mut self) -> Result<Vec<Entry>, ShareError> {
        let (mut entries, mut barren) = (Vec::new(), 0);
        loop {
            let answers = match self.ask(SmbOp::FindNext { handle: HANDLE }) {
                Err(error) if is_end_of_listing(&error) => return Ok(entries),
                answers => answers?,
            };
            let before = entries.len();
            for answer in &answers {
                let reply = QueryDirectoryResponse::decode(&answer.body)?;
                for entry in Entries::new(FindLevel::Directory, reply.output) {
                    let entry = entry?;
                    let stat = EntryStat {
                        kind: Kind::from_attributes(entry.attributes),
                        bytes: entry.end_of_file,
                    };
                    let name = entry.name.to_string();
                    let name = name_of_entry(&name)
                        .map_err(|BadName| ShareError::Unfit("a name that no file can have"))?;
                    entries.extend(name.map(|name| Entry { name: name.to_owned(), stat }));
                }
            }
            barren += u32::from(entries.len() == before);
            if barren > BARREN_MAX || entries.len() > ENTRIES_MAX {
                return Err(ShareError::Unfit("a listing that does not end"));
            }
        }
    }
}

impl Share for Remote {
    fn find(&mut self, path: &str) -> Result<Option<EntryStat>, ShareError> {
        let op = SmbOp::QueryPath { path: text(path)?, level: FileLevel::Basic };
        let (answers, outcome) = self.ask_anyway(op)?;
        let created = answers.first().filter(|answer| answer.command == Command::Create);
        let Some(created) = created.filter(|answer| !status::is_failure(answer.status)) else {
            return unless_missing(outcome.map(|()| None)).map(Option::flatten);
        };
        // What could be opened exists, whatever else the server reports.
        let opened = CreateResponse::decode(&created.body)?;
        Ok(Some(EntryStat {
            kind: Kind::from_attributes(opened.attributes),
            bytes: opened.end_of_file,
        }))
    }

    fn list(&mut self, path: &str) -> Result<Option<Vec<Entry>>, ShareError> {
        let directory = (Disposition::Open, options::DIRECTORY_FILE);
        unless_missing(self.with_open(path, directory, Self::list_open))
    }

    fn make_dir(&mut self, path: &str) -> Result<(), ShareError> {
        self.with_open(path, (Disposition::OpenIf, options::DIRECTORY_FILE), |_| Ok(()))
    }

    fn write(
        &mut self,
        path: &str,
        bytes: u64,
        content: Content,
        written: &AtomicU64,
    ) -> Result<(), ShareError> {
        let last = bytes.saturating_sub(1) / SLICE_BYTES_MAX as u64 * SLICE_BYTES_MAX as u64;
        self.with_open(path, ANEW, |own| {
            own.write_stretch(0..last, content, written)?;
            own.write_stretch(last..bytes, content, written)
        })
    }

    fn write_text(&mut self, path: &str, text: &str) -> Result<(), ShareError> {
        let op = SmbOp::WriteText { handle: HANDLE, text: text.as_bytes().into() };
        self.with_open(path, ANEW, |own| own.ask(op).map(drop))
    }

    fn cut(&mut self, path: &str, bytes: u64) -> Result<(), ShareError> {
        let op = SmbOp::SetFile { handle: HANDLE, set: FileChange::EndOfFile(bytes) };
        self.with_open(path, A_FILE, |own| own.ask(op).map(drop))
    }

    fn read(&mut self, path: &str, offset: u64, bytes: u32) -> Result<Vec<u8>, ShareError> {
        let (handle, length, expected_length) = (HANDLE, bytes, ExpectedLength::Any);
        let op = SmbOp::Read { handle, offset, length, expected_length, check: None };
        let answers = self.with_open(path, A_FILE, |own| own.ask(op))?;
        let mut data = Vec::new();
        for answer in answers.iter().filter(|answer| !status::is_failure(answer.status)) {
            data.extend_from_slice(ReadResponse::decode(&answer.body)?.data);
        }
        Ok(data)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), ShareError> {
        let op = SmbOp::Rename { path: text(from)?, to: text(to)?, replace: true };
        self.ask(op).map(drop)
    }

    fn remove(&mut self, path: &str, kind: Kind) -> Result<(), ShareError> {
        let path = text(path)?;
        unless_missing(self.ask(match kind {
            Kind::File => SmbOp::Unlink { path },
            Kind::Directory => SmbOp::Rmdir { path },
        }))
        .map(drop)
    }

    fn pause(&mut self, time: Duration) -> Result<(), ShareError> {
        Ok(self.0.pause(time)?)
    }

    fn free_bytes(&mut self) -> Result<Option<u64>, ShareError> {
        // Both report what the user may still write; some servers have only one of them.
        for level in [FsLevel::FullSize, FsLevel::Size] {
            let answers = match self.ask(SmbOp::QueryFs { level }) {
                Err(error) if self.is_unknown(&error) => continue,
                answers => answers?,
            };
            let reply = QueryInfoResponse::decode(body(&answers, Command::QueryInfo))?;
            return free_of(level, reply.output).map(Some);
        }
        Ok(None)
    }
}

fn free_of(level: FsLevel, output: &[u8]) -> Result<u64, ShareError> {
    let (units, sectors, sector_bytes) = match level {
        FsLevel::Size => {
            let info = FsSizeInfo::decode(output)?;
            (info.available_units, info.sectors_per_unit, info.bytes_per_sector)
        }
        _ => {
            let info = FsFullSizeInfo::decode(output)?;
            (info.caller_available_units, info.sectors_per_unit, info.bytes_per_sector)
        }
    };
    Ok(units.saturating_mul(u64::from(sectors) * u64::from(sector_bytes)))
}

const A_FILE: (Disposition, u32) = (Disposition::Open, options::NON_DIRECTORY_FILE);
const ANEW: (Disposition, u32) = (Disposition::OverwriteIf, options::NON_DIRECTORY_FILE);

fn text(path: &str) -> Result<PathText, ShareError> {
    PathText::new(path).map_err(|_| ShareError::Path)
}

/// The answer to a command of an op that succeeded.
fn body(answers: &[Answer], command: Command) -> &[u8] {
    answers.iter().find(|answer| answer.command == command).map_or(&[], |answer| &answer.body)
}

fn unless_missing<T>(result: Result<T, ShareError>) -> Result<Option<T>, ShareError> {
    match result {
        Err(error) if error.is_missing() => Ok(None),
        result => result.map(Some),
    }
}

fn is_end_of_listing(error: &ShareError) -> bool {
    matches!(error.status(), Some(status::NO_MORE_FILES | status::NO_SUCH_FILE))
}

/// Does something on a share that is reached through `dial`.
pub(super) fn on_site<T>(
    target: &SmbTarget,
    offer: &Offer,
    content: &ContentTable,
    dial: &dyn Dial,
    work: impl FnOnce(&Site<'_>) -> Result<T, SetupError>,
) -> Result<T, SetupError> {
    let open = |stop: &Arc<AtomicBool>| -> Result<Box<dyn Share>, SetupError> {
        Ok(Box::new(Remote::open(target, offer, content, dial, Arc::clone(stop))?))
    };
    let stop = dial.stop();
    work(&Site { name: &target.name, stop: &stop, open: &open })
}
