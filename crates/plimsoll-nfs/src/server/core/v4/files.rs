//! Files: OPEN, CLOSE and the data between. RFC 8881 §18.2, §18.3, §18.16, §18.22, §18.32

use super::attributes::{change, current, settings};
use super::context::Compound;
use super::delegations::settle_name;
use super::names::change_info;
use super::state::INVALID;
use super::{component, delegations};
use crate::server::core::STREAM_DATA_BYTES_MAX;
use crate::server::store::{Creation, FileKind, New, NodePath, Object, WccData};
use crate::wire::Encode as _;
use crate::wire::v4::{
    Attributes4, Bitmap, ChangeInfo, CloseArgs, CommitArgs4, OpenArgs, OpenClaim, OpenHow, OpenOk,
    ReadArgs4, StateId, Status4, WriteArgs4, WriteOk4, share,
};

/// Bytes before the data of a READ: end of file, length of the data.
const READ_HEAD_BYTES: usize = 8;

/// Reads straight into the reply.
pub(super) fn read(
    compound: &Compound<'_>,
    args: &ReadArgs4,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let object = file(compound)?;
    let state = compound.resolve(args.state)?;
    compound.session.client.open_files().check(object, state, share::READ)?;
    let data_at = out.len() + READ_HEAD_BYTES;
    out.resize(data_at, 0);
    let count = args.count.min(STREAM_DATA_BYTES_MAX);
    let done = compound.core.store.read(object, args.offset, count, out)?;
    let count = (out.len() - data_at) as u32;
    out.resize(data_at + count.next_multiple_of(4) as usize, 0);
    let head = [u32::from(done.at_end), count].map(u32::to_be_bytes);
    out[data_at - READ_HEAD_BYTES..data_at].copy_from_slice(head.as_flattened());
    Ok(())
}

pub(super) fn write(
    compound: &Compound<'_>,
    args: &WriteArgs4<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let object = file(compound)?;
    let state = compound.resolve(args.state)?;
    compound.session.client.open_files().check(object, state, share::WRITE)?;
    let store = &compound.core.store;
    store.write(object, args.offset, args.data)?;
    let (count, verifier) = (args.data.len() as u32, store.write_verifier());
    WriteOk4 { count, committed: args.stable, verifier }.encode(out);
    Ok(())
}

/// Nothing waits to be written: returns only the verifier.
pub(super) fn commit(
    compound: &Compound<'_>,
    _: CommitArgs4,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let store = &compound.core.store;
    store.commit(file(compound)?)?;
    store.write_verifier().encode(out);
    Ok(())
}

/// The current filehandle, which is no directory of the pseudo file system.
fn file(compound: &Compound<'_>) -> Result<Object, Status4> {
    match compound.object()? {
        super::PSEUDO_ROOT => Err(Status4::ISDIR),
        object => Ok(object),
    }
}

pub(super) fn open(
    compound: &mut Compound<'_>,
    args: &OpenArgs<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let access = args.access & share::ACCESS_MASK;
    if access == 0 {
        return Err(Status4::INVAL);
    }
    if args.deny != 0 {
        return Err(Status4::NOTSUPP);
    }
    check_grace(compound, &args.claim)?;
    let opened = match args.claim {
        OpenClaim::Null(name) => by_name(compound, name.0, &args.how)?,
        OpenClaim::Handle | OpenClaim::Previous { .. } => {
            if args.how != OpenHow::NoCreate {
                return Err(Status4::INVAL);
            }
            let object = file(compound)?;
            let change = change(&current(compound.core, object)?);
            let change = ChangeInfo { atomic: true, before: change, after: change };
            Opened { object, change, set: Bitmap::default() }
        }
    };
    let Opened { object, change, set } = opened;
    check_kind(current(compound.core, object)?.kind)?;
    let (state, delegation) = delegations::open(compound, object, args.owner.0, args.access)?;
    compound.set_object(object);
    compound.set_state(state);
    OpenOk { state, change, flags: 0, set, delegation }.encode(out);
    Ok(())
}

/// What OPEN opens, and what it changed for that.
struct Opened {
    object: Object,
    change: ChangeInfo,
    set: Bitmap,
}

/// New files are opened after the client has reclaimed its old ones, and after the grace period;
/// old ones before. RFC 8881 §8.4.2.1, §18.51.3
fn check_grace(compound: &Compound<'_>, claim: &OpenClaim<'_>) -> Result<(), Status4> {
    let has_reclaimed = compound.session.client.has_reclaimed();
    let is_in_grace = compound.v4().is_in_grace();
    match claim {
        OpenClaim::Previous { .. } if has_reclaimed || !is_in_grace => Err(Status4::NO_GRACE),
        OpenClaim::Null(_) | OpenClaim::Handle if !has_reclaimed || is_in_grace => {
            Err(Status4::GRACE)
        }
        _ => Ok(()),
    }
}

fn check_kind(kind: FileKind) -> Result<(), Status4> {
    match kind {
        FileKind::Regular => Ok(()),
        FileKind::Directory => Err(Status4::ISDIR),
        FileKind::Symlink => Err(Status4::SYMLINK),
        _ => Err(Status4::WRONG_TYPE),
    }
}

fn by_name(compound: &Compound<'_>, name: &[u8], how: &OpenHow<'_>) -> Result<Opened, Status4> {
    let (core, store) = (compound.core, &compound.core.store);
    let directory = compound.changeable()?;
    let path = NodePath { directory, name: component(name)? };
    let (creation, attributes): (Creation, &Attributes4<'_>) = match how {
        OpenHow::NoCreate => {
            let (object, _) = store.lookup(path)?;
            let change = change_info(core, directory, WccData::NONE)?;
            return Ok(Opened { object, change, set: Bitmap::default() });
        }
        OpenHow::Unchecked(attributes) => (Creation::Unchecked, attributes),
        OpenHow::Guarded(attributes) => (Creation::Guarded, attributes),
    };
    let settings = settings(attributes)?;
    settle_name(compound, path)?;
    match store.create(path, New::File(creation), &settings, compound.context.caller) {
        Ok(made) => {
            let change = change_info(core, directory, made.directory)?;
            Ok(Opened { object: made.object, change, set: attributes.mask() })
        }
        // Something else than a file has the name.
        Err(status) if creation == Creation::Unchecked => {
            let (_, existing) = store.lookup(path)?;
            check_kind(existing.kind)?;
            Err(status.into())
        }
        Err(status) => Err(status.into()),
    }
}

pub(super) fn close(
    compound: &mut Compound<'_>,
    args: &CloseArgs,
    out: &mut Vec<u8>,
) -> Result<(), Status4> {
    let state = compound.resolve(args.state)?;
    let object = compound.object()?;
    compound.session.client.open_files().close(object, state)?;
    ended(compound, object, state);
    compound.set_state(INVALID);
    INVALID.encode(out);
    Ok(())
}

pub(super) fn return_delegation(compound: &Compound<'_>, state: StateId) -> Result<(), Status4> {
    let (object, state) = (compound.object()?, compound.resolve(state)?);
    compound.session.client.open_files().return_delegation(object, state)?;
    ended(compound, object, state);
    Ok(())
}

fn ended(compound: &Compound<'_>, object: Object, state: StateId) {
    if let Some(delegations) = &compound.v4().delegations {
        delegations.end(object, state);
    }
}
