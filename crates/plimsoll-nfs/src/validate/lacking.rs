//! Operations that a server does not have at all. Each is called once and may fail; only that the
//! server does not have it counts. First on a handle that names nothing, before a byte is written;
//! then in the scratch directory, since some servers look at the handle before they say so.

use super::super::handles::OwnedHandle;
use super::super::mounting::Mounted;
use super::super::op::Stability;
use super::super::parameters::NfsVersion;
use super::super::procedure::{Call, Cookie, FILE_MODE};
use super::super::refusal::CallError;
use super::super::remote::Remote;
use super::remove_any;
use plimsoll_protocol::net::SetupError;

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
pub(super) fn lacking_in(
    remote: &mut Remote,
    dir: OwnedHandle,
) -> Result<Vec<&'static str>, CallError> {
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
pub(super) fn refusal(mounted: &Mounted, names: &[&str]) -> SetupError {
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
