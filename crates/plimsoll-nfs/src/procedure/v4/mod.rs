//! Calls and results of NFSv4.1: each call is one compound, in the form in which the Linux client
//! sends it. RFC 8881 §18
//!
//! SEQUENCE comes first and is left blank: the session that sends the call fills it in.

mod replies;

use super::{Call, Cookie, DIRECTORY_MODE, FILE_MODE};
use crate::handles::OwnedHandle;
use crate::wire::rpc::{CallWriter, Service, encode_call};
use crate::wire::v3::access;
use crate::wire::v4::*;
use crate::wire::xdr::Encode;
use crate::wire::{Name, Path};

pub(super) use self::replies::*;
pub(crate) use self::replies::{Opened, closed, export, opened};

pub(super) const SERVICE: Service = Service { program: PROGRAM, version: VERSION };

/// What a reply about an entry of READDIRPLUS has beside the attributes of files.
const OF_ENTRIES: Bitmap = Bitmap::from_numbers(&[attribute::RDATTR_ERROR, attribute::FILEHANDLE]);
/// What READDIR asks of each entry.
const OF_NAMES: Bitmap = Bitmap::from_numbers(&[attribute::RDATTR_ERROR, attribute::FILE_ID]);
const OF_LIMITS: Bitmap = Bitmap::from_numbers(&[attribute::READ_MAX, attribute::WRITE_MAX]);
/// What may be done with a file, as OPEN's compound asks.
const RIGHTS: u32 = access::READ | access::MODIFY | access::EXTEND | access::EXECUTE;

/// What calls of NFSv4.1 depend on beside their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context4 {
    /// Attributes of files that the server has, of those that are asked for.
    pub attributes: Bitmap,
    /// The open file of a READ or WRITE.
    pub state: StateId,
    /// The server's name of the client. Servers have to ignore it in an OPEN (RFC 8881 §8.8), and
    /// some do not.
    pub client_id: u64,
}

impl Context4 {
    /// Of set-up, which opens no files.
    pub const fn new(attributes: Bitmap) -> Self {
        Self { attributes, state: StateId::ANONYMOUS, client_id: 0 }
    }
}

/// Who opens a file: the server's name of the client, and one of the client's owners.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener<'a> {
    pub(crate) client_id: u64,
    pub(crate) owner: &'a [u8],
    /// Of [`share`]: to read or to write, and whether a delegation is wanted.
    pub(crate) access: u32,
}

/// A call about state, which versions 2 and 3 do not have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StateCall<'a> {
    /// Opens a file by its handle.
    Open(&'a OwnedHandle),
    /// Opens a file by its name.
    OpenByName(&'a OwnedHandle, &'a [u8]),
    /// Opens a file by its name, and makes it if there is none.
    OpenNew(&'a OwnedHandle, &'a [u8]),
    /// Closes a file.
    Close(&'a OwnedHandle),
    /// Gives a delegation back.
    ReturnDelegation(&'a OwnedHandle),
}

/// The blank SEQUENCE of a call whose reply is worth keeping, or not.
const fn blank_sequence(cache: bool) -> SequenceArgs {
    SequenceArgs { session: [0; 16], sequence: 0, slot: 0, highest_slot: 0, cache }
}

fn begin<'o>(to: CallWriter<'o>, cache: bool) -> CompoundWriter<'o> {
    let CallWriter { xid, credential, out } = to;
    encode_call(out, xid, (PROGRAM, VERSION), Procedure::Compound.number(), credential);
    CompoundWriter::request(out).op(Operation::Sequence, &blank_sequence(cache))
}

/// Bytes between the credential of an encoded call and its blank SEQUENCE: the head of the compound
/// and the operation's number.
pub(crate) const SEQUENCE_AFTER: usize = 16;

/// A call without a session: one operation.
pub(crate) fn encode_alone(operation: Operation, arguments: &impl Encode, to: CallWriter<'_>) {
    let CallWriter { xid, credential, out } = to;
    encode_call(out, xid, (PROGRAM, VERSION), Procedure::Compound.number(), credential);
    CompoundWriter::request(out).op(operation, arguments).finish();
}

/// A call with one operation behind SEQUENCE that concerns no file.
pub(crate) fn encode_behind_sequence(
    operation: Operation,
    arguments: &impl Encode,
    to: CallWriter<'_>,
) {
    begin(to, false).op(operation, arguments).finish();
}

/// The way from the root of the server to an export.
pub(crate) fn encode_path(names: &[&[u8]], to: CallWriter<'_>) {
    let mut compound = begin(to, false).op(Operation::PutRootFh, &());
    for name in names {
        compound = compound.op(Operation::Lookup, &Name(name));
    }
    let compound = compound.op(Operation::GetFh, &());
    compound.op(Operation::GetAttr, &attribute::OF_EXPORT).finish();
}

pub(super) fn encode(call: Call<'_>, context: Context4, to: CallWriter<'_>) {
    use Operation as O;
    let Context4 { attributes, state, client_id } = context;
    let on = |to, cache, of: &OwnedHandle| begin(to, cache).op(O::PutFh, &handle(of));
    match call {
        Call::Null => begin(to, false),
        Call::GetAttr(of) => on(to, false, of).op(O::GetAttr, &attributes),
        Call::SetMode(of, mode) => {
            let set = Attributes4 { mode: Some(mode), ..Attributes4::default() };
            set_attributes_of(on(to, true, of), set).op(O::GetAttr, &attributes)
        }
        Call::SetSize(of, size) => {
            let set = Attributes4 { size: Some(size), ..Attributes4::default() };
            set_attributes_of(on(to, true, of), set).op(O::GetAttr, &attributes)
        }
        Call::LookUp(dir, name) => on(to, false, dir)
            .op(O::Lookup, &Name(name))
            .op(O::GetFh, &())
            .op(O::GetAttr, &attributes),
        Call::Access(of, access) => {
            on(to, false, of).op(O::Access, &access).op(O::GetAttr, &attributes)
        }
        Call::ReadLink(link) => on(to, false, link).op(O::ReadLink, &()),
        Call::Read(file, offset, count) => {
            on(to, false, file).op(O::Read, &ReadArgs4 { state, offset, count })
        }
        Call::Write(file, offset, data, stability) => {
            let arguments = WriteArgs4 { state, offset, stable: stability.into(), data };
            on(to, false, file).op(O::Write, &arguments).op(O::GetAttr, &attributes)
        }
        Call::Create(dir, name) => {
            let opener = Opener { client_id, owner: b"set-up", access: SET_UP_ACCESS };
            open_new(on(to, true, dir), opener, name, attributes)
                .op(O::Close, &CloseArgs { seqid: 0, state: StateId::CURRENT })
        }
        Call::MakeDir(dir, name) => {
            make(on(to, true, dir), CreateKind::Directory, name, Some(DIRECTORY_MODE))
                .op(O::GetAttr, &attributes)
        }
        Call::MakeLink(dir, name, text) => {
            make(on(to, true, dir), CreateKind::Link(Path(text)), name, None)
                .op(O::GetAttr, &attributes)
        }
        Call::Remove(dir, name) | Call::RemoveDir(dir, name) => {
            on(to, true, dir).op(O::Remove, &Name(name))
        }
        Call::Rename(dir, from, to_name) => on(to, true, dir)
            .op(O::SaveFh, &())
            .op(O::PutFh, &handle(dir))
            .op(O::Rename, &RenameArgs4 { from: Name(from), to: Name(to_name) }),
        Call::ReadDir(dir, from, bytes) => list(on(to, false, dir), from, bytes, OF_NAMES),
        Call::ReadDirPlus(dir, from, bytes) => {
            list(on(to, false, dir), from, bytes, attributes.or(OF_ENTRIES))
        }
        Call::FsStat(root) => on(to, false, root).op(O::GetAttr, &attribute::OF_SPACE),
        Call::FsInfo(root) => on(to, false, root).op(O::GetAttr, &OF_LIMITS),
        Call::Commit(file) => {
            on(to, true, file).op(O::Commit, &CommitArgs4 { offset: 0, count: 0 })
        }
    }
    .finish();
}

/// Set-up reads nothing through what it opens, and wants nothing delegated.
const SET_UP_ACCESS: u32 = share::BOTH | share::WANT_NONE;

pub(crate) fn encode_state(
    call: StateCall<'_>,
    opener: Opener<'_>,
    context: Context4,
    to: CallWriter<'_>,
) {
    use Operation as O;
    let Context4 { attributes, state, .. } = context;
    let on = |to, of: &OwnedHandle| begin(to, true).op(O::PutFh, &handle(of));
    match call {
        StateCall::Open(file) => {
            let arguments = open(opener, OpenHow::NoCreate, OpenClaim::Handle);
            opened_at(on(to, file).op(O::Open, &arguments), attributes)
        }
        StateCall::OpenByName(dir, name) => {
            let arguments = open(opener, OpenHow::NoCreate, OpenClaim::Null(Name(name)));
            opened_at(on(to, dir).op(O::Open, &arguments), attributes)
        }
        StateCall::OpenNew(dir, name) => open_new(on(to, dir), opener, name, attributes),
        StateCall::Close(file) => {
            on(to, file).op(O::GetAttr, &attributes).op(O::Close, &CloseArgs { seqid: 0, state })
        }
        StateCall::ReturnDelegation(file) => on(to, file).op(O::DelegReturn, &state),
    }
    .finish();
}

#[inline]
fn handle(of: &OwnedHandle) -> Handle4<'_> {
    Opaque(of.as_bytes())
}

fn set_attributes_of<'o>(
    on: CompoundWriter<'o>,
    attributes: Attributes4<'_>,
) -> CompoundWriter<'o> {
    let arguments = SetAttrArgs4 { state: StateId::ANONYMOUS, attributes };
    on.op(Operation::SetAttr, &arguments)
}

fn open<'a>(opener: Opener<'a>, how: OpenHow<'a>, claim: OpenClaim<'a>) -> OpenArgs<'a> {
    let Opener { client_id, owner, access } = opener;
    OpenArgs { seqid: 0, access, deny: 0, client_id, owner: Opaque(owner), how, claim }
}

fn opened_at<'o>(after_open: CompoundWriter<'o>, attributes: Bitmap) -> CompoundWriter<'o> {
    after_open
        .op(Operation::GetFh, &())
        .op(Operation::Access, &RIGHTS)
        .op(Operation::GetAttr, &attributes)
}

/// UNCHECKED, as exclusive creation differs from server to server.
fn open_new<'o>(
    in_dir: CompoundWriter<'o>,
    opener: Opener<'_>,
    name: &[u8],
    attributes: Bitmap,
) -> CompoundWriter<'o> {
    let made = Attributes4 { mode: Some(FILE_MODE), ..Attributes4::default() };
    let arguments = open(opener, OpenHow::Unchecked(made), OpenClaim::Null(Name(name)));
    opened_at(in_dir.op(Operation::Open, &arguments), attributes)
}

fn make<'o>(
    in_dir: CompoundWriter<'o>,
    kind: CreateKind<'_>,
    name: &[u8],
    mode: Option<u32>,
) -> CompoundWriter<'o> {
    let attributes = Attributes4 { mode, ..Attributes4::default() };
    let arguments = CreateArgs4 { kind, name: Name(name), attributes };
    in_dir.op(Operation::Create, &arguments).op(Operation::GetFh, &())
}

fn list<'o>(
    of_dir: CompoundWriter<'o>,
    Cookie { number: cookie, verifier }: Cookie,
    bytes: u32,
    attributes: Bitmap,
) -> CompoundWriter<'o> {
    let arguments =
        ReadDirArgs4 { cookie, verifier, dir_bytes: bytes, bytes_max: bytes, attributes };
    of_dir.op(Operation::ReadDir, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::rpc::Credential;

    #[test]
    fn set_up_opens_under_the_servers_name_of_the_client() {
        const CLIENT_ID: u64 = 0x1122_3344_5566_7788;
        let context = Context4 { client_id: CLIENT_ID, ..Context4::new(attribute::OF_FILES) };
        let mut out = Vec::new();
        let to = CallWriter { xid: 1, credential: &Credential::none(), out: &mut out };
        encode(Call::Create(&OwnedHandle::NONE, b"file"), context, to);
        let mut owner = CLIENT_ID.to_be_bytes().to_vec();
        owner.extend(b"\0\0\0\x06set-up");
        assert!(out.windows(owner.len()).any(|bytes| bytes == owner), "{out:02x?}");
    }
}
