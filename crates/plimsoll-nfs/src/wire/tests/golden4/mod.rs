//! Compounds of NFSv4.1 written down word by word from RFC 8881 and its XDR (RFC 5662): those that
//! the Linux client sends, and their replies.

mod callbacks;
mod directories;
mod files;
mod opens;
mod sessions;
mod tshark;

use crate::wire::v4::{
    AccessOk4, Attributes4, Bitmap, ChangeInfo, FileKind4, FsId4, Handle4, Pair32, SequenceArgs,
    SequenceOk, SessionId, StateId, Time4, attribute,
};
use crate::wire::xdr::{Decode, Name, XdrIn};

/// A call and its reply as hexadecimal digits, behind the heads of RPC.
struct Exchange {
    call: String,
    reply: String,
}

/// Arguments of a COMPOUND.
fn call(operations: u32, list: &[&str]) -> String {
    let head = format!("00000000 ; tag\n 00000001 ; minor version\n {operations:08x} ; operations");
    [&[head.as_str()], list].concat().join("\n")
}

/// Result of a COMPOUND.
fn reply(status: u32, results: u32, list: &[&str]) -> String {
    let head = format!("{status:08x} ; status\n 00000000 ; tag\n {results:08x} ; results");
    [&[head.as_str()], list].concat().join("\n")
}

/// The message of these operations is the call, and the call is this message.
macro_rules! check_call {
    ($call:expr, $( $operation:ident $arguments:expr, )*) => {{
        use crate::wire::v4::{CompoundHead, CompoundWriter, Operation};
        let bytes = crate::wire::tests::golden::hex(&$call);
        let mut out = Vec::new();
        CompoundWriter::request(&mut out)$( .op(Operation::$operation, &$arguments) )*.finish();
        assert_eq!(out, bytes);
        let mut input = XdrIn::new(&bytes);
        let operations = [$( Operation::$operation, )*].len() as u32;
        let head = CompoundHead { tag: b"", minor_version: 1, operations };
        assert_eq!(CompoundHead::decode(&mut input), Ok(head));
        $(
            assert_eq!(input.u32(), Ok(Operation::$operation.number()));
            crate::wire::tests::golden4::check_next(&mut input, &$arguments);
        )*
        assert_eq!(input.finish(), Ok(()));
    }};
}

/// The reply with these values of successful operations is these bytes, and is read so.
macro_rules! check_reply {
    ($reply:expr, $( $operation:ident $value:expr, )*) => {{
        use crate::wire::v4::{CompoundReply, Operation, Status4};
        use crate::wire::xdr::Encode;
        let bytes = crate::wire::tests::golden::hex(&$reply);
        let results = [$( Operation::$operation, )*].len() as u32;
        let mut out = Vec::new();
        [0, 0, results].iter().for_each(|word: &u32| word.encode(&mut out));
        $(
            Operation::$operation.number().encode(&mut out);
            Status4::OK.encode(&mut out);
            $value.encode(&mut out);
        )*
        assert_eq!(out, bytes);
        let mut reply = CompoundReply::read(XdrIn::new(&bytes)).unwrap();
        assert_eq!((reply.status, reply.results), (Status4::OK, results));
        $(
            assert_eq!(reply.next(Operation::$operation), Ok(Status4::OK));
            crate::wire::tests::golden4::check_next(&mut reply.input, &$value);
        )*
        assert_eq!(reply.results, 0);
        assert_eq!(reply.input.finish(), Ok(()));
    }};
}

use {check_call, check_reply};

/// Decodes what is next, which is `expected`.
#[track_caller]
fn check_next<'a, T: Decode<'a> + PartialEq + std::fmt::Debug>(
    input: &mut XdrIn<'a>,
    expected: &T,
) {
    assert_eq!(T::decode(input).as_ref(), Ok(expected));
}

const SESSION: SessionId = *b"session of tests";

/// SEQUENCE whose reply is not kept.
const SEQUENCE: &str = "00000035 ; SEQUENCE
    73657373 696f6e20 6f662074 65737473 ; session
    00000007 ; sequence
    00000003 ; slot
    00000005 ; highest slot
    00000000 ; the reply is not cached";

/// SEQUENCE whose reply is kept.
const SEQUENCE_CACHED: &str = "00000035 ; SEQUENCE
    73657373 696f6e20 6f662074 65737473 ; session
    00000007 ; sequence
    00000003 ; slot
    00000005 ; highest slot
    00000001 ; the reply is cached";

fn sequence(cache: bool) -> SequenceArgs {
    SequenceArgs { session: SESSION, sequence: 7, slot: 3, highest_slot: 5, cache }
}

const SEQUENCE_OK: &str = "00000035 00000000 ; SEQUENCE, NFS4_OK
    73657373 696f6e20 6f662074 65737473 ; session
    00000007 ; sequence
    00000003 ; slot
    0000003f ; highest slot
    0000001f ; target of the highest slot
    00000001 ; status flags: SEQ4_STATUS_CB_PATH_DOWN";

fn sequence_ok() -> SequenceOk {
    SequenceOk {
        session: SESSION,
        sequence: 7,
        slot: 3,
        highest_slot: 63,
        target_highest_slot: 31,
        status_flags: crate::wire::v4::sequence_flags::CB_PATH_DOWN,
    }
}

const HANDLE: Handle4<'static> = crate::wire::v4::Opaque(b"\xaa\xbb\xcc\xdd\xee");

const PUTFH: &str = "00000016 ; PUTFH
    00000005 aabbccdd ee000000 ; handle";
const PUTFH_OK: &str = "00000016 00000000 ; PUTFH, NFS4_OK";
const GETFH: &str = "0000000a ; GETFH";
const GETFH_OK: &str = "0000000a 00000000 ; GETFH, NFS4_OK
    00000005 aabbccdd ee000000 ; handle";
const ACCESS: &str = "00000003 ; ACCESS
    0000001f ; READ, LOOKUP, MODIFY, EXTEND, DELETE";
const ACCESS_OK: &str = "00000003 00000000 ; ACCESS, NFS4_OK
    0000001f ; supported
    0000000d ; granted";
const GRANTED: AccessOk4 = AccessOk4 { supported: 0x1f, granted: 0xd };

/// Attributes of files as the Linux client requests them.
const GETATTR: &str = "00000009 ; GETATTR
    00000002 ; words of the bitmap
    0010011a ; 1, 3, 4, 8, 20
    00b0a23a ; 33, 35, 36, 37, 41, 45, 47, 52, 53, 55";

const GETATTR_OK: &str = "00000009 00000000 ; GETATTR, NFS4_OK
    00000002 0010011a 00b0a23a ; bitmap
    00000080 ; bytes of the values
    00000001 ; type: NF4REG
    00000000 00000009 ; change
    00000001 00000002 ; size
    00000000 00000008 00000000 00000001 ; fsid
    00000000 0000002a ; fileid
    000001a4 ; mode
    00000001 ; numlinks
    00000004 31303030 ; owner
    00000003 31303000 ; owner_group
    00000008 00000001 ; rawdev
    00000000 00002000 ; space_used
    00000000 00000001 00000002 ; time_access
    00000000 00000003 00000004 ; time_metadata
    00000000 00000005 00000006 ; time_modify
    00000000 0000002b ; mounted_on_fileid";

fn attributes() -> Attributes4<'static> {
    let time = |seconds, nanoseconds| Some(Time4 { seconds, nanoseconds });
    Attributes4 {
        kind: Some(FileKind4::Regular),
        change: Some(9),
        size: Some(0x1_0000_0002),
        fsid: Some(FsId4 { major: 8, minor: 1 }),
        file_id: Some(42),
        mode: Some(0o644),
        links: Some(1),
        owner: Some(Name(b"1000")),
        owner_group: Some(Name(b"100")),
        raw_device: Some(Pair32 { major: 8, minor: 1 }),
        space_used: Some(0x2000),
        time_access: time(1, 2),
        time_metadata: time(3, 4),
        time_modify: time(5, 6),
        mounted_on_file_id: Some(43),
        ..Attributes4::default()
    }
}

/// The attributes of a new file.
const MODE: &str = "00000002 00000000 00000002 ; bitmap: 33
    00000004 ; bytes of the values
    000001a4 ; mode";

const MODE_SET: Bitmap = Bitmap::from_numbers(&[attribute::MODE]);

fn mode() -> Attributes4<'static> {
    Attributes4 { mode: Some(0o644), ..Attributes4::default() }
}

/// A stateid without its seqid.
const OTHER: &str = "6f746865 72206f66 206f6e65 ; other";

fn state(seqid: u32) -> StateId {
    StateId { seqid, other: *b"other of one" }
}

/// `change` of a directory.
const CHANGE_INFO: &str = "00000001 ; atomic
    00000000 00000008 ; before
    00000000 00000009 ; after";

fn change_info() -> ChangeInfo {
    ChangeInfo { atomic: true, before: 8, after: 9 }
}
