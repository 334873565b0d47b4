//! The crate `smb2` reads what we write, and we what it writes.

use smb2::msg;
use smb2::pack::{FileTime as TheirTime, Guid, Pack, ReadCursor, Unpack, WriteCursor};
use smb2::types::flags::{Capabilities, FileAccessMask, HeaderFlags, SecurityMode};
use smb2::types::status::NtStatus;
use smb2::types::{self, CreditCharge, MessageId, SessionId, TreeId};

use super::*;
use crate::op::FindLevel;
use crate::wire::create::{CreateAction, Disposition};
use crate::wire::fscc::{Entries, Entry, EntryList};
use crate::wire::negotiate::{NegotiateContext, NegotiateContexts, U16List};

fn packed(message: &impl Pack) -> Vec<u8> {
    let mut cursor = WriteCursor::new();
    message.pack(&mut cursor);
    cursor.into_inner()
}

/// For messages whose offsets count from where the cursor began.
fn packed_behind_header(message: &impl Pack) -> Vec<u8> {
    let mut cursor = WriteCursor::new();
    cursor.write_zeros(HEADER_BYTES);
    message.pack(&mut cursor);
    cursor.into_inner().split_off(HEADER_BYTES)
}

fn unpacked<T: Unpack>(bytes: &[u8]) -> T {
    T::unpack(&mut ReadCursor::new(bytes)).unwrap()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// `$ours` is what `$theirs` is, both ways.
macro_rules! same {
    ($ours:expr, $type:ty, $theirs:expr) => {{
        let (ours, theirs) = ($ours, $theirs);
        let bytes = packed(&theirs);
        prop_assert_eq!(<$type>::decode(&bytes), Ok(ours));
        let read = T::unpack_like(&theirs, &encoded(|out| ours.encode(out)));
        prop_assert_eq!(read, theirs);
    }};
}

/// Names the type to unpack by an example.
struct T;

impl T {
    fn unpack_like<M: Unpack>(_example: &M, bytes: &[u8]) -> M {
        unpacked(bytes)
    }
}

fn file_id() -> impl Strategy<Value = FileId> {
    (any::<u64>(), any::<u64>()).prop_map(|(persistent, volatile)| FileId { persistent, volatile })
}

fn theirs(id: FileId) -> types::FileId {
    types::FileId { persistent: id.persistent, volatile: id.volatile }
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!['a', 'Z', '\\', 'ü', '界', '🗀']), 1..40)
        .prop_map(String::from_iter)
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..100)
}

const OPLOCKS: [(OplockLevel, types::OplockLevel); 5] = [
    (OplockLevel::None, types::OplockLevel::None),
    (OplockLevel::LevelTwo, types::OplockLevel::LevelII),
    (OplockLevel::Exclusive, types::OplockLevel::Exclusive),
    (OplockLevel::Batch, types::OplockLevel::Batch),
    (OplockLevel::Lease, types::OplockLevel::Lease),
];

const DISPOSITIONS: [(Disposition, msg::create::CreateDisposition); 6] = [
    (Disposition::Supersede, msg::create::CreateDisposition::FileSupersede),
    (Disposition::Open, msg::create::CreateDisposition::FileOpen),
    (Disposition::Create, msg::create::CreateDisposition::FileCreate),
    (Disposition::OpenIf, msg::create::CreateDisposition::FileOpenIf),
    (Disposition::Overwrite, msg::create::CreateDisposition::FileOverwrite),
    (Disposition::OverwriteIf, msg::create::CreateDisposition::FileOverwriteIf),
];

proptest! {
    #[test]
    fn headers(
        (command, status, more) in (0usize..19, any::<u32>(), 0u32..16),
        (next_command, message_id, session_id) in (any::<u32>(), any::<u64>(), any::<u64>()),
        (credit_charge, credits, id) in (any::<u16>(), any::<u16>(), any::<u64>()),
        signature in any::<[u8; 16]>(),
    ) {
        let is_async = more & flags::ASYNC != 0;
        let (tree_id, async_id) = if is_async { (0, Some(id)) } else { (id as u32, None) };
        let ours = Header {
            command: Command::ALL[command], status, flags: more, next_command, message_id,
            credit_charge, credits, tree_id, async_id, session_id, signature,
        };
        let theirs = msg::Header {
            credit_charge: CreditCharge(credit_charge),
            status: NtStatus(status),
            command: types::Command::try_from(command as u16).unwrap(),
            credits,
            flags: HeaderFlags::new(more),
            next_command,
            message_id: MessageId(message_id),
            tree_id: (!is_async).then_some(TreeId(tree_id)),
            async_id,
            session_id: SessionId(session_id),
            signature,
        };
        same!(ours, Header, theirs);
    }

    #[test]
    fn creating(
        (oplock, disposition, name, id) in (0usize..5, 0usize..6, name(), file_id()),
        (access, attributes, options) in (any::<u32>(), any::<u32>(), any::<u32>()),
        (size, time) in (any::<u64>(), any::<u64>()),
    ) {
        let (oplock, their_oplock) = OPLOCKS[oplock];
        let (disposition, their_disposition) = DISPOSITIONS[disposition];
        let ours = CreateRequest {
            oplock,
            attributes,
            options,
            ..CreateRequest::new(Text::from(&*name), disposition, access)
        };
        let request = msg::create::CreateRequest {
            requested_oplock_level: their_oplock,
            impersonation_level: msg::create::ImpersonationLevel::Impersonation,
            desired_access: FileAccessMask(access),
            file_attributes: attributes,
            share_access: msg::create::ShareAccess(7),
            create_disposition: their_disposition,
            create_options: options,
            name: name.clone(),
            create_contexts: Vec::new(),
        };
        let bytes = packed(&request);
        prop_assert_eq!(CreateRequest::decode(&bytes), Ok(ours));
        prop_assert_eq!(T::unpack_like(&request, &encoded(|out| ours.encode(out))), request);
        let ours = CreateResponse {
            oplock,
            action: CreateAction::Created,
            last_write_time: FileTime(time),
            end_of_file: size,
            attributes,
            file_id: id,
            ..sample::created(None)
        };
        let response = msg::create::CreateResponse {
            oplock_level: their_oplock,
            flags: 0,
            create_action: msg::create::CreateAction::FileCreated,
            creation_time: TheirTime(1),
            last_access_time: TheirTime(2),
            last_write_time: TheirTime(time),
            change_time: TheirTime(4),
            allocation_size: 8192,
            end_of_file: size,
            file_attributes: attributes,
            file_id: theirs(id),
            create_contexts: Vec::new(),
        };
        same!(ours, CreateResponse, response);
    }

    #[test]
    fn reading_and_writing(
        (length, offset, id, data) in (any::<u32>(), any::<u64>(), file_id(), data()),
        (minimum, remaining, more) in (any::<u32>(), any::<u32>(), 0u8..4),
    ) {
        let read = ReadRequest { flags: more, length, offset, file_id: id, minimum, remaining };
        let request = msg::read::ReadRequest {
            padding: 0x50, flags: more, length, offset, file_id: theirs(id),
            minimum_count: minimum, channel: 0, remaining_bytes: remaining,
            read_channel_info: Vec::new(),
        };
        same!(read, ReadRequest, request);
        let ours = ReadResponse { data: &data, remaining };
        let response = msg::read::ReadResponse {
            data_offset: 0x50, data_remaining: remaining, flags: 0, data: data.clone(),
        };
        same!(ours, ReadResponse<'_>, response);
        let flags = more.into();
        let write = WriteRequest { offset, file_id: id, remaining, flags, data: &data };
        let request = msg::write::WriteRequest {
            data_offset: 0x70, offset, file_id: theirs(id), channel: 0,
            remaining_bytes: remaining, write_channel_info_offset: 0,
            write_channel_info_length: 0, flags, data: data.clone(),
        };
        same!(write, WriteRequest<'_>, request);
        let response = msg::write::WriteResponse {
            count: length, remaining, write_channel_info_offset: 0, write_channel_info_length: 0,
        };
        same!(WriteResponse { count: length, remaining }, WriteResponse, response);
    }

    #[test]
    fn closing_flushing_locking(
        (id, offset, length, more) in (file_id(), any::<u64>(), any::<u64>(), any::<u32>()),
        time in any::<u64>(),
    ) {
        let request = msg::close::CloseRequest { flags: more as u16, file_id: theirs(id) };
        same!(CloseRequest { flags: more as u16, file_id: id }, CloseRequest, request);
        let ours = CloseResponse {
            flags: 1, creation_time: FileTime(time), last_access_time: FileTime(2),
            last_write_time: FileTime(3), change_time: FileTime(4), allocation_size: length,
            end_of_file: offset, attributes: more,
        };
        let response = msg::close::CloseResponse {
            flags: 1, creation_time: TheirTime(time), last_access_time: TheirTime(2),
            last_write_time: TheirTime(3), change_time: TheirTime(4), allocation_size: length,
            end_of_file: offset, file_attributes: more,
        };
        same!(ours, CloseResponse, response);
        let request = msg::flush::FlushRequest { file_id: theirs(id) };
        same!(FlushRequest { file_id: id }, FlushRequest, request);
        let lock = msg::lock::LockElement { offset, length, flags: more };
        let request = msg::lock::LockRequest {
            lock_sequence: 0, file_id: theirs(id), locks: vec![lock],
        };
        same!(LockRequest { file_id: id, offset, length, flags: more }, LockRequest, request);
    }

    #[test]
    fn asking_and_setting(
        (class, length, id, data) in (any::<u8>(), any::<u32>(), file_id(), data()),
        (additional, more, pattern) in (any::<u32>(), any::<u32>(), name()),
    ) {
        let ours = QueryInfoRequest {
            info_type: 2, class, output_bytes_max: length, input: &data, additional, flags: more,
            file_id: id,
        };
        let request = msg::query_info::QueryInfoRequest {
            info_type: msg::query_info::InfoType::Filesystem, file_info_class: class,
            output_buffer_length: length, additional_information: additional, flags: more,
            file_id: theirs(id), input_buffer: data.clone(),
        };
        same!(ours, QueryInfoRequest<'_>, request);
        let response = msg::query_info::QueryInfoResponse { output_buffer: data.clone() };
        same!(QueryInfoResponse { output: &data }, QueryInfoResponse<'_>, response);
        let ours = SetInfoRequest { info_type: 1, class, additional, file_id: id, data: &data };
        let request = msg::set_info::SetInfoRequest {
            info_type: msg::query_info::InfoType::File, file_info_class: class,
            additional_information: additional, file_id: theirs(id), buffer: data.clone(),
        };
        same!(ours, SetInfoRequest<'_>, request);
        let ours = QueryDirectoryRequest {
            class: 37, flags: 1, file_index: more, file_id: id, pattern: Text::from(&*pattern),
            output_bytes_max: length,
        };
        let request = msg::query_directory::QueryDirectoryRequest {
            file_information_class:
                msg::query_directory::FileInformationClass::FileIdBothDirectoryInformation,
            flags: msg::query_directory::QueryDirectoryFlags(1), file_index: more,
            file_id: theirs(id), output_buffer_length: length, file_name: pattern.clone(),
        };
        let bytes = packed(&request);
        prop_assert_eq!(QueryDirectoryRequest::decode(&bytes), Ok(ours));
        prop_assert_eq!(T::unpack_like(&request, &encoded(|out| ours.encode(out))), request);
    }

    #[test]
    fn listings(names in prop::collection::vec(name(), 0..6), id in any::<u64>()) {
        let entries: Vec<Entry<'_>> = names
            .iter()
            .map(|name| Entry {
                file_index: 1, creation_time: FileTime(2), end_of_file: 3, attributes: 0x20,
                file_id: id, name: name.as_str().into(), ..Default::default()
            })
            .collect();
        let mut out = Vec::new();
        let mut list = EntryList::new(FindLevel::IdBoth, &out);
        entries.iter().for_each(|entry| list.push(entry, &mut out));
        let class = msg::query_directory::FileInformationClass::FileIdBothDirectoryInformation;
        let read = if out.is_empty() {
            Vec::new()
        } else {
            msg::directory_info::parse_entries(class, &out).unwrap()
        };
        prop_assert_eq!(&read.iter().map(|entry| &entry.file_name).collect::<Vec<_>>(),
            &names.iter().collect::<Vec<_>>());
        prop_assert!(read.iter().all(|entry| entry.file_id == Some(id) && entry.end_of_file == 3));
        let written = msg::directory_info::pack_entries(class, &read).unwrap();
        let again: Result<Vec<_>, _> = Entries::new(FindLevel::IdBoth, &written).collect();
        prop_assert_eq!(again, Ok(entries));
    }
}

fn guid(bytes: [u8; 16]) -> Guid {
    unpacked(&bytes)
}

#[test]
fn negotiating() {
    let contexts = NegotiateContexts::Values(&sample::CONTEXTS[..3]);
    let ours = NegotiateRequest {
        security_mode: 1,
        capabilities: 0x44,
        client_guid: *b"0123456789abcdef",
        dialects: U16List::Values(&[0x0202, 0x0210, 0x0300, 0x0302, 0x0311]),
        contexts,
    };
    let read: msg::negotiate::NegotiateRequest = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(read.capabilities, Capabilities::new(0x44));
    assert_eq!(read.security_mode, SecurityMode::new(1));
    assert_eq!(read.client_guid, guid(*b"0123456789abcdef"));
    assert_eq!(read.dialects, types::Dialect::ALL);
    assert_eq!(read.negotiate_contexts.len(), 3);
    assert_eq!(NegotiateRequest::decode(&packed(&read)), Ok(ours));
    let response = msg::negotiate::NegotiateResponse {
        security_mode: read.security_mode,
        dialect_revision: types::Dialect::Smb3_1_1,
        server_guid: read.client_guid,
        capabilities: read.capabilities,
        max_transact_size: 1,
        max_read_size: 2,
        max_write_size: 3,
        system_time: 4,
        server_start_time: 5,
        security_buffer: b"token".to_vec(),
        negotiate_contexts: read.negotiate_contexts,
    };
    let bytes = packed(&response);
    let ours = NegotiateResponse::decode(&bytes).unwrap();
    assert_eq!((ours.max_transact, ours.max_read, ours.max_write), (1, 2, 3));
    assert_eq!((ours.token, ours.contexts), (&b"token"[..], contexts));
    let first = ours.contexts.iter().next();
    assert!(
        matches!(first, Some(NegotiateContext::PreauthIntegrity { salt, .. }) if salt == [7; 32])
    );
    let again: msg::negotiate::NegotiateResponse = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(again, response);
}

#[test]
fn logging_on() {
    let ours = SessionSetupRequest {
        flags: 0,
        security_mode: 1,
        capabilities: 1,
        previous_session_id: 9,
        token: b"token",
    };
    let read: msg::session_setup::SessionSetupRequest = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!((&read.security_buffer[..], read.previous_session_id), (&b"token"[..], 9));
    assert_eq!(SessionSetupRequest::decode(&packed(&read)), Ok(ours));
    let ours = SessionSetupResponse { flags: 1, token: b"answer" };
    let read: msg::session_setup::SessionSetupResponse = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(SessionSetupResponse::decode(&packed(&read)), Ok(ours));
    let ours = TreeConnectRequest { flags: 0, path: r"\\server\share".into() };
    let read: msg::tree_connect::TreeConnectRequest = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(read.path, r"\\server\share");
    assert_eq!(TreeConnectRequest::decode(&packed(&read)), Ok(ours));
    let ours = TreeConnectResponse {
        share_type: 1,
        share_flags: 0x8000,
        capabilities: 8,
        maximal_access: 7,
    };
    let read: msg::tree_connect::TreeConnectResponse = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(TreeConnectResponse::decode(&packed(&read)), Ok(ours));
}

#[test]
fn what_is_encrypted_controlled_or_broken() {
    let ours = TransformHeader {
        signature: [1; 16],
        nonce: [2; 16],
        message_bytes: 3,
        flags: 1,
        session_id: 4,
    };
    let bytes = encoded(|out| ours.encode(out));
    let read: msg::transform::TransformHeader = unpacked(&bytes);
    assert_eq!((read.original_message_size, read.session_id), (3, SessionId(4)));
    assert_eq!(packed(&read), bytes);
    let ours = OplockBreak { level: OplockLevel::LevelTwo, file_id: sample::FILE_ID };
    let read: msg::oplock_break::OplockBreak = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(Break::decode(&packed(&read)), Ok(Break::Oplock(ours)));
    let (code, file_id) = (0x0014_0204, sample::FILE_ID);
    let (max_input, max_output, flags) = (1, 2, 1);
    let ours = IoctlRequest { code, file_id, input: b"in", max_input, max_output, flags };
    let read: msg::ioctl::IoctlRequest = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(IoctlRequest::decode(&packed_behind_header(&read)), Ok(ours));
    let ours = IoctlResponse { code, file_id, output: b"out" };
    let read: msg::ioctl::IoctlResponse = unpacked(&encoded(|out| ours.encode(out)));
    assert_eq!(IoctlResponse::decode(&packed_behind_header(&read)), Ok(ours));
}
