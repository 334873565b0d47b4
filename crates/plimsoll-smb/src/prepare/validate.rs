//! The validation phase: before anything is measured, the server shows that it does each
//! operation of the suite by its meaning. What changes files happens in a scratch directory of our
//! own, all of it by the same state machine that is measured.

use std::fmt;

use plimsoll_engine::seam::Session as _;
use plimsoll_model::outcome::OpStatus;

use super::super::op::{
    Content, Disposition, Expected, FileChange, FileLevel, FindLevel, FsLevel, HandleNo, PathText,
    SmbCall, SmbOp, Wanted,
};
use super::super::wire::create::options;
use super::super::wire::status::{self, Named};
use super::super::workspace::{self, ROOT};
use super::remote::Remote;
use plimsoll_protocol::blocking::{BlockingError, Ended};
use plimsoll_protocol::net::SetupError;

/// Where the operations are tried, in our directory.
const SCRATCH: &str = "check";
/// The two handles of the checks.
const FIRST: HandleNo = HandleNo(0);
const SECOND: HandleNo = HandleNo(1);
/// The check of what is answered where nothing has a name.
const MISSING: &str = "query a missing path";
/// What is written: two large requests, and a byte that extends the file.
const LARGE_BYTES: u32 = 65_536;
/// An odd size that is set afterwards.
const CUT_BYTES: u32 = 1_000;
/// Any key will do.
const CONTENT: Content = Content { key: 7 };

/// One operation and what it means.
pub(super) struct Check {
    /// What a message calls it.
    name: &'static str,
    call: SmbCall,
    /// The checks without which this one says nothing.
    given: &'static [&'static str],
}

impl Check {
    /// Says something only if the checks of these names have passed.
    fn given(self, given: &'static [&'static str]) -> Self {
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
    /// Other data than there should be, or none that can be read, in words.
    Failure(String),
    /// Nothing more: the connection is of no use.
    Silence(String),
}

impl Got {
    /// `None`: it went as expected.
    fn of(ended: Ended) -> Option<Self> {
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
            Got::Failure(words) | Got::Silence(words) => write!(f, ", got: {words})"),
        }
    }
}

/// Logs on.
type Open<'a> = &'a dyn Fn() -> Result<Remote, SetupError>;

/// Tries every operation, and refuses a server that lacks some, with the names of all of them.
/// `place` is for messages.
pub(super) fn validate(checks: Vec<Check>, open: Open<'_>, place: &str) -> Result<(), SetupError> {
    let total = checks.len();
    let lacking = try_all(checks, open)?;
    if lacking.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = lacking.iter().map(Lacking::to_string).collect();
    Err(SetupError::Unusable(format!(
        "{place}: the server does not do {} of {total} operations as the suite needs them: {}; \
         nothing was measured: see the server's log and its configuration of the share",
        names.len(),
        names.join(", ")
    )))
}

/// Operations that the server lacks. What cannot be tried without one of them is not among them.
fn try_all(checks: Vec<Check>, open: Open<'_>) -> Result<Vec<Lacking>, SetupError> {
    let mut share = open()?;
    let (mut lacking, mut not_passed) = (Vec::new(), Vec::new());
    for Check { name, call, given } in checks {
        if share.0.session().lost().is_some() {
            // The operation before ended the session; others can do without it.
            let Ok(another) = open() else { break };
            share = another;
        }
        let is_given = !given.iter().any(|given| not_passed.contains(given));
        if !is_given || !share.0.session().has_open(&call.op) {
            not_passed.push(name);
            continue;
        }
        let expected = call.expected;
        let got = match share.0.run(call) {
            Ok(ended) => Got::of(ended),
            Err(BlockingError::Stopped) => return Err(SetupError::Stopped),
            Err(BlockingError::Channel(error)) => Some(Got::Silence(error.to_string())),
        };
        let Some(got) = got else { continue };
        let is_over = matches!(got, Got::Silence(_));
        not_passed.push(name);
        lacking.push(Lacking { name, expected, got });
        if is_over {
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

fn at(name: &str) -> PathText {
    PathText::new(&format!("{ROOT}\\{SCRATCH}\\{name}")).unwrap_or(PathText::EMPTY)
}

fn scratch() -> PathText {
    PathText::new(&format!("{ROOT}\\{SCRATCH}")).unwrap_or(PathText::EMPTY)
}

fn done(name: &'static str, op: SmbOp) -> Check {
    Check { name, call: SmbCall { op, expected: Expected::Success }, given: &[] }
}

fn refused(name: &'static str, status: u32, op: SmbOp) -> Check {
    Check { name, call: SmbCall { op, expected: Expected::Failure(status) }, given: &[] }
}

fn create(name: &str, handle: HandleNo, disposition: Disposition) -> SmbOp {
    SmbOp::Create { path: at(name), handle, disposition, options: options::NON_DIRECTORY_FILE }
}

fn read(offset: u64, length: u32, wanted: u32) -> SmbOp {
    let (wanted, check) = (Wanted::Exactly(wanted), Some(CONTENT));
    SmbOp::Read { handle: FIRST, offset, length, wanted, check }
}

fn write(offset: u64, length: u32) -> SmbOp {
    SmbOp::Write { handle: FIRST, offset, length, content: CONTENT }
}

fn query(name: &str) -> SmbOp {
    SmbOp::QueryPath { path: at(name), level: FileLevel::Basic }
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
    let wanted = Wanted::Exactly(length);
    let read = |offset: u32| SmbOp::Read { handle, offset: offset.into(), length, wanted, check };
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
        done("make a directory", SmbOp::Mkdir { path: scratch() }),
        done("query the file system", SmbOp::QueryFs { level: FsLevel::Size }),
    ]
}

fn data() -> Vec<Check> {
    let large = u64::from(LARGE_BYTES);
    vec![
        done("create a file", create("data.dat", FIRST, Disposition::Create)),
        done("write", write(0, LARGE_BYTES)),
        done("write behind that", write(large, LARGE_BYTES)),
        done("write one byte at the end", write(2 * large, 1)),
        done("flush", SmbOp::Flush { handle: FIRST }),
        done("read back", read(0, LARGE_BYTES, LARGE_BYTES)).given(&["write"]),
        done("read back behind that", read(large + 4_096, 4_096, 4_096))
            .given(&["write behind that"]),
        done("read back up to the end", read(2 * large - 511, 4_096, 512))
            .given(&["write one byte at the end"]),
        refused("read beyond the end", status::END_OF_FILE, read(2 * large + 1, 4_096, 0)),
        done("write over what is there", write(4_096, 61_440)),
        done("read back what was written over", read(0, LARGE_BYTES, LARGE_BYTES))
            .given(&["write over what is there"]),
    ]
}

fn sizes() -> Vec<Check> {
    let level = FileLevel::Standard;
    let set = |set| SmbOp::SetFile { handle: FIRST, set };
    vec![
        done("query an open file", SmbOp::QueryFile { handle: FIRST, level }),
        done("set times of an open file", set(FileChange::Basic)),
        done("set the size of an open file", set(FileChange::EndOfFile(u64::from(CUT_BYTES)))),
        done("read what the new size leaves", read(0, 4_096, CUT_BYTES))
            .given(&["set the size of an open file"]),
    ]
}

fn locks() -> Vec<Check> {
    let (offset, length) = (100, 200);
    let lock = |handle| SmbOp::Lock { handle, offset, length };
    let unlock = |handle| SmbOp::Unlock { handle, offset, length };
    let refused = SmbCall { op: lock(SECOND), expected: Expected::AnyFailure };
    vec![
        done("open a file a second time", create("data.dat", SECOND, Disposition::Open)),
        done("lock", lock(FIRST)),
        Check { name: "lock what another handle holds", call: refused, given: &["lock"] },
        done("unlock", unlock(FIRST)).given(&["lock"]),
        done("lock what was unlocked", lock(SECOND)).given(&["unlock"]),
        done("unlock that", unlock(SECOND)).given(&["lock what was unlocked"]),
        done("close", SmbOp::Close { handle: SECOND }),
        done("close the other", SmbOp::Close { handle: FIRST }),
    ]
}

fn names() -> Vec<Check> {
    let missing = status::OBJECT_NAME_NOT_FOUND;
    let rename = || SmbOp::Rename { path: at("data.dat"), to: at("other.dat"), replace: false };
    vec![
        refused(
            "create a name that exists",
            status::OBJECT_NAME_COLLISION,
            create("data.dat", FIRST, Disposition::Create),
        ),
        refused("open a missing name", missing, create("none.dat", FIRST, Disposition::Open)),
        done("query a path", query("data.dat")),
        refused(MISSING, missing, query("none.dat")),
        done("find a name", find("data.dat")),
        done("find names by a pattern", find("*")),
        refused("find without a match", status::NO_SUCH_FILE, find("none*.dat")),
        done("rename", rename()),
        refused("query the old name", missing, query("data.dat")).given(&["rename", MISSING]),
        done("query the new name", query("other.dat")).given(&["rename"]),
        done("make a file of the old name", create("data.dat", FIRST, Disposition::OpenIf)),
        done("close it", SmbOp::Close { handle: FIRST }),
        refused("rename to a name that exists", status::OBJECT_NAME_COLLISION, rename())
            .given(&["rename"]),
        done("remove a file", SmbOp::Unlink { path: at("other.dat") }).given(&["rename"]),
        refused("query a removed name", missing, query("other.dat"))
            .given(&["remove a file", MISSING]),
    ]
}

fn directories() -> Vec<Check> {
    let path = at("inner");
    vec![
        done("make an inner directory", SmbOp::Mkdir { path }),
        refused(
            "make a directory that exists",
            status::OBJECT_NAME_COLLISION,
            SmbOp::Mkdir { path },
        )
        .given(&["make an inner directory"]),
        done("remove an empty directory", SmbOp::Rmdir { path })
            .given(&["make an inner directory"]),
        refused(
            "query a removed directory",
            status::OBJECT_NAME_NOT_FOUND,
            SmbOp::QueryPath { path, level: FileLevel::Basic },
        )
        .given(&["remove an empty directory", MISSING]),
    ]
}

fn end() -> Vec<Check> {
    vec![
        done("remove the directory of the checks", SmbOp::Deltree { path: scratch() }),
        refused(
            "query the directory of the checks",
            status::OBJECT_NAME_NOT_FOUND,
            SmbOp::QueryPath { path: scratch(), level: FileLevel::Basic },
        )
        .given(&["remove the directory of the checks", MISSING]),
    ]
}
