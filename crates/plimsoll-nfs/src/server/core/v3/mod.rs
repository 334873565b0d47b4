//! NFS version 3 (RFC 1813), every procedure.

mod names;
mod objects;

use crate::wire::Encode;
use crate::wire::rpc::ReplyOutcome;
use crate::wire::v3::{Handle, PostOpAttr, Procedure, Reply3, Status3, WccData};

pub(super) use self::objects::permitted;

use super::{CallContext, NfsCore};
use crate::server::store::{FileAttributes, NodePath, RemovalKind};

pub(super) fn answer(
    core: &NfsCore,
    context: &CallContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let procedure = Procedure::from_number(context.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        Procedure::Null => context.arguments::<()>()?,
        Procedure::GetAttr => objects::get_attributes(core, context.arguments()?, out),
        Procedure::SetAttr => objects::set_attributes(core, context.arguments()?, out),
        Procedure::Lookup => objects::lookup(core, context.arguments()?, out),
        Procedure::Access => objects::access(core, context.arguments()?, out),
        Procedure::ReadLink => objects::read_link(core, context.arguments()?, out),
        Procedure::Read => objects::read(core, context.peer.link, context.arguments()?, out),
        Procedure::Write => objects::write(core, context.arguments()?, out),
        Procedure::Create => names::create(core, context.caller, context.arguments()?, out),
        Procedure::MkDir => names::make_directory(core, context.caller, context.arguments()?, out),
        Procedure::Symlink => names::symlink(core, context.caller, context.arguments()?, out),
        Procedure::MkNod => names::make_node(core, context.caller, context.arguments()?, out),
        Procedure::Remove => names::remove(core, RemovalKind::File, context.arguments()?, out),
        Procedure::RmDir => {
            names::remove(core, RemovalKind::Directory, context.arguments()?, out);
        }
        Procedure::Rename => names::rename(core, context.arguments()?, out),
        Procedure::Link => names::link(core, context.arguments()?, out),
        Procedure::ReadDir => names::list(core, context.peer.link, context.arguments()?, out),
        Procedure::ReadDirPlus => {
            names::list_plus(core, context.peer.link, context.arguments()?, out);
        }
        Procedure::FsStat => objects::file_system_state(core, context.arguments()?, out),
        Procedure::FsInfo => {
            objects::file_system_info(core, context.peer.link, context.arguments()?, out);
        }
        Procedure::PathConf => objects::path_limits(core, context.arguments()?, out),
        Procedure::Commit => objects::commit(core, context.arguments()?, out),
    }
    Ok(())
}

pub(super) fn is_remembered(procedure: u32) -> bool {
    use Procedure::{Create, Link, MkDir, MkNod, Remove, Rename, RmDir, SetAttr, Symlink};
    matches!(
        Procedure::from_number(procedure),
        Some(SetAttr | Create | MkDir | Symlink | MkNod | Remove | RmDir | Rename | Link)
    )
}

pub(super) fn handle3(bytes: &[u8; super::HANDLE_BYTES]) -> Handle<'_> {
    Handle::new(bytes).expect("32 bytes are fewer than 64")
}

/// Appends the reply to a procedure, with what `failure` gives where it failed.
fn reply<T: Encode, E: Encode>(
    result: Result<T, Status3>,
    failure: impl FnOnce() -> E,
    out: &mut Vec<u8>,
) {
    match result {
        Ok(ok) => Reply3::<_, E>::Ok(ok).encode(out),
        Err(fault) => Reply3::<T, _>::Err(fault, failure()).encode(out),
    }
}

impl NfsCore {
    fn place3<'a>(&self, directory: Handle<'_>, name: &'a [u8]) -> Result<NodePath<'a>, Status3> {
        Ok(NodePath { directory: self.object_of(directory.bytes())?, name })
    }

    fn attributes3(&self, handle: Handle<'_>) -> Result<FileAttributes, Status3> {
        self.object_of(handle.bytes()).and_then(|object| self.store.attributes(object))
    }

    /// Attributes of an object, as far as they can be had after something failed.
    fn after_failure(&self, handle: Handle<'_>) -> PostOpAttr {
        self.attributes3(handle).ok()
    }

    fn wcc_after_failure(&self, handle: Handle<'_>) -> WccData {
        WccData { before: None, after: self.after_failure(handle) }
    }
}
