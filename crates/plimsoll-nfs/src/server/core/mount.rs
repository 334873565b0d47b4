//! MOUNT versions 1 and 3: handles for paths.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::mount::{
    ExportEntry, ExportRes, Flavors, Mount1Ok, Mount1Res, Mount3Ok, Mount3Res, MountArgs,
    MountEntry, MountReply, MountStatus, Procedure, UnmountArgs, VERSION_1,
};
use crate::wire::rpc::{AUTH_NONE, AUTH_SYS, ReplyOutcome};
use crate::wire::xdr::Words;
use crate::wire::{Encode as _, List, Name, Path};

use super::v2::handle2;
use super::v3::handle3;
use super::{EXPORT, NfsCore, Turn};
use crate::server::store::{FileAttributes, FileKind, Object, Place, Status3};

/// Mounts remembered for DUMP; later ones are served and not listed.
const MOUNTS_MAX: usize = 1024;
/// Deepest path below the export that can be mounted.
const DEPTH_MAX: usize = 128;

/// Who mounted what, as far as they said so.
#[derive(Debug, Default)]
pub(super) struct Mounts(Mutex<BTreeSet<(IpAddr, Vec<u8>)>>);

impl Mounts {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<(IpAddr, Vec<u8>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, client: IpAddr, path: &[u8]) {
        let mut all = self.lock();
        if all.len() < MOUNTS_MAX {
            all.insert((client, path.to_vec()));
        }
    }
}

pub(super) fn answer(
    core: &NfsCore,
    version: u32,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let client = turn.peer.address;
    let procedure = Procedure::from_number(turn.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        Procedure::Null => turn.arguments::<()>()?,
        Procedure::Mount => {
            let path = turn.arguments::<MountArgs<'_>>()?.path.0;
            let found = walk(core, path);
            if found.is_ok() {
                core.mounts.add(client, path);
            }
            let bytes = found.map(|root| core.handle_of(root));
            if version == VERSION_1 {
                let reply = match &bytes {
                    Ok(bytes) => Mount1Res::Ok(Mount1Ok { handle: handle2(*bytes) }),
                    Err(status) => MountReply::Err(*status),
                };
                reply.encode(out);
            } else {
                let flavors = Flavors(Words::new(&[AUTH_SYS, AUTH_NONE]));
                let reply = match &bytes {
                    Ok(bytes) => Mount3Res::Ok(Mount3Ok { handle: handle3(bytes), flavors }),
                    Err(status) => MountReply::Err(*status),
                };
                reply.encode(out);
            }
        }
        Procedure::Dump => {
            turn.arguments::<()>()?;
            let mounts = core.mounts.lock();
            for (host, path) in mounts.iter() {
                let host = host.to_string();
                let directory = Path(path);
                true.encode(out);
                MountEntry { host: Name(host.as_bytes()), directory }.encode(out);
            }
            false.encode(out);
        }
        Procedure::Unmount => {
            let path = turn.arguments::<UnmountArgs<'_>>()?.path.0;
            core.mounts.lock().remove(&(client, path.to_vec()));
        }
        Procedure::UnmountAll => {
            turn.arguments::<()>()?;
            core.mounts.lock().retain(|(host, _)| *host != client);
        }
        Procedure::Export => {
            turn.arguments::<()>()?;
            let directory = Path(EXPORT.as_bytes());
            let export = ExportEntry { directory, groups: List::new(&[]) };
            ExportRes::new(&[export]).encode(out);
        }
    }
    Ok(())
}

/// The directory of a path: the export, or one below it.
fn walk(core: &NfsCore, path: &[u8]) -> Result<Object, MountStatus> {
    let below = path.strip_prefix(EXPORT.as_bytes()).ok_or(MountStatus::ACCES)?;
    if !matches!(below.first(), None | Some(b'/')) {
        return Err(MountStatus::ACCES);
    }
    let names = below.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    let mut at = core.store.root();
    for (depth, name) in names.enumerate() {
        if matches!(name, b"." | b"..") || depth >= DEPTH_MAX {
            return Err(MountStatus::ACCES);
        }
        let (found, attributes): (Object, FileAttributes) =
            core.store.lookup(Place { directory: at, name }).map_err(status)?;
        if attributes.kind != FileKind::Directory {
            return Err(MountStatus::NOTDIR);
        }
        at = found;
    }
    Ok(at)
}

fn status(fault: Status3) -> MountStatus {
    match fault {
        Status3::NOENT | Status3::STALE => MountStatus::NOENT,
        Status3::NOTDIR => MountStatus::NOTDIR,
        Status3::NAMETOOLONG => MountStatus::NAMETOOLONG,
        Status3::ACCES | Status3::INVAL => MountStatus::ACCES,
        _ => MountStatus::IO,
    }
}
