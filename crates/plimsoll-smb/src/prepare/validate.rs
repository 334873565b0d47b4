//! The validation phase: before anything is measured, the server shows that it does each
//! operation of the mix by its meaning. All of it happens in a scratch directory of our own, by
//! the same state machine that is measured.

use plimsoll_model::outcome::OpStatus;

use super::super::op::{
    Content, Disposition, Expected, FileChange, FileLevel, FindLevel, FsLevel, HandleNo, PathText,
    SmbCall, SmbOp, Wanted,
};
use super::super::wire::create::options;
use super::super::wire::status::{self, Named};
use super::super::workspace::ROOT;
use super::remote::Remote;
use plimsoll_protocol::blocking::BlockingError;
use plimsoll_protocol::net::SetupError;

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

/// One operation and what it means.
struct Check {
    /// What a message calls it.
    name: &'static str,
    call: SmbCall,
}

/// Checks every operation; answers with how many checks passed. `place` is for messages.
pub(super) fn validate(share: &mut Remote, place: &str) -> Result<u32, SetupError> {
    let mut passed = 0;
    for Check { name, call } in checks() {
        let expected = call.expected;
        let ended = share.0.run(call).map_err(|error| match error {
            BlockingError::Stopped => SetupError::Stopped,
            BlockingError::Channel(error) => SetupError::Unusable(format!(
                "{place}: validation check \"{name}\": {error}; see whether the server still runs, \
                 and what its log says"
            )),
        })?;
        match ended.outcome.status {
            OpStatus::Ok | OpStatus::ExpectedFailure => passed += 1,
            OpStatus::Failed(_) | OpStatus::Unexpected { .. } => {
                return Err(SetupError::Unusable(format!(
                    "{place}: validation check \"{name}\": expected {}, got: {}; a server that \
                     does this is not measured: see its log and its configuration of the share",
                    in_words(expected),
                    ended.detail
                )));
            }
        }
    }
    Ok(passed)
}

fn in_words(expected: Expected) -> String {
    match expected {
        Expected::Success => "success".to_owned(),
        Expected::Failure(number) => Named(number).to_string(),
        Expected::AnyFailure => "a refusal".to_owned(),
        Expected::Anything => "an answer".to_owned(),
    }
}

fn checks() -> Vec<Check> {
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
    Check { name, call: SmbCall { op, expected: Expected::Success } }
}

fn refused(name: &'static str, status: u32, op: SmbOp) -> Check {
    Check { name, call: SmbCall { op, expected: Expected::Failure(status) } }
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
        done("read back", read(0, LARGE_BYTES, LARGE_BYTES)),
        done("read back behind that", read(large + 4_096, 4_096, 4_096)),
        done("read back up to the end", read(2 * large - 511, 4_096, 512)),
        refused("read beyond the end", status::END_OF_FILE, read(2 * large + 1, 4_096, 0)),
        done("write over what is there", write(4_096, 61_440)),
        done("read back what was written over", read(0, LARGE_BYTES, LARGE_BYTES)),
    ]
}

fn sizes() -> Vec<Check> {
    let level = FileLevel::Standard;
    let set = |set| SmbOp::SetFile { handle: FIRST, set };
    vec![
        done("query an open file", SmbOp::QueryFile { handle: FIRST, level }),
        done("set times of an open file", set(FileChange::Basic)),
        done("set the size of an open file", set(FileChange::EndOfFile(u64::from(CUT_BYTES)))),
        done("read what the new size leaves", read(0, 4_096, CUT_BYTES)),
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
        Check { name: "lock what another handle holds", call: refused },
        done("unlock", unlock(FIRST)),
        done("lock what was unlocked", lock(SECOND)),
        done("unlock that", unlock(SECOND)),
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
        refused("query a missing path", missing, query("none.dat")),
        done("find a name", find("data.dat")),
        done("find names by a pattern", find("*")),
        refused("find without a match", status::NO_SUCH_FILE, find("none*.dat")),
        done("rename", rename()),
        refused("query the old name", missing, query("data.dat")),
        done("query the new name", query("other.dat")),
        done("make a file of the old name", create("data.dat", FIRST, Disposition::OpenIf)),
        done("close it", SmbOp::Close { handle: FIRST }),
        refused("rename to a name that exists", status::OBJECT_NAME_COLLISION, rename()),
        done("remove a file", SmbOp::Unlink { path: at("other.dat") }),
        refused("query a removed name", missing, query("other.dat")),
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
        ),
        done("remove an empty directory", SmbOp::Rmdir { path }),
        refused(
            "query a removed directory",
            status::OBJECT_NAME_NOT_FOUND,
            SmbOp::QueryPath { path, level: FileLevel::Basic },
        ),
    ]
}

fn end() -> Vec<Check> {
    vec![
        done("remove the directory of the checks", SmbOp::Deltree { path: scratch() }),
        refused(
            "query the directory of the checks",
            status::OBJECT_NAME_NOT_FOUND,
            SmbOp::QueryPath { path: scratch(), level: FileLevel::Basic },
        ),
    ]
}
