//! Content and attributes of a file.

use super::super::fileset::BLOCK_BYTES;
use super::super::handles::OwnedHandle;
use super::super::op::Stability;
use super::super::parameters::NfsVersion;
use super::super::procedure::FILE_MODE;
use super::super::procedure::results::Kind;
use super::super::wire::flaws::Flaw;
use super::super::wire::v3::access;
use super::Checks;
use plimsoll_protocol::net::SetupError;

/// Not a multiple of anything: a partial block, two blocks in one write, a partial one again.
const WRITES: [(u64, usize); 5] =
    [(0, 1_000), (1_000, 7_192), (8_192, 8_192), (16_384, 8_192), (24_576, 333)];
const BYTES: usize = 24_909;

/// Checks CREATE, GETATTR, WRITE, COMMIT, READ, SETATTR, ACCESS and FSSTAT.
pub(super) fn check(checks: &mut Checks<'_>) -> Result<(), SetupError> {
    let file = checks.call("create a file", |remote, dir| remote.create(dir, b"data"))?;
    attributes(checks, &file)?;
    let content: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
    writes(checks, &file, &content)?;
    reads(checks, &file, &content)?;
    overwrite(checks, &file, content)?;
    sizes(checks, &file)?;
    if checks.version() != NfsVersion::V2 {
        rights(checks, &file)?;
    }
    space(checks)
}

fn attributes(checks: &mut Checks<'_>, file: &OwnedHandle) -> Result<(), SetupError> {
    let check = "attributes after create";
    let created = checks.remote.answered();
    let actual = checks.attributes(check, file)?;
    checks.holds(check, actual.kind == Kind::File, || {
        ("a regular file".to_owned(), format!("{:?}", actual.kind))
    })?;
    checks.same("size after create", 0, actual.size)?;
    has_mode(checks, created, FILE_MODE, actual.mode);
    Ok(())
}

/// Servers without permissions of their own ignore modes; nothing that is measured depends on
/// them. `by` is the procedure that was to set the mode.
fn has_mode(checks: &mut Checks<'_>, by: u32, expected: u32, actual: u32) {
    if expected == actual {
        checks.passed += 1
    } else {
        checks.remote.note_of(by, Flaw::ModeNotKept.into())
    }
}

fn writes(checks: &mut Checks<'_>, file: &OwnedHandle, content: &[u8]) -> Result<(), SetupError> {
    let check = "write";
    let mut verifiers = Vec::new();
    for (offset, bytes) in WRITES {
        let data = &content[offset as usize..][..bytes];
        let stability = Stability::Unstable;
        let written =
            checks.call(check, |remote, _| remote.write(file, offset, data, stability))?;
        checks.same("bytes taken by write", bytes as u64, u64::from(written.bytes_of(bytes)))?;
        verifiers.extend(written.verifier);
    }
    let size = checks.attributes("size after write", file)?.size;
    checks.same("size after write", BYTES as u64, size)?;
    if checks.version() == NfsVersion::V2 {
        return Ok(());
    }
    let check = "verifier of commit";
    let committed = checks.call(check, |remote, _| remote.commit(file))?;
    checks.holds(check, verifiers.iter().all(|verifier| *verifier == committed), || {
        ("that of the writes".to_owned(), "another one".to_owned())
    })
}

fn reads(checks: &mut Checks<'_>, file: &OwnedHandle, content: &[u8]) -> Result<(), SetupError> {
    let check = "read back after write";
    let mut at = 0;
    while at < content.len() {
        let expected = (content.len() - at).min(BLOCK_BYTES as usize);
        let read = checks.call(check, |remote, _| remote.read(file, at as u64, BLOCK_BYTES))?;
        checks.same("bytes read back", expected as u64, read.data.len() as u64)?;
        checks.same("count of read", read.data.len() as u64, u64::from(read.count))?;
        let is_same = read.data == content[at..at + expected];
        checks.holds(check, is_same, || {
            let first = read.data.iter().zip(&content[at..]).position(|(a, b)| a != b);
            let offset = at + first.unwrap_or_default();
            ("what was written".to_owned(), format!("other bytes from offset {offset} on"))
        })?;
        at += expected;
        if let Some(is_end) = read.is_end {
            checks.same("end of file", at == content.len(), is_end)?;
        }
    }
    let beyond = checks.call("read beyond the end", |remote, _| {
        remote.read(file, content.len() as u64, BLOCK_BYTES)
    })?;
    checks.same("read beyond the end", 0, beyond.data.len() as u64)
}

fn overwrite(
    checks: &mut Checks<'_>,
    file: &OwnedHandle,
    mut content: Vec<u8>,
) -> Result<(), SetupError> {
    let check = "read back after overwrite";
    let (offset, fresh) = (5_000, [0xa5; 4_000]);
    content[offset..offset + fresh.len()].copy_from_slice(&fresh);
    let stability = Stability::FileSync;
    checks.call(check, |remote, _| remote.write(file, offset as u64, &fresh, stability))?;
    reads_as(checks, check, file, &content[..BLOCK_BYTES as usize])?;
    let size = checks.attributes("size after overwrite", file)?.size;
    checks.same("size after overwrite", BYTES as u64, size)
}

fn reads_as(
    checks: &mut Checks<'_>,
    check: &'static str,
    file: &OwnedHandle,
    content: &[u8],
) -> Result<(), SetupError> {
    let read = checks.call(check, |remote, _| remote.read(file, 0, BLOCK_BYTES))?;
    checks.holds(check, read.data == content, || {
        (format!("{} bytes as written", content.len()), "other bytes".to_owned())
    })
}

fn sizes(checks: &mut Checks<'_>, file: &OwnedHandle) -> Result<(), SetupError> {
    let check = "set size";
    checks.call(check, |remote, _| remote.set_size(file, 100))?;
    let size = checks.attributes(check, file)?.size;
    checks.same(check, 100, size)?;
    let content: Vec<u8> = (0..100_usize).map(|at| (at * 7) as u8).collect();
    reads_as(checks, "read back after set size", file, &content)?;
    for mode in [0o600, FILE_MODE] {
        let check = "set mode";
        checks.call(check, |remote, _| remote.set_mode(file, mode))?;
        let set = checks.remote.answered();
        let got = checks.attributes(check, file)?.mode;
        has_mode(checks, set, mode, got);
    }
    Ok(())
}

fn rights(checks: &mut Checks<'_>, file: &OwnedHandle) -> Result<(), SetupError> {
    let check = "access to one's own file";
    let requested = access::READ | access::MODIFY | access::EXTEND;
    let granted = checks.call(check, |remote, _| remote.access(file, requested))?;
    if granted & !requested != 0 {
        checks.remote.note(Flaw::Access);
    }
    checks.holds(check, granted & requested == requested, || {
        ("to read, modify and extend".to_owned(), format!("bits {granted:#x} of {requested:#x}"))
    })
}

fn space(checks: &mut Checks<'_>) -> Result<(), SetupError> {
    let check = "space of the file system";
    let space = checks.call(check, |remote, dir| remote.space(dir))?;
    let is_good = space.total_bytes > 0
        && space.free_bytes <= space.total_bytes
        && space.available_bytes <= space.total_bytes;
    checks.holds(check, is_good, || {
        let got = format!(
            "{} free, {} available of {}",
            space.free_bytes, space.available_bytes, space.total_bytes
        );
        ("no more free than there is".to_owned(), got)
    })
}
