//! The validation phase: before anything is measured, the server shows that it carries out each
//! operation of the suite correctly. Operations that change files use a scratch directory of our
//! own. All use the measured state machine.

use std::fmt;

use plimsoll_engine::interface::Session as _;
use plimsoll_model::outcome::OpStatus;

use super::super::op::{
    Content, Disposition, Expected, ExpectedLength, FileChange, FileLevel, FindLevel, FsLevel,
    HandleNo, PathText, SmbCall, SmbOp,
};
use super::super::wire::create::options;
use super::super::wire::status::{self, Named};
use super::super::workspace::{self, ROOT};
use super::remote::Remote;
use plimsoll_protocol::blocking::{BlockingError, Ended};
use plimsoll_protocol::net::{ChannelError, SetupError};

/// Where the operations are tried, in our directory.
const SCRATCH: &str = "check";
/// The two handles of the checks.
const FIRST: HandleNo = HandleNo(0);
const SECOND: HandleNo = HandleNo(1);
/// What is written: two large requests, and a byte that extends the file.
const LARGE_BYTES: u32 = 65_536;
/// An odd size that is set afterwards.
const CUT_BYTES: u32 = 1_000;
/// Any key will do.
const CONTENT: Content = Content { key: 7 };

/// What other checks need to have been done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Directory,
    File,
    Write,
    WriteBehind,
    WriteEnd,
    Overwrite,
    Cut,
    Lock,
    Unlock,
    LockAgain,
    /// The right answer where nothing has a name.
    Missing,
    Rename,
    OldName,
    Remove,
    InnerDirectory,
    RemoveInner,
    RemoveAll,
}

/// One operation and what it means.
pub(super) struct Check {
    /// What a message calls it.
    name: &'static str,
    call: SmbCall,
    /// The step that it proves for others.
    step: Option<Step>,
    /// The steps without which it proves nothing.
    given: &'static [Step],
}

impl Check {
    /// Others build on it.
    fn is(self, step: Step) -> Self {
        Self { step: Some(step), ..self }
    }

    /// Proves something only if these steps have passed.
    fn given(self, given: &'static [Step]) -> Self {
        Self { given, ..self }
    }
}

/// An operation that the server does not do as the suite needs it.
struct Lacking {
    name: &'static str,
    expected: Expected,
    got: Got,
}

enum Got {
    Status(u32),
    /// A message about wrong or unreadable data.
    Failure(String),
    /// Nothing. Others would wait as long.
    Silence,
}

impl Got {
    /// `None`: it went as expected.
    fn from_ended(ended: Ended) -> Option<Self> {
        match ended.outcome.status {
            OpStatus::Ok | OpStatus::ExpectedFailure => None,
            OpStatus::Unexpected { actual, .. } => Some(Self::Status(actual)),
            OpStatus::Failed(_) => Some(Self::Failure(ended.detail)),
        }
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" (expected ", self.name)?;
        match self.expected {
            Expected::Success => f.write_str("success")?,
            Expected::Failure(number) => write!(f, "{}", Named(number))?,
            Expected::AnyFailure => f.write_str("a refusal")?,
            Expected::Anything => f.write_str("an answer")?,
        }
        match &self.got {
            Got::Status(status::SUCCESS) => f.write_str(", got success)"),
            Got::Status(number) => write!(f, ", got {})", Named(*number)),
            Got::Failure(message) => write!(f, ", got: {message})"),
            Got::Silence => write!(f, ", got: {})", ChannelError::Timeout),
        }
    }
}

/// Logs on.
type Open<'a> = &'a dyn Fn() -> Result<Remote, SetupError>;

/// Tries every operation, and refuses a server that lacks some, with the names of all of them.
/// `target` is for messages.
pub(super) fn validate(checks: Vec<Check>, open: Open<'_>, target: &str) -> Result<(), SetupError> {
    let total = checks.len();
    let lacking = try_all(checks, open)?;
    if lacking.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = lacking.iter().map(Lacking::to_string).collect();
    let count = match (names.len(), total) {
        (1, 1) => "the operation that this suite needs does not work".to_owned(),
        (1, _) => format!("1 of the {total} operations that this suite needs does not work"),
        (many, _) => format!("{many} of the {total} operations that this suite needs do not work"),
    };
    Err(SetupError::Unusable(format!(
        "{target}: {count}: {}; nothing was measured. See the server's log and the configuration \
         of the share",
        names.join(", ")
    )))
}

/// Operations that the server lacks. Operations that depend on one of them are not listed.
fn try_all(checks: Vec<Check>, open: Open<'_>) -> Result<Vec<Lacking>, SetupError> {
    let (mut share, mut is_broken) = (open()?, false);
    let (mut lacking, mut passed) = (Vec::new(), Vec::new());
    for Check { name, call, step, given } in checks {
        if is_broken || share.0.session().lost().is_some() {
            // The operation before ended the session; others can do without it.
            share = match open() {
                Err(error) if lacking.is_empty() || matches!(error, SetupError::Stopped) => {
                    return Err(error);
                }
                Err(_) => break,
                Ok(another) => another,
            };
            is_broken = false;
        }
        let is_given = given.iter().all(|step| passed.contains(step));
        if !is_given || !share.0.session().has_open(&call.op) {
            continue;
        }
        let expected = call.expected;
        let got = match share.0.run(call) {
            Ok(ended) => Got::from_ended(ended),
            Err(BlockingError::Stopped) => return Err(SetupError::Stopped),
            Err(BlockingError::Channel(ChannelError::Timeout)) => Some(Got::Silence),
            Err(BlockingError::Channel(error)) => {
                is_broken = true;
                Some(Got::Failure(error.to_string()))
            }
        };
        let Some(got) = got else {
            passed.extend(step);
            continue;
        };
        let is_silent = matches!(got, Got::Silence);
        lacking.push(Lacking { name, expected, got });
        if is_silent {
            break;
        }
    }
    Ok(lacking)
}

/// All that a mix may do.
pub(super) fn mix() -> Vec<Check> {
    let parts = [begin(), data(), sizes(), locks(), names(), directories(), end()];
    parts.into_iter().flatten().collect()
}

fn scratch_path(name: &str) -> PathText {
    PathText::new(&format!("{ROOT}\\{SCRATCH}\\{name}")).unwrap_or(PathText::EMPTY)
}

fn scratch() -> PathText {
    PathText::new(&format!("{ROOT}\\{SCRATCH}")).unwrap_or(PathText::EMPTY)
}

fn done(name: &'static str, op: SmbOp) -> Check {
    let call = SmbCall { op, expected: Expected::Success };
    Check { name, call, step: None, given: &[] }
}

fn refused(name: &'static str, status: u32, op: SmbOp) -> Check {
    let call = SmbCall { op, expected: Expected::Failure(status) };
    Check { name, call, step: None, given: &[] }
}

fn create(name: &str, handle: HandleNo, disposition: Disposition) -> SmbOp {
    SmbOp::Create {
        path: scratch_path(name),
        handle,
        disposition,
        options: options::NON_DIRECTORY_FILE,
    }
}

fn read(offset: u64, length: u32, expected: u32) -> SmbOp {
    let (expected_length, check) = (ExpectedLength::Exactly(expected), Some(CONTENT));
    SmbOp::Read { handle: FIRST, offset, length, expected_length, check }
}

fn write(offset: u64, length: u32) -> SmbOp {
    SmbOp::Write { handle: FIRST, offset, length, content: CONTENT }
}

fn query(name: &str) -> SmbOp {
    SmbOp::QueryPath { path: scratch_path(name), level: FileLevel::Basic }
}

fn find(pattern: &str) -> SmbOp {
    SmbOp::Find {
        directory: scratch(),
        pattern: PathText::new(pattern).unwrap_or(PathText::EMPTY),
        level: FindLevel::Both,
        entries_max: 0,
    }
}

/// Everything that `nic` does with its file of `bytes`, which is there.
pub(super) fn nic(file_set_seed: u64, bytes: u32, request_bytes: u32) -> Vec<Check> {
    let length = request_bytes.min(bytes);
    let (path, handle) = (workspace::nic_path(), FIRST);
    let (disposition, options) = (Disposition::Open, options::NON_DIRECTORY_FILE);
    let check = Some(workspace::nic_content(file_set_seed));
    let expected_length = ExpectedLength::Exactly(length);
    let read =
        |offset: u32| SmbOp::Read { handle, offset: offset.into(), length, expected_length, check };
    vec![
        done("open the file", SmbOp::Create { path, handle, disposition, options }),
        done("read its beginning", read(0)),
        done("read its end", read(bytes - length)),
        done("close it", SmbOp::Close { handle }),
    ]
}

/// One logon, of a client that has not logged on.
pub(super) fn logons() -> Vec<Check> {
    vec![done("log on and off", SmbOp::Logon)]
}

fn begin() -> Vec<Check> {
    vec![
        done("echo", SmbOp::Echo),
        done("remove a directory with all in it", SmbOp::Deltree { path: scratch() }),
        done("make a directory", SmbOp::Mkdir { path: scratch() }).is(Step::Directory),
        done("query the file system", SmbOp::QueryFs { level: FsLevel::Size }),
    ]
}

fn data() -> Vec<Check> {
    let large = u64::from(LARGE_BYTES);
    vec![
        done("create a file", create("data.dat", FIRST, Disposition::Create))
            .is(Step::File)
            .given(&[Step::Directory]),
        done("write", write(0, LARGE_BYTES)).is(Step::Write),
        done("write behind that", write(large, LARGE_BYTES)).is(Step::WriteBehind),
        done("write one byte at the end", write(2 * large, 1)).is(Step::WriteEnd),
        done("flush", SmbOp::Flush { handle: FIRST }),
        done("read back", read(0, LARGE_BYTES, LARGE_BYTES)).given(&[Step::Write]),
        done("read back behind that", read(large + 4_096, 4_096, 4_096))
            .given(&[Step::WriteBehind]),
        done("read back up to the end", read(2 * large - 511, 4_096, 512))
            .given(&[Step::WriteBehind, Step::WriteEnd]),
        refused("read beyond the end", status::END_OF_FILE, read(2 * large + 1, 4_096, 0)),
        done("write over what is there", write(4_096, 61_440)).is(Step::Overwrite),
        done("read back what was written over", read(0, LARGE_BYTES, LARGE_BYTES))
            .given(&[Step::Write, Step::Overwrite]),
    ]
}

fn sizes() -> Vec<Check> {
    let level = FileLevel::Standard;
    let set = |set| SmbOp::SetFile { handle: FIRST, set };
    vec![
        done("query an open file", SmbOp::QueryFile { handle: FIRST, level }),
        done("set times of an open file", set(FileChange::Basic)),
        done("set the size of an open file", set(FileChange::EndOfFile(u64::from(CUT_BYTES))))
            .is(Step::Cut),
        done("read what the new size leaves", read(0, 4_096, CUT_BYTES))
            .given(&[Step::Write, Step::Cut]),
    ]
}

fn locks() -> Vec<Check> {
    let (offset, length) = (100, 200);
    let lock = |handle| SmbOp::Lock { handle, offset, length };
    let unlock = |handle| SmbOp::Unlock { handle, offset, length };
    let conflict = "lock what another handle holds";
    let refused = SmbCall { op: lock(SECOND), expected: Expected::AnyFailure };
    vec![
        done("open a file a second time", create("data.dat", SECOND, Disposition::Open))
            .given(&[Step::File]),
        done("lock", lock(FIRST)).is(Step::Lock),
        Check { name: conflict, call: refused, step: None, given: &[Step::Lock] },
        done("unlock", unlock(FIRST)).is(Step::Unlock).given(&[Step::Lock]),
        done("lock what was unlocked", lock(SECOND)).is(Step::LockAgain).given(&[Step::Unlock]),
        done("unlock that", unlock(SECOND)).given(&[Step::LockAgain]),
        done("close", SmbOp::Close { handle: SECOND }),
        done("close the other", SmbOp::Close { handle: FIRST }),
    ]
}

fn names() -> Vec<Check> {
    let missing = status::OBJECT_NAME_NOT_FOUND;
    let rename = || SmbOp::Rename {
        path: scratch_path("data.dat"),
        to: scratch_path("other.dat"),
        replace: false,
    };
    vec![
        refused(
            "create a name that exists",
            status::OBJECT_NAME_COLLISION,
            create("data.dat", FIRST, Disposition::Create),
        )
        .given(&[Step::File]),
        refused("open a missing name", missing, create("none.dat", FIRST, Disposition::Open))
            .given(&[Step::Directory]),
        done("query a path", query("data.dat")).given(&[Step::File]),
        refused("query a missing path", missing, query("none.dat"))
            .is(Step::Missing)
            .given(&[Step::Directory]),
        done("find a name", find("data.dat")).given(&[Step::File]),
        done("find names by a pattern", find("*")).given(&[Step::File]),
        refused("find without a match", status::NO_SUCH_FILE, find("none*.dat"))
            .given(&[Step::Directory]),
        done("rename", rename()).is(Step::Rename).given(&[Step::File]),
        refused("query the old name", missing, query("data.dat"))
            .given(&[Step::Rename, Step::Missing]),
        done("query the new name", query("other.dat")).given(&[Step::Rename]),
        done("make a file of the old name", create("data.dat", FIRST, Disposition::OpenIf))
            .is(Step::OldName)
            .given(&[Step::Directory]),
        done("close it", SmbOp::Close { handle: FIRST }),
        refused("rename to a name that exists", status::OBJECT_NAME_COLLISION, rename())
            .given(&[Step::Rename, Step::OldName]),
        done("remove a file", SmbOp::Unlink { path: scratch_path("other.dat") })
            .is(Step::Remove)
            .given(&[Step::Rename]),
        refused("query a removed name", missing, query("other.dat"))
            .given(&[Step::Remove, Step::Missing]),
    ]
}

fn directories() -> Vec<Check> {
    let path = scratch_path("inner");
    vec![
        done("make an inner directory", SmbOp::Mkdir { path })
            .is(Step::InnerDirectory)
            .given(&[Step::Directory]),
        refused(
            "make a directory that exists",
            status::OBJECT_NAME_COLLISION,
            SmbOp::Mkdir { path },
        )
        .given(&[Step::InnerDirectory]),
        done("remove an empty directory", SmbOp::Rmdir { path })
            .is(Step::RemoveInner)
            .given(&[Step::InnerDirectory]),
        refused(
            "query a removed directory",
            status::OBJECT_NAME_NOT_FOUND,
            SmbOp::QueryPath { path, level: FileLevel::Basic },
        )
        .given(&[Step::RemoveInner, Step::Missing]),
    ]
}

fn end() -> Vec<Check> {
    vec![
        done("remove the directory of the checks", SmbOp::Deltree { path: scratch() })
            .is(Step::RemoveAll),
        refused(
            "query the directory of the checks",
            status::OBJECT_NAME_NOT_FOUND,
            SmbOp::QueryPath { path: scratch(), level: FileLevel::Basic },
        )
        .given(&[Step::RemoveAll, Step::Missing]),
    ]
}

#[cfg(test)]
mod tests;
