//! The validation phase: before anything is measured, the server shows that it does each
//! operation of the mix by its meaning. All of it happens in a scratch directory of our own.

mod data;
mod names;

use std::fmt;

use plimsoll_protocol::net::SetupError;

use super::handles::OwnedHandle;
use super::mounting::Mounted;
use super::op::Stability;
use super::parameters::NfsVersion;
use super::procedure::results::Attributes;
use super::procedure::{Call, Cookie, FILE_MODE};
use super::refusal::{CallError, NfsStatus};
use super::remote::{Listing, Remote};

/// The scratch directory, below the directory of the file set.
pub const SCRATCH: &str = ".plimsoll-check";

/// Why the server cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// It did something else than the operation means.
    #[error("validation check \"{check}\": expected {expected}, got {got}")]
    Check {
        /// What was checked.
        check: &'static str,
        /// What the operation means.
        expected: String,
        /// What came.
        got: String,
    },
    /// It does not have these operations.
    #[error("the server lacks operations")]
    Lacking(Vec<&'static str>),
    /// A call failed.
    #[error("validation check \"{check}\": {source}")]
    Call {
        /// What was checked.
        check: &'static str,
        /// What happened.
        source: CallError,
    },
}

/// Checks every operation; answers with how many checks passed.
pub fn validate(
    remote: &mut Remote,
    mounted: &Mounted,
    root: &OwnedHandle,
) -> Result<u32, SetupError> {
    let result = all_checks(remote, root);
    let removed = remove_scratch(remote, root);
    match result {
        Err(ValidateError::Call { source: CallError::Stopped, .. }) => Err(SetupError::Stopped),
        Err(ValidateError::Lacking(names)) => Err(refusal(mounted, &names)),
        Err(failed) => Err(SetupError::Unusable(format!(
            "{}: {failed}; a server that does this is not measured: see its log and its export \
             options",
            mounted.place()
        ))),
        Ok(passed) => {
            let place = mounted.place();
            removed.map_err(|e| e.unable_to("remove the scratch directory", place))?;
            Ok(passed)
        }
    }
}

fn all_checks(remote: &mut Remote, root: &OwnedHandle) -> Result<u32, ValidateError> {
    let clear = "make a scratch directory";
    remove_scratch(remote, root).map_err(|source| ValidateError::Call { check: clear, source })?;
    let dir = remote
        .make_dir(root, SCRATCH.as_bytes())
        .map_err(|source| ValidateError::Call { check: clear, source })?;
    let check = "operations that the server has";
    match lacking_in(remote, dir) {
        Ok(lacking) if !lacking.is_empty() => return Err(ValidateError::Lacking(lacking)),
        Err(source @ CallError::Stopped) => return Err(ValidateError::Call { check, source }),
        // What went wrong shows again when the operation is checked.
        Ok(_) | Err(_) => {}
    }
    let mut checks = Checks { remote, dir, passed: 0 };
    data::check(&mut checks)?;
    names::check(&mut checks)?;
    Ok(checks.passed)
}

/// Removes the scratch directory and what is in it; none is as good.
pub fn remove_scratch(remote: &mut Remote, root: &OwnedHandle) -> Result<(), CallError> {
    let Some(found) = remote.find(root, SCRATCH.as_bytes())? else { return Ok(()) };
    for entry in remote.list(&found.handle, Listing::Names)? {
        remove_any(remote, &found.handle, &entry.name)?;
    }
    remote.remove_dir(root, SCRATCH.as_bytes())
}

/// Removes a file, a link or an empty directory; none is as good.
fn remove_any(remote: &mut Remote, dir: &OwnedHandle, name: &[u8]) -> Result<(), CallError> {
    match remote.remove(dir, name) {
        Err(CallError::Status(NfsStatus::NOENT)) => Ok(()),
        Err(error @ (CallError::Status(_) | CallError::Refused(_))) => {
            match remote.remove_dir(dir, name) {
                Err(CallError::Status(_) | CallError::Refused(_)) => Err(error),
                removed => removed,
            }
        }
        removed => removed,
    }
}

/// The checks under way.
struct Checks<'a> {
    remote: &'a mut Remote,
    /// The scratch directory.
    dir: OwnedHandle,
    passed: u32,
}

impl Checks<'_> {
    fn version(&self) -> NfsVersion {
        self.remote.version()
    }

    /// The answer of a call that must succeed.
    fn call<T>(
        &mut self,
        check: &'static str,
        call: impl FnOnce(&mut Remote, &OwnedHandle) -> Result<T, CallError>,
    ) -> Result<T, ValidateError> {
        call(self.remote, &self.dir).map_err(|source| ValidateError::Call { check, source })
    }

    fn same<T: PartialEq + fmt::Display>(
        &mut self,
        check: &'static str,
        expected: T,
        got: T,
    ) -> Result<(), ValidateError> {
        self.holds(check, expected == got, || (expected.to_string(), got.to_string()))
    }

    fn holds(
        &mut self,
        check: &'static str,
        is_good: bool,
        words: impl FnOnce() -> (String, String),
    ) -> Result<(), ValidateError> {
        if !is_good {
            let (expected, got) = words();
            return Err(ValidateError::Check { check, expected, got });
        }
        self.passed += 1;
        Ok(())
    }

    /// The call must fail with this status.
    fn refused<T>(
        &mut self,
        check: &'static str,
        status: NfsStatus,
        call: impl FnOnce(&mut Remote, &OwnedHandle) -> Result<T, CallError>,
    ) -> Result<(), ValidateError> {
        let name = || status.name().unwrap_or("an error").to_owned();
        match call(self.remote, &self.dir) {
            Err(CallError::Status(got)) => {
                self.holds(check, got == status, || (name(), got.to_string()))
            }
            Err(source) => Err(ValidateError::Call { check, source }),
            Ok(_) => self.holds(check, false, || (name(), "success".to_owned())),
        }
    }

    fn attributes(
        &mut self,
        check: &'static str,
        of: &OwnedHandle,
    ) -> Result<Attributes, ValidateError> {
        self.call(check, |remote, _| remote.attributes(of))
    }
}

/// A name in no directory.
const MISSING: &[u8] = b"plimsoll-no-such-name";
const FILE: &[u8] = b"probe";
const LINK: &[u8] = b"probe-link";

/// What the operations are called on.
struct Objects {
    dir: OwnedHandle,
    file: OwnedHandle,
}

/// Refuses a server without all that a run and its set-up call, and names what it lacks.
///
/// Each operation is called once and may fail; only that the server does not have it counts. First
/// on a handle that names nothing, before a byte is written; then in the scratch directory, since
/// some servers look at the handle before they say so.
pub fn refuse_lacking(remote: &mut Remote, mounted: &Mounted) -> Result<(), SetupError> {
    let nothing = mounted.root.inverted();
    match lacking(remote, &Objects { dir: nothing, file: nothing }) {
        Ok(names) if !names.is_empty() => Err(refusal(mounted, &names)),
        Err(CallError::Stopped) => Err(SetupError::Stopped),
        // Some servers hang up on such a handle. What they lack will show when it is used.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The same in an empty directory, which is empty again afterwards.
fn lacking_in(remote: &mut Remote, dir: OwnedHandle) -> Result<Vec<&'static str>, CallError> {
    // Without a file others stand in for it, and CREATE shows in the list.
    let file = remote.create(&dir, FILE).unwrap_or(dir);
    let names = lacking(remote, &Objects { dir, file })?;
    let tidied = [FILE, LINK].iter().try_for_each(|name| remove_any(remote, &dir, name));
    // What the server lacks may be what tidying up needs.
    if names.is_empty() {
        tidied?;
    }
    Ok(names)
}

/// The server cannot be measured.
fn refusal(mounted: &Mounted, names: &[&str]) -> SetupError {
    SetupError::Unusable(format!(
        "{}: the server lacks operations that this suite needs: {}; measure a server that has \
         them, or see whether its configuration turns them off",
        mounted.place(),
        names.join(", "),
    ))
}

fn lacking(remote: &mut Remote, on: &Objects) -> Result<Vec<&'static str>, CallError> {
    let mut names = Vec::new();
    for (name, call) in needed(on, remote.version()) {
        if remote.lacks(call)? {
            names.push(name);
        }
    }
    Ok(names)
}

/// What set-up, the checks and the mixes of the suites call.
fn needed(on: &Objects, version: NfsVersion) -> Vec<(&'static str, Call<'_>)> {
    let (dir, file, begin) = (&on.dir, &on.file, Cookie::default());
    let mut calls = vec![
        ("GETATTR", Call::GetAttr(file)),
        ("SETATTR", Call::SetMode(file, FILE_MODE)),
        ("LOOKUP", Call::LookUp(dir, MISSING)),
        ("READ", Call::Read(file, 0, 1)),
        ("WRITE", Call::Write(file, 0, &[0], Stability::FileSync)),
        ("CREATE", Call::Create(dir, FILE)),
        // The name is taken.
        ("MKDIR", Call::MakeDir(dir, FILE)),
        ("SYMLINK", Call::MakeLink(dir, LINK, FILE)),
        // It is none.
        ("READLINK", Call::ReadLink(file)),
        ("REMOVE", Call::Remove(dir, MISSING)),
        ("RMDIR", Call::RemoveDir(dir, MISSING)),
        ("RENAME", Call::Rename(dir, MISSING, MISSING)),
        ("READDIR", Call::ReadDir(dir, begin, 4_096)),
    ];
    calls.extend(match version {
        NfsVersion::V2 => vec![("STATFS", Call::FsStat(dir))],
        NfsVersion::V3 => vec![
            ("READDIRPLUS", Call::ReadDirPlus(dir, begin, 4_096)),
            ("ACCESS", Call::Access(file, 1)),
            ("FSSTAT", Call::FsStat(dir)),
            ("COMMIT", Call::Commit(file)),
        ],
    });
    calls
}
