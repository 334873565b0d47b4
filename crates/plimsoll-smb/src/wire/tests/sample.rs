//! Bodies as they should be, to begin with.

use super::super::bytes::{begin_part, from_header, since, write_at};
use super::super::create::{CreateAction, Disposition, Lease, LeaseVersion};
use super::super::fscc::{
    AllInfo, Entry, EntryList, FsAttributeInfo, FsVolumeInfo, SetFile, StreamInfo, encode_streams,
};
use super::super::negotiate::{NegotiateContext, NegotiateContexts, U16List, dialect};
use super::super::*;
use crate::op::FindLevel;

/// The contexts of a client.
pub(super) const CONTEXTS: &[NegotiateContext<'_>] = &[
    NegotiateContext::PreauthIntegrity { algorithms: U16List::Values(&[1]), salt: &[7; 32] },
    NegotiateContext::Encryption { ciphers: U16List::Values(&[2, 1, 4]) },
    NegotiateContext::Signing { algorithms: U16List::Values(&[1, 2, 0]) },
    NegotiateContext::Other { kind: 5, data: b"s\0e\0r\0v\0e\0r\0" },
    NegotiateContext::Other { kind: 3, data: &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0] },
];

/// An open.
pub(super) const FILE_ID: FileId = FileId { persistent: 0x1122, volatile: 0x3344 };

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// Bodies whose lengths are not fixed, and a few others.
pub(super) fn bodies() -> Vec<Vec<u8>> {
    let contexts = NegotiateContexts::Values(CONTEXTS);
    let negotiate = NegotiateRequest {
        security_mode: 1,
        capabilities: 0x7f,
        client_guid: [1; 16],
        dialects: U16List::Values(&[0x0210, dialect::SMB_3_1_1]),
        contexts,
    };
    let negotiated = NegotiateResponse {
        security_mode: 1,
        dialect: dialect::SMB_3_1_1,
        server_guid: [2; 16],
        capabilities: 0x2f,
        max_transact: 1 << 23,
        max_read: 1 << 23,
        max_write: 1 << 23,
        system_time: FileTime(1),
        start_time: FileTime(0),
        token: b"token",
        contexts,
    };
    let lease = Some(Lease { key: [4; 16], state: 3, version: LeaseVersion::Two });
    let name = Text::from("client00000\\a");
    let create = CreateRequest {
        oplock: OplockLevel::Lease,
        lease,
        ..CreateRequest::new(name, Disposition::OpenIf, 0x12019f)
    };
    let lock = LockRequest { file_id: FILE_ID, offset: 1, length: 2, flags: 0x12 };
    let pattern = Text::from("*");
    vec![
        encoded(|out| negotiate.encode(out)),
        encoded(|out| negotiated.encode(out)),
        encoded(|out| create.encode(out)),
        encoded(|out| created(lease).encode(out)),
        created_with_contexts(),
        encoded(|out| SessionSetupResponse { flags: 1, token: b"token" }.encode(out)),
        encoded(|out| TreeConnectRequest { flags: 0, path: name }.encode(out)),
        encoded(|out| ReadResponse { data: b"data", remaining: 0 }.encode(out)),
        encoded(|out| {
            WriteRequest { offset: 3, file_id: FILE_ID, data: b"data", ..Default::default() }
                .encode(out);
        }),
        encoded(|out| lock.encode(out)),
        encoded(|out| {
            let (class, flags, file_index, file_id) = (37, 1, 0, FILE_ID);
            let output_bytes_max = 65_536;
            QueryDirectoryRequest { class, flags, file_index, file_id, pattern, output_bytes_max }
                .encode(out);
        }),
        encoded(|out| {
            let change = SetFile::Rename { replace: true, name };
            SetInfoRequest::encode_file(FILE_ID, &change, out);
        }),
        encoded(|out| IoctlResponse { code: 1, file_id: FILE_ID, output: b"out" }.encode(out)),
        encoded(|out| LeaseBreakNotification::default().encode(out)),
        encoded(|out| LeaseBreakAcknowledgement::default().encode(out)),
        encoded(|out| AllInfo { name, ..Default::default() }.encode(out)),
        encoded(|out| FsVolumeInfo { label: name, ..Default::default() }.encode(out)),
        encoded(|out| FsAttributeInfo { name, ..Default::default() }.encode(out)),
        encoded(|out| encode_streams(&[StreamInfo { name, ..Default::default() }; 3], out)),
        encoded(|out| Header { async_id: Some(5), ..Header::new(Command::Read) }.encode(out)),
        listing(FindLevel::IdBoth),
        listing(FindLevel::Names),
        super::compound(),
    ]
}

/// An open that was made.
pub(super) fn created(lease: Option<Lease>) -> CreateResponse {
    CreateResponse {
        oplock: OplockLevel::Batch,
        action: CreateAction::Created,
        creation_time: FileTime(1),
        last_access_time: FileTime(2),
        last_write_time: FileTime(3),
        change_time: FileTime(4),
        allocation_size: 8192,
        end_of_file: 5000,
        attributes: 0x20,
        file_id: FILE_ID,
        lease,
    }
}

/// The answer to an open, with a lease of each version and something else before and behind.
pub(super) fn created_with_contexts() -> Vec<u8> {
    let lease_one = [&[3; 16][..], &[7, 0, 0, 0], &[0; 12]].concat();
    let lease_two =
        [&[4; 16][..], &[3, 0, 0, 0, 6, 0, 0, 0], &[0; 8], &[5; 16], &[9, 0, 0, 0]].concat();
    let contexts: [(&[u8; 4], &[u8]); 4] =
        [(b"MxAc", &[]), (b"RqLs", &lease_one), (b"RqLs", &lease_two), (b"QFid", &[1, 2, 3])];
    let mut out = encoded(|out| created(None).encode(out));
    let (at, mut previous) = (out.len(), None);
    for (name, data) in contexts {
        begin_part(&mut out, at, &mut previous);
        let data_at: u8 = if data.is_empty() { 0 } else { 24 };
        out.extend_from_slice(&[
            0,
            0,
            0,
            0,
            16,
            0,
            4,
            0,
            0,
            0,
            data_at,
            0,
            data.len() as u8,
            0,
            0,
            0,
        ]);
        out.extend_from_slice(name);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(data);
    }
    let length = since(&out, at);
    write_at(&mut out, 80, &from_header(at));
    write_at(&mut out, 84, &length);
    out
}

fn listing(level: FindLevel) -> Vec<u8> {
    encoded(|out| {
        let mut list = EntryList::new(level, out);
        for name in [".", "..", "a", "long-file.name"] {
            let short_name = Text::from("LONG-F~1.NAM");
            let entry = Entry { name: name.into(), short_name, ..Default::default() };
            list.push(&entry, out);
        }
    })
}
