//! Messages byte by byte, as the tables of MS-SMB2 and MS-FSCC have them.

use super::super::create::{Disposition, Lease, LeaseVersion};
use super::super::fscc::{Entries, SetFile, Streams};
use super::super::header::flags;
use super::super::negotiate::{NegotiateContext, NegotiateContexts, U16List};
use super::super::*;
use super::sample::{FILE_ID, created, created_with_contexts};
use crate::op::FindLevel;
use crate::wire::header::{AUTHENTICATED_AT, MessageForm, form};
use crate::wire::info::{FSCTL_VALIDATE_NEGOTIATE_INFO, ValidateNegotiateRequest};

/// Bytes from hexadecimal digits; what is in parentheses says what they are.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let mut comment = 0;
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|char| {
            comment += i32::from(char == '(');
            comment -= i32::from(char == ')');
            (comment == 0).then(|| char.to_digit(16)).flatten().map(|digit| digit as u8)
        })
        .collect();
    digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
}

fn check(encode: impl FnOnce(&mut Vec<u8>), expected: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    assert_eq!(out, hex(expected));
    out
}

const FILE_ID_HEX: &str = "2211000000000000 4433000000000000";

#[test]
fn a_header_of_either_form() {
    let sync = Header {
        status: 0x1234,
        flags: flags::RELATED | flags::SIGNED,
        next_command: 0x78,
        message_id: 0x0102_0304_0506_0708,
        credit_charge: 2,
        credits: 64,
        tree_id: 5,
        session_id: 0x1000_0000_0000_0001,
        signature: *b"0123456789abcdef",
        ..Header::new(Command::Close)
    };
    let expected = "FE534D42 4000 (CreditCharge) 0200 (Status) 34120000 (Command) 0600 \
        (Credits) 4000 (Flags) 0C000000 (NextCommand) 78000000 (MessageId) 0807060504030201 \
        (Reserved) 00000000 (TreeId) 05000000 (SessionId) 0100000000000010 \
        (Signature) 30313233343536373839616263646566";
    let bytes = check(|out| sync.encode(out), expected);
    assert_eq!(Header::decode(&bytes), Ok(sync));
    let pending = Header {
        status: status::PENDING,
        flags: flags::RESPONSE | flags::ASYNC,
        async_id: Some(0x99),
        ..Header::new(Command::OplockBreak)
    };
    let expected = "FE534D42 4000 0000 03010000 1200 0000 03000000 00000000 0000000000000000 \
        (AsyncId) 9900000000000000 0000000000000000 00000000000000000000000000000000";
    let bytes = check(|out| pending.encode(out), expected);
    assert_eq!(Header::decode(&bytes), Ok(pending));
}

#[test]
fn a_transform_header() {
    let header = TransformHeader {
        signature: [1; 16],
        nonce: [2; 16],
        message_bytes: 0x90,
        flags: 1,
        session_id: 0x11,
    };
    let expected = "FD534D42 01010101010101010101010101010101 02020202020202020202020202020202 \
        (OriginalMessageSize) 90000000 (Reserved) 0000 (Flags) 0100 1100000000000000";
    let bytes = check(|out| header.encode(out), expected);
    assert_eq!(TransformHeader::decode(&bytes), Ok(header));
    assert_eq!(bytes[AUTHENTICATED_AT..].len(), 32);
    assert_eq!(form(&bytes), Some(MessageForm::Encrypted));
}

#[test]
fn a_negotiate_request_with_contexts() {
    let request = NegotiateRequest {
        security_mode: 1,
        capabilities: 0x44,
        client_guid: [9; 16],
        dialects: U16List::Values(&[0x0302, 0x0311]),
        contexts: NegotiateContexts::Values(&[
            NegotiateContext::PreauthIntegrity { algorithms: U16List::Values(&[1]), salt: &[5; 4] },
            NegotiateContext::Encryption { ciphers: U16List::Values(&[2, 1]) },
        ]),
    };
    let expected = "2400 (DialectCount) 0200 (SecurityMode) 0100 0000 (Capabilities) 44000000 \
        09090909090909090909090909090909 (NegotiateContextOffset) 68000000 (Count) 0200 0000 \
        (Dialects) 0203 1103 \
        (PREAUTH) 0100 0A00 00000000 (HashAlgorithmCount) 0100 (SaltLength) 0400 0100 05050505 \
        (padding) 000000000000 (ENCRYPTION) 0200 0600 00000000 0200 0200 0100";
    let bytes = check(|out| request.encode(out), expected);
    assert_eq!(NegotiateRequest::decode(&bytes), Ok(request));
}

#[test]
fn a_create_request_with_a_lease() {
    let lease = Lease { key: [7; 16], state: 5, version: LeaseVersion::Two };
    let request = CreateRequest {
        oplock: OplockLevel::Lease,
        attributes: 0x80,
        options: 0x40,
        lease: Some(lease),
        ..CreateRequest::new("ab".into(), Disposition::OpenIf, 0x0012_0089)
    };
    let expected = "3900 00 (OplockLevel) FF (Impersonation) 02000000 (SmbCreateFlags) \
        0000000000000000 0000000000000000 (DesiredAccess) 89001200 (FileAttributes) 80000000 \
        (ShareAccess) 07000000 (Disposition) 03000000 (Options) 40000000 \
        (NameOffset) 7800 (NameLength) 0400 (ContextsOffset) 80000000 (ContextsLength) 4C000000 \
        61006200 (padding) 00000000 \
        (Next) 00000000 (NameOffset) 1000 (NameLength) 0400 0000 (DataOffset) 1800 \
        (DataLength) 34000000 52714C73 (padding) 00000000 \
        07070707070707070707070707070707 (State) 05000000 (Flags) 00000000 \
        (Duration) 0000000000000000 00000000000000000000000000000000 (Epoch) 0000 0000";
    let bytes = check(|out| request.encode(out), expected);
    assert_eq!(CreateRequest::decode(&bytes), Ok(request));
}

#[test]
fn the_first_lease_is_found_among_other_contexts() {
    let lease = Lease { key: [3; 16], state: 7, version: LeaseVersion::One };
    let bytes = created_with_contexts();
    assert_eq!(CreateResponse::decode(&bytes), Ok(created(Some(lease))));
}

#[test]
fn the_root_is_a_create_with_no_name_and_one_byte() {
    let mut out = Vec::new();
    CreateRequest::new(Text::EMPTY, Disposition::Open, 1).encode(&mut out);
    assert_eq!((out.len(), &out[44..48]), (57, &[0x78, 0, 0, 0][..]));
    assert!(CreateRequest::decode(&out).unwrap().name.is_empty());
}

#[test]
fn reading_and_writing() {
    let read =
        ReadRequest { length: 0x1_0000, offset: 0x20, file_id: FILE_ID, ..Default::default() };
    let expected = format!(
        "3100 (Padding) 50 00 (Length) 00000100 (Offset) 2000000000000000 {FILE_ID_HEX} \
         (Minimum) 00000000 (Channel) 00000000 (Remaining) 00000000 0000 0000 (Buffer) 00"
    );
    let bytes = check(|out| read.encode(out), &expected);
    assert_eq!(ReadRequest::decode(&bytes), Ok(read));
    let response = ReadResponse { data: b"abc", remaining: 0 };
    let expected = "1100 (DataOffset) 50 00 (DataLength) 03000000 00000000 00000000 616263";
    let bytes = check(|out| response.encode(out), expected);
    assert_eq!(ReadResponse::decode(&bytes), Ok(response));
    let write = WriteRequest { offset: 0x20, file_id: FILE_ID, data: b"abc", ..Default::default() };
    let expected = format!(
        "3100 (DataOffset) 7000 (Length) 03000000 (Offset) 2000000000000000 {FILE_ID_HEX} \
         (Channel) 00000000 (Remaining) 00000000 0000 0000 (Flags) 00000000 616263"
    );
    let bytes = check(|out| write.encode(out), &expected);
    assert_eq!(WriteRequest::decode(&bytes), Ok(write));
    let written = WriteResponse { count: 3, remaining: 0 };
    let bytes = check(|out| written.encode(out), "1100 0000 03000000 00000000 0000 0000");
    assert_eq!(WriteResponse::decode(&bytes), Ok(written));
}

#[test]
fn closing_locking_and_asking() {
    let expected = format!("1800 0100 00000000 {FILE_ID_HEX}");
    check(|out| CloseRequest { flags: 1, file_id: FILE_ID }.encode(out), &expected);
    let expected = format!("1800 0000 00000000 {FILE_ID_HEX}");
    check(|out| FlushRequest { file_id: FILE_ID }.encode(out), &expected);
    check(|out| EchoRequest {}.encode(out), "0400 0000");
    let lock = LockRequest { file_id: FILE_ID, offset: 1, length: 2, flags: 0x12 };
    let expected = format!(
        "3000 (LockCount) 0100 (Sequence) 00000000 {FILE_ID_HEX} \
         0100000000000000 0200000000000000 (Flags) 12000000 00000000"
    );
    check(|out| lock.encode(out), &expected);
    let query = QueryInfoRequest {
        info_type: 1,
        class: 18,
        output_bytes_max: 0x1000,
        file_id: FILE_ID,
        ..Default::default()
    };
    let expected = format!(
        "2900 01 12 (OutputBufferLength) 00100000 0000 0000 00000000 00000000 00000000 {FILE_ID_HEX}"
    );
    check(|out| query.encode(out), &expected);
    let find = QueryDirectoryRequest {
        class: 37,
        flags: 1,
        file_index: 0,
        file_id: FILE_ID,
        pattern: "*".into(),
        output_bytes_max: 0x1_0000,
    };
    let expected = format!(
        "2100 25 01 00000000 {FILE_ID_HEX} (NameOffset) 6000 (NameLength) 0200 00000100 2A00"
    );
    check(|out| find.encode(out), &expected);
}

#[test]
fn setting_a_name_or_a_length() {
    let rename = SetFile::Rename { replace: true, name: "ab".into() };
    let expected = format!(
        "2100 01 0A (BufferLength) 18000000 (BufferOffset) 6000 0000 00000000 {FILE_ID_HEX} \
         (ReplaceIfExists) 01 00000000000000 (RootDirectory) 0000000000000000 \
         (FileNameLength) 04000000 61006200"
    );
    let bytes = check(|out| SetInfoRequest::encode_file(FILE_ID, &rename, out), &expected);
    let request = SetInfoRequest::decode(&bytes).unwrap();
    assert_eq!(SetFile::decode(request.class, request.data), Ok(Some(rename)));
    let change = SetFile::EndOfFile(0x1234);
    let expected = format!("2100 01 14 08000000 6000 0000 00000000 {FILE_ID_HEX} 3412000000000000");
    check(|out| SetInfoRequest::encode_file(FILE_ID, &change, out), &expected);
    check(|out| SetFile::Disposition(true).encode(out), "01");
}

#[test]
fn what_was_negotiated_is_asked_again() {
    let request = ValidateNegotiateRequest {
        capabilities: 0x7f,
        client_guid: [1; 16],
        security_mode: 1,
        dialects: U16List::Values(&[0x0202, 0x0302]),
    };
    let input = check(
        |out| request.encode(out),
        "7F000000 01010101010101010101010101010101 0100 0200 0202 0203",
    );
    let ioctl = IoctlRequest {
        code: FSCTL_VALIDATE_NEGOTIATE_INFO,
        file_id: FileId::RELATED,
        input: &input,
        max_input: 0,
        max_output: 24,
        flags: 1,
    };
    let expected = "3900 0000 04021400 FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF (InputOffset) 78000000 \
        (InputCount) 1C000000 00000000 (OutputOffset) 00000000 00000000 (MaxOutput) 18000000 \
        (Flags) 01000000 00000000 \
        7F000000 01010101010101010101010101010101 0100 0200 0202 0203";
    check(|out| ioctl.encode(out), expected);
}

#[test]
fn breaks_are_told_apart_by_their_size() {
    let oplock = Break::Oplock(OplockBreak { level: OplockLevel::LevelTwo, file_id: FILE_ID });
    let expected = format!("1800 01 00 00000000 {FILE_ID_HEX}");
    let bytes = check(|out| oplock.encode(out), &expected);
    assert_eq!(Break::decode(&bytes), Ok(oplock));
    let lease = Break::Lease(LeaseBreakNotification {
        new_epoch: 2,
        flags: 1,
        key: [6; 16],
        current_state: 7,
        new_state: 1,
    });
    let expected = "2C00 (NewEpoch) 0200 01000000 06060606060606060606060606060606 07000000 \
        01000000 00000000 00000000 00000000";
    let bytes = check(|out| lease.encode(out), expected);
    assert_eq!(Break::decode(&bytes), Ok(lease));
    let acknowledgement = LeaseBreakAcknowledgement { flags: 0, key: [6; 16], state: 1 };
    let expected = "2400 0000 00000000 06060606060606060606060606060606 01000000 0000000000000000";
    let bytes = check(|out| acknowledgement.encode(out), expected);
    assert_eq!(Break::decode(&bytes), Ok(Break::LeaseAcknowledgement(acknowledgement)));
}

#[test]
fn an_error_has_a_byte_even_without_data() {
    let bytes = check(|out| ErrorResponse::default().encode(out), "0900 00 00 00000000 00");
    assert_eq!(ErrorResponse::decode(&bytes), Ok(ErrorResponse::default()));
}

#[test]
fn a_listing_of_names_and_the_streams_of_a_file() {
    let listing =
        hex("(Next) 10000000 (Index) 00000000 (NameLength) 02000000 6100 (padding) 0000 \
         00000000 05000000 04000000 62006300");
    let entries: Result<Vec<_>, _> = Entries::new(FindLevel::Names, &listing).collect();
    let entries = entries.unwrap();
    assert_eq!(entries[0].name, "a");
    assert_eq!((entries[1].name, entries[1].file_index), (Text::from("bc"), 5));
    let streams =
        hex("00000000 (NameLength) 0E000000 (Size) 0900000000000000 (Allocated) 1000000000000000 \
         3A003A0024004400410054004100");
    let stream = Streams::new(&streams).next().unwrap().unwrap();
    assert_eq!((stream.name, stream.size), (Text::from("::$DATA"), 9));
}
