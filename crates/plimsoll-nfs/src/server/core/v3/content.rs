//! Content of files: READ, WRITE, COMMIT.

use crate::wire::Encode as _;
use crate::wire::v3::{
    CommitArgs, CommitOk, CommitRes, ReadArgs, ReadOk, ReadRes, WccData, WriteArgs, WriteOk,
    WriteRes,
};

use crate::server::core::{Link, NfsCore};
use crate::server::store::Status3;

/// Bytes before the data of a successful READ: status, attributes behind their flag, count, end
/// of file, length of the data.
const READ_HEAD_BYTES: usize = 4 + 4 + 84 + 4 + 4 + 4;

/// Reads straight into the reply, and puts the head in front of the data afterwards.
pub(super) fn read(core: &NfsCore, link: Link, args: ReadArgs<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let data_at = start + READ_HEAD_BYTES;
    out.resize(data_at, 0);
    let count = args.count.min(link.data_bytes_max());
    let done = core
        .object_of(args.file.bytes())
        .and_then(|object| core.store.read(object, args.offset, count, out));
    let done = match done {
        Ok(done) => done,
        Err(fault) => {
            out.truncate(start);
            return ReadRes::Err(fault, core.after_failure(args.file)).encode(out);
        }
    };
    let count = (out.len() - data_at) as u32;
    out.resize(data_at + count.next_multiple_of(4) as usize, 0);
    let end = out.len();
    let attributes = Some(done.attributes);
    ReadRes::Ok(ReadOk { attributes, count, eof: done.at_end, data: &[] }).encode(out);
    debug_assert_eq!(out.len() - end, READ_HEAD_BYTES);
    out.copy_within(end.., start);
    out.truncate(end);
    out[data_at - 4..data_at].copy_from_slice(&count.to_be_bytes());
}

pub(super) fn write(core: &NfsCore, args: WriteArgs<'_>, out: &mut Vec<u8>) {
    let written = core.object_of(args.file.bytes()).and_then(|object| {
        let data = args.data.get(..args.count as usize).ok_or(Status3::INVAL)?;
        core.store.write(object, args.offset, data)
    });
    match written {
        Ok(change) => WriteRes::Ok(WriteOk {
            wcc: change,
            count: args.count,
            committed: args.stable,
            verifier: core.store.write_verifier(),
        }),
        Err(fault) => WriteRes::Err(fault, core.wcc_after_failure(args.file)),
    }
    .encode(out);
}

/// Nothing waits to be written: only the verifier is told.
pub(super) fn commit(core: &NfsCore, args: CommitArgs<'_>, out: &mut Vec<u8>) {
    let object = core.object_of(args.file.bytes());
    let committed = object.and_then(|object| core.store.commit(object));
    let wcc = WccData { before: None, after: core.after_failure(args.file) };
    match committed {
        Ok(()) => CommitRes::Ok(CommitOk { wcc, verifier: core.store.write_verifier() }),
        Err(fault) => CommitRes::Err(fault, wcc),
    }
    .encode(out);
}
