//! The validation phase: before anything is measured, the server shows that it carries out each
//! operation of the mix correctly. All of it happens in a scratch directory of our own.

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
use super::refusal::CallError;
use super::remote::{Listing, Remote};
use super::wire::v3::Status3;

/// The scratch directory, below the directory of the file set.
pub const SCRATCH: &str = ".plimsoll-check";

/// Checks every operation; answers with how many checks passed.
pub fn validate(
    remote: &mut Remote,
    mounted: &Mounted,
    root: &OwnedHandle,
) -> Result<u32, SetupError> {
    let passed = all_checks(remote, mounted, root);
    let removed = remove_scratch(remote, root);
    let passed = passed?;
    removed.map_err(|e| e.unable_to("remove the scratch directory", mounted.target_label()))?;
    Ok(passed)
}

fn all_checks(
    remote: &mut Remote,
    mounted: &Mounted,
    root: &OwnedHandle,
) -> Result<u32, SetupError> {
    let mut checks = Checks { remote, mounted, dir: *root, passed: 0 };
    let clear = "make a scratch directory";
    checks.call(clear, remove_scratch)?;
    checks.dir = checks.call(clear, |remote, root| remote.make_dir(root, SCRATCH.as_bytes()))?;
    match lacking_in(checks.remote, checks.dir) {
        Ok(lacking) if !lacking.is_empty() => return Err(refusal(mounted, &lacking)),
        Err(CallError::Stopped) => return Err(SetupError::Stopped),
        // The failure shows again when the operation is checked.
        Ok(_) | Err(_) => {}
    }
    data::check(&mut checks)?;
    names::check(&mut checks)?;
    Ok(checks.passed)
}

/// Removes the scratch directory and what is in it, if there is one.
pub fn remove_scratch(remote: &mut Remote, root: &OwnedHandle) -> Result<(), CallError> {
    let Some(scratch) = remote.find(root, SCRATCH.as_bytes())? else { return Ok(()) };
    for entry in remote.list(&scratch.handle, Listing::Names)? {
        remove_any(remote, &scratch.handle, &entry.name)?;
    }
    remote.remove_dir(root, SCRATCH.as_bytes())
}

/// Removes a file, a link or an empty directory, if there is one.
fn remove_any(remote: &mut Remote, dir: &OwnedHandle, name: &[u8]) -> Result<(), CallError> {
    match remote.remove(dir, name) {
        Err(CallError::Status(Status3::NOENT)) => Ok(()),
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
    mounted: &'a Mounted,
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
    ) -> Result<T, SetupError> {
        call(self.remote, &self.dir).map_err(|error| self.failed(check, error))
    }

    /// A call failed.
    fn failed(&self, check: &str, why: CallError) -> SetupError {
        match why {
            CallError::Stopped => SetupError::Stopped,
            why => self.unusable(check, &why.to_string()),
        }
    }

    /// The server did something else than the operation means.
    fn unusable(&self, check: &str, why: &str) -> SetupError {
        SetupError::Unusable(format!(
            "{}: validation check \"{check}\": {why}; a server that does this is not measured: see \
             its log and its export options",
            self.mounted.target_label()
        ))
    }

    fn same<T: PartialEq + fmt::Display>(
        &mut self,
        check: &'static str,
        expected: T,
        got: T,
    ) -> Result<(), SetupError> {
        self.holds(check, expected == got, || (expected.to_string(), got.to_string()))
    }

    fn holds(
        &mut self,
        check: &'static str,
        is_good: bool,
        describe: impl FnOnce() -> (String, String),
    ) -> Result<(), SetupError> {
        if !is_good {
            let (expected, got) = describe();
            return Err(self.unusable(check, &format!("expected {expected}, got {got}")));
        }
        self.passed += 1;
        Ok(())
    }

    /// The call must fail with this status.
    fn refused<T>(
        &mut self,
        check: &'static str,
        status: Status3,
        call: impl FnOnce(&mut Remote, &OwnedHandle) -> Result<T, CallError>,
    ) -> Result<(), SetupError> {
        let name = || status.name().unwrap_or("an error").to_owned();
        match call(self.remote, &self.dir) {
            Err(error @ CallError::Status(got)) => {
                self.holds(check, got == status, || (name(), error.to_string()))
            }
            Err(error) => Err(self.failed(check, error)),
            Ok(_) => self.holds(check, false, || (name(), "success".to_owned())),
        }
    }

    fn attributes(
        &mut self,
        check: &'static str,
        of: &OwnedHandle,
    ) -> Result<Attributes, SetupError> {
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
/// Each operation is called once and may fail; only a missing operation counts. First on a handle
/// that names nothing, before a byte is written; then in the scratch directory, since some servers
/// check the handle before they report that.
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
    // The server may lack what the clean-up needs.
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
        mounted.target_label(),
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
        NfsVersion::V3 | NfsVersion::V4_1 => vec![
            ("READDIRPLUS", Call::ReadDirPlus(dir, begin, 4_096)),
            ("ACCESS", Call::Access(file, 1)),
            ("FSSTAT", Call::FsStat(dir)),
            ("COMMIT", Call::Commit(file)),
        ],
    });
    calls
}
