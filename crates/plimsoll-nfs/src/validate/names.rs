//! Names: lookup, links, listings, removal.

use super::super::handles::OwnedHandle;
use super::super::parameters::NfsVersion;
use super::super::procedure::results::Kind;
use super::super::remote::{Entry, Listing};
use super::super::wire::flaws::Flaw;
use super::super::wire::v3::Status3;
use super::Checks;
use plimsoll_protocol::net::SetupError;

/// Text of the link that is made.
const LINK_TEXT: &[u8] = b"data";
/// Enough names for several pages of [`PAGE_BYTES`].
const FILES: usize = 40;
/// Of a listing; a server may give less, but must go on where it stopped.
const PAGE_BYTES: u32 = 1024;

/// Checks LOOKUP, READLINK, READDIR, READDIRPLUS and REMOVE. The file `data` exists.
pub(super) fn check(checks: &mut Checks<'_>) -> Result<(), SetupError> {
    lookups(checks)?;
    link(checks)?;
    let mut names: Vec<Vec<u8>> = (0..FILES).map(|n| format!("name{n:03}").into_bytes()).collect();
    for name in &names {
        checks.call("create a file", |remote, dir| remote.create(dir, name))?;
    }
    names.extend([b"data".to_vec(), b"link".to_vec()]);
    listings(checks, &names)?;
    removals(checks, &mut names)?;
    listings(checks, &names)
}

fn lookups(checks: &mut Checks<'_>) -> Result<(), SetupError> {
    let check = "look a name up";
    let resolved = checks.call(check, |remote, dir| remote.look_up(dir, b"data"))?;
    let attributes = checks.attributes(check, &resolved.handle)?;
    let is_good = attributes.kind == Kind::File && attributes.size == 100;
    checks.holds(check, is_good, || {
        (
            "the file of 100 bytes".to_owned(),
            format!("{:?}, {} bytes", attributes.kind, attributes.size),
        )
    })?;
    // NFSv2 cannot identify the object otherwise.
    match resolved.attributes.filter(|given| given.file_id != attributes.file_id) {
        Some(_) if checks.version() != NfsVersion::V2 => checks.remote.note(Flaw::OtherObject),
        Some(given) => checks.same("attributes from lookup", attributes.file_id, given.file_id)?,
        None => {}
    }
    checks.refused("look a missing name up", Status3::NOENT, |remote, dir| {
        remote.look_up(dir, b"missing")
    })
}

fn link(checks: &mut Checks<'_>) -> Result<(), SetupError> {
    let check = "text of a symbolic link";
    let link = checks.call(check, |remote, dir| remote.make_link(dir, b"link", LINK_TEXT))?;
    let text = checks.call(check, |remote, _| remote.link_text(&link))?;
    checks.same(check, LINK_TEXT.escape_ascii().to_string(), text.escape_ascii().to_string())?;
    let kind = checks.attributes(check, &link)?.kind;
    checks.holds(check, kind == Kind::Link, || ("a link".to_owned(), format!("{kind:?}")))
}

fn listings(checks: &mut Checks<'_>, names: &[Vec<u8>]) -> Result<(), SetupError> {
    let check = "directory contents (READDIR)";
    let listed = checks.call(check, |remote, dir| remote.list(dir, Listing::Names))?;
    same_names(checks, check, names, &listed)?;
    let check = "directory contents in pages (READDIR)";
    let listed =
        checks.call(check, |remote, dir| remote.list_in(dir, PAGE_BYTES, Listing::Names))?;
    same_names(checks, check, names, &listed)?;
    if checks.version() == NfsVersion::V2 {
        return Ok(());
    }
    let check = "directory contents (READDIRPLUS)";
    let listed = checks.call(check, |remote, dir| remote.list(dir, Listing::Full))?;
    same_names(checks, check, names, &listed)?;
    let link = listed.iter().find(|entry| entry.name == b"link");
    let given = link.and_then(|entry| entry.attributes);
    if given.is_some_and(|given| given.kind != Kind::Link) {
        checks.remote.note(Flaw::OtherObject);
    }
    let data: Option<OwnedHandle> =
        listed.iter().find(|entry| entry.name == b"data").and_then(|entry| entry.handle);
    if let Some(handle) = data {
        let size = checks.attributes("handles from READDIRPLUS", &handle)?.size;
        checks.same("handles from READDIRPLUS", 100, size)?;
    }
    Ok(())
}

fn same_names(
    checks: &mut Checks<'_>,
    check: &'static str,
    names: &[Vec<u8>],
    listed: &[Entry],
) -> Result<(), SetupError> {
    let mut expected: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let mut got: Vec<&[u8]> = listed.iter().map(|entry| entry.name.as_slice()).collect();
    expected.sort_unstable();
    got.sort_unstable();
    checks.holds(check, expected == got, || {
        let missing = expected.iter().find(|name| !got.contains(name));
        let extra = got.iter().find(|name| !expected.contains(name));
        let text = match (missing, extra) {
            (Some(name), _) => format!("{}, without {}", got.len(), name.escape_ascii()),
            (None, Some(name)) => format!("{}, with {}", got.len(), name.escape_ascii()),
            (None, None) => format!("{}, some of them twice", got.len()),
        };
        (format!("the {} names made", expected.len()), text)
    })
}

fn removals(checks: &mut Checks<'_>, names: &mut Vec<Vec<u8>>) -> Result<(), SetupError> {
    for _ in 0..FILES / 2 {
        let name = names.remove(0);
        checks.call("remove a file", |remote, dir| remote.remove(dir, &name))?;
        checks.refused("look a removed name up", Status3::NOENT, |remote, dir| {
            remote.look_up(dir, &name)
        })?;
        checks.refused("remove a removed name", Status3::NOENT, |remote, dir| {
            remote.remove(dir, &name)
        })?;
    }
    Ok(())
}
