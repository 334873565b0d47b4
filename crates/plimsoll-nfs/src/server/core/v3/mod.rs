//! NFS version 3 (RFC 1813), every procedure.

mod names;
mod objects;

use crate::wire::rpc::ReplyOutcome;
use crate::wire::v3::{Handle, PostOpAttr, Procedure, Status3, WccData};

use super::{NfsCore, Turn};
use crate::server::store::Place;

pub(super) fn answer(
    core: &NfsCore,
    turn: &Turn<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let procedure = Procedure::from_number(turn.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        Procedure::Null => turn.arguments::<()>()?,
        Procedure::GetAttr => objects::get_attributes(core, turn.arguments()?, out),
        Procedure::SetAttr => objects::set_attributes(core, turn.arguments()?, out),
        Procedure::Lookup => objects::lookup(core, turn.arguments()?, out),
        Procedure::Access => objects::access(core, turn.arguments()?, out),
        Procedure::ReadLink => objects::read_link(core, turn.arguments()?, out),
        Procedure::Read => objects::read(core, turn.peer.link, turn.arguments()?, out),
        Procedure::Write => objects::write(core, turn.arguments()?, out),
        Procedure::Create => names::create(core, turn.caller, turn.arguments()?, out),
        Procedure::MkDir => names::make_directory(core, turn.caller, turn.arguments()?, out),
        Procedure::Symlink => names::symlink(core, turn.caller, turn.arguments()?, out),
        Procedure::MkNod => names::make_node(core, turn.caller, turn.arguments()?, out),
        Procedure::Remove => names::remove(core, turn.arguments()?, out),
        Procedure::RmDir => names::remove_directory(core, turn.arguments()?, out),
        Procedure::Rename => names::rename(core, turn.arguments()?, out),
        Procedure::Link => names::link(core, turn.arguments()?, out),
        Procedure::ReadDir => names::list(core, turn.peer.link, turn.arguments()?, out),
        Procedure::ReadDirPlus => {
            names::list_plus(core, turn.peer.link, turn.arguments()?, out);
        }
        Procedure::FsStat => objects::file_system_state(core, turn.arguments()?, out),
        Procedure::FsInfo => {
            objects::file_system_info(core, turn.peer.link, turn.arguments()?, out);
        }
        Procedure::PathConf => objects::path_limits(core, turn.arguments()?, out),
        Procedure::Commit => objects::commit(core, turn.arguments()?, out),
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

impl NfsCore {
    fn place3<'a>(&self, directory: Handle<'_>, name: &'a [u8]) -> Result<Place<'a>, Status3> {
        Ok(Place { directory: self.object_of(directory.bytes())?, name })
    }

    /// Attributes of an object, as far as they can be had after something failed.
    fn after_failure(&self, handle: Handle<'_>) -> PostOpAttr {
        let object = self.object_of(handle.bytes()).ok()?;
        self.store.attributes(object).ok()
    }

    fn wcc_after_failure(&self, handle: Handle<'_>) -> WccData {
        WccData { before: None, after: self.after_failure(handle) }
    }
}
