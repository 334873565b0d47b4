//! MOUNT versions 1 and 3: handles for paths.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::wire::mount::{
    ExportEntry, ExportRes, Flavors, Mount1Res, Mount3Ok, Mount3Res, MountEntry, MountStatus,
    Procedure, VERSION_1,
};
use crate::wire::rpc::{AUTH_NONE, AUTH_SYS, ReplyOutcome};
use crate::wire::v2::Handle2;
use crate::wire::xdr::U32List;
use crate::wire::{Encode as _, List, Name, Path};

use super::v3::handle3;
use super::{CallContext, EXPORT, NfsCore};
use crate::server::store::{FileAttributes, FileKind, NodePath, Object, Status3};

/// Mounts remembered for DUMP; later ones are served and not listed.
const MOUNTS_MAX: usize = 1024;
/// Deepest path below the export that can be mounted.
const DEPTH_MAX: usize = 128;

/// Which client mounted which path, as far as reported.
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
    context: &CallContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let client = context.peer.address;
    let procedure = Procedure::from_number(context.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        Procedure::Null => context.arguments::<()>()?,
        Procedure::Mount => {
            let path = context.arguments::<Path<'_>>()?.0;
            let result = walk(core, path);
            if result.is_ok() {
                core.mounts.add(client, path);
            }
            match result.map(|root| core.handle_of(root)) {
                Err(status) => Mount1Res::Err(status, ()).encode(out),
                Ok(bytes) if version == VERSION_1 => Mount1Res::Ok(Handle2(bytes)).encode(out),
                Ok(bytes) => {
                    let flavors = Flavors(U32List::Values(&[AUTH_SYS, AUTH_NONE]));
                    Mount3Res::Ok(Mount3Ok { handle: handle3(&bytes), flavors }).encode(out);
                }
            }
        }
        Procedure::Dump => {
            context.arguments::<()>()?;
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
            let path = context.arguments::<Path<'_>>()?.0;
            core.mounts.lock().remove(&(client, path.to_vec()));
        }
        Procedure::UnmountAll => {
            context.arguments::<()>()?;
            core.mounts.lock().retain(|(host, _)| *host != client);
        }
        Procedure::Export => {
            context.arguments::<()>()?;
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
        let (child, attributes): (Object, FileAttributes) =
            core.store.lookup(NodePath { directory: at, name }).map_err(status)?;
        if attributes.kind != FileKind::Directory {
            return Err(MountStatus::NOTDIR);
        }
        at = child;
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
