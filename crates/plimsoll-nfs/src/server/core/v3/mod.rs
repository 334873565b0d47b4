//! NFS version 3 (RFC 1813), every procedure.

mod content;
mod listing;
mod names;
mod objects;

use crate::wire::rpc::ReplyOutcome;
use crate::wire::v3::{
    Device, FileAttributes, FileKind, Handle, PostOpAttr, Procedure, SetAttributes,
    SetTime as SetTime3, Status3, TimeSpec3, WccAttributes, WccData,
};

use super::{NfsCore, Turn};
use crate::server::store::{Attributes, Change, Fault, Kind, Place, SetTime, Settings, Time};

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
        Procedure::Read => content::read(core, turn.peer.link, turn.arguments()?, out),
        Procedure::Write => content::write(core, turn.arguments()?, out),
        Procedure::Create => names::create(core, turn.caller, turn.arguments()?, out),
        Procedure::MkDir => names::make_directory(core, turn.caller, turn.arguments()?, out),
        Procedure::Symlink => names::symlink(core, turn.caller, turn.arguments()?, out),
        Procedure::MkNod => names::make_node(core, turn.caller, turn.arguments()?, out),
        Procedure::Remove => names::remove(core, turn.arguments()?, out),
        Procedure::RmDir => names::remove_directory(core, turn.arguments()?, out),
        Procedure::Rename => names::rename(core, turn.arguments()?, out),
        Procedure::Link => names::link(core, turn.arguments()?, out),
        Procedure::ReadDir => listing::read(core, turn.peer.link, turn.arguments()?, out),
        Procedure::ReadDirPlus => {
            listing::read_plus(core, turn.peer.link, turn.arguments()?, out);
        }
        Procedure::FsStat => objects::file_system_state(core, turn.arguments()?, out),
        Procedure::FsInfo => {
            objects::file_system_info(core, turn.peer.link, turn.arguments()?, out);
        }
        Procedure::PathConf => objects::path_limits(core, turn.arguments()?, out),
        Procedure::Commit => content::commit(core, turn.arguments()?, out),
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

pub(super) fn handle3(bytes: &[u8; super::handle::BYTES]) -> Handle<'_> {
    Handle::new(bytes).expect("32 bytes are fewer than 64")
}

impl From<Fault> for Status3 {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotOwner => Self::PERM,
            Fault::NoEntry => Self::NOENT,
            Fault::Io => Self::IO,
            Fault::Access => Self::ACCES,
            Fault::Exists => Self::EXIST,
            Fault::CrossDevice => Self::XDEV,
            Fault::NotDirectory => Self::NOTDIR,
            Fault::IsDirectory => Self::ISDIR,
            Fault::Invalid => Self::INVAL,
            Fault::TooBig => Self::FBIG,
            Fault::NoSpace => Self::NOSPC,
            Fault::ReadOnly => Self::ROFS,
            Fault::TooManyLinks => Self::MLINK,
            Fault::NameTooLong => Self::NAMETOOLONG,
            Fault::NotEmpty => Self::NOTEMPTY,
            Fault::Quota => Self::DQUOT,
            Fault::Stale => Self::STALE,
            Fault::BadHandle => Self::BADHANDLE,
            Fault::NotSync => Self::NOT_SYNC,
            Fault::NotSupported => Self::NOTSUPP,
            Fault::TooSmall => Self::TOOSMALL,
            Fault::ServerFault => Self::SERVERFAULT,
        }
    }
}

fn time3(time: Time) -> TimeSpec3 {
    TimeSpec3 { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

fn time(time: TimeSpec3) -> Time {
    Time { seconds: time.seconds, nanoseconds: time.nanoseconds }
}

fn attributes3(of: &Attributes) -> FileAttributes {
    FileAttributes {
        kind: match of.kind {
            Kind::File => FileKind::Regular,
            Kind::Directory => FileKind::Directory,
            Kind::Link => FileKind::Symlink,
            Kind::Block => FileKind::BlockDevice,
            Kind::Character => FileKind::CharacterDevice,
            Kind::Socket => FileKind::Socket,
            Kind::Fifo => FileKind::Fifo,
        },
        mode: of.mode,
        nlink: of.links,
        uid: of.uid,
        gid: of.gid,
        size: of.size,
        used: of.used,
        device: Device { major: of.device.0, minor: of.device.1 },
        fsid: of.file_system,
        fileid: of.file_id,
        atime: time3(of.accessed),
        mtime: time3(of.modified),
        ctime: time3(of.changed),
    }
}

fn wcc(change: &Change) -> WccData {
    WccData {
        before: change.before.map(|(size, modified, changed)| WccAttributes {
            size,
            mtime: time3(modified),
            ctime: time3(changed),
        }),
        after: change.after.as_ref().map(attributes3),
    }
}

fn settings(wanted: &SetAttributes) -> Settings {
    let set_time = |wish| match wish {
        SetTime3::Keep => SetTime::Keep,
        SetTime3::ServerTime => SetTime::Now,
        SetTime3::To(wish) => SetTime::To(time(wish)),
    };
    Settings {
        mode: wanted.mode,
        uid: wanted.uid,
        gid: wanted.gid,
        size: wanted.size,
        accessed: set_time(wanted.atime),
        modified: set_time(wanted.mtime),
    }
}

impl NfsCore {
    fn place3<'a>(&self, directory: Handle<'_>, name: &'a [u8]) -> Result<Place<'a>, Fault> {
        Ok(Place { directory: self.object_of(directory.bytes())?, name })
    }

    /// Attributes of an object, as far as they can be had after something failed.
    fn after_failure(&self, handle: Handle<'_>) -> PostOpAttr {
        let object = self.object_of(handle.bytes()).ok()?;
        self.store.attributes(object).ok().as_ref().map(attributes3)
    }

    fn wcc_after_failure(&self, handle: Handle<'_>) -> WccData {
        WccData { before: None, after: self.after_failure(handle) }
    }
}
