//! Bodies as they should be, to begin with.

use super::super::create::{
    CreateAction, CreateContext, CreateContexts, Disposition, Lease, LeaseVersion,
};
use super::super::fscc::{
    AllInfo, Entry, EntryList, FsAttributeInfo, FsVolumeInfo, SetFile, StreamInfo, encode_streams,
};
use super::super::negotiate::{NegotiateContext, NegotiateContexts, Words, dialect};
use super::super::*;
use crate::op::FindLevel;

/// The contexts of a client.
pub(super) const CONTEXTS: &[NegotiateContext<'_>] = &[
    NegotiateContext::PreauthIntegrity { algorithms: Words::Values(&[1]), salt: &[7; 32] },
    NegotiateContext::Encryption { ciphers: Words::Values(&[2, 1, 4]) },
    NegotiateContext::Signing { algorithms: Words::Values(&[1, 2, 0]) },
    NegotiateContext::NetName(Text::Utf8("server")),
    NegotiateContext::Other { kind: 3, data: &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0] },
];

/// A lease of each version, and something else.
pub(super) const CREATE_CONTEXTS: &[CreateContext<'_>] = &[
    CreateContext::Other { name: b"MxAc", data: &[] },
    CreateContext::Lease(Lease { key: [3; 16], state: 7, flags: 0, version: LeaseVersion::One }),
    CreateContext::Lease(Lease {
        key: [4; 16],
        state: 3,
        flags: 2,
        version: LeaseVersion::Two { parent_key: Some([5; 16]), epoch: 9 },
    }),
    CreateContext::Other { name: b"QFid", data: &[1, 2, 3] },
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
        dialects: Words::Values(&[dialect::SMB_2_1, dialect::SMB_3_1_1]),
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
    let create_contexts = CreateContexts::Values(CREATE_CONTEXTS);
    let name = Text::from("client00000\\a");
    let create = CreateRequest {
        oplock: OplockLevel::Lease,
        contexts: create_contexts,
        ..CreateRequest::new(name, Disposition::OpenIf, 0x12019f)
    };
    let locks = [LockElement { offset: 1, length: 2, flags: 0x12 }; 2];
    let locks = LockElements::Values(&locks);
    let pattern = Text::from("*");
    vec![
        encoded(|out| negotiate.encode(out)),
        encoded(|out| negotiated.encode(out)),
        encoded(|out| create.encode(out)),
        encoded(|out| created(create_contexts).encode(out)),
        encoded(|out| SessionSetupResponse { flags: 1, token: b"token" }.encode(out)),
        encoded(|out| TreeConnectRequest { flags: 0, path: name }.encode(out)),
        encoded(|out| ReadResponse { data: b"data", remaining: 0 }.encode(out)),
        encoded(|out| {
            WriteRequest { offset: 3, file_id: FILE_ID, data: b"data", ..Default::default() }
                .encode(out);
        }),
        encoded(|out| LockRequest { sequence: 0, file_id: FILE_ID, locks }.encode(out)),
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
pub(super) fn created(contexts: CreateContexts<'_>) -> CreateResponse<'_> {
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
        contexts,
    }
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
