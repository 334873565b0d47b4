//! Messages written down word by word from the specifications.

use crate::wire::mount::{self, Flavors, Mount3Ok, MountStatus};
use crate::wire::reply::Reply;
use crate::wire::rpc::{self, AuthSys, Credential, ReplyHead, ReplyOutcome};
use crate::wire::v2::{self, Handle2, Reply2};
use crate::wire::v3::{self, Handle, Reply3, Status3, WccData};
use crate::wire::xdr::{Decode, Encode, List, U32List, XdrIn};
use crate::wire::{Path, portmap, record};

/// Bytes from hexadecimal digits and spaces; what follows a `;` in a line is a comment.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .lines()
        .flat_map(|line| line.split(';').next())
        .flat_map(str::bytes)
        .filter(|byte| *byte != b' ')
        .collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// The message is these bytes, and these bytes are the message.
macro_rules! check {
    ($type:ty, $message:expr, $hex:expr) => {{
        let (message, bytes) = ($message, hex($hex));
        assert_eq!(super::encoded(&message), bytes);
        let mut input = XdrIn::new(&bytes);
        assert_eq!(<$type>::decode(&mut input), Ok(message));
        assert_eq!(input.finish(), Ok(()));
    }};
}

const HANDLE: [u8; 5] = [0xaa, 0xbb, 0xcc, 0xdd, 0xee];

fn handle() -> Handle<'static> {
    Handle::new(&HANDLE).unwrap()
}

fn handle2() -> Handle2 {
    Handle2([0x2f; 32])
}

const HANDLE2_HEX: &str = "2f2f2f2f 2f2f2f2f 2f2f2f2f 2f2f2f2f 2f2f2f2f 2f2f2f2f 2f2f2f2f 2f2f2f2f";

fn time(seconds: u32, nanoseconds: u32) -> v3::TimeSpec3 {
    v3::TimeSpec3 { seconds, nanoseconds }
}

fn attributes() -> v3::FileAttributes {
    v3::FileAttributes {
        kind: v3::FileKind::Regular,
        mode: 0o644,
        nlink: 1,
        uid: 1000,
        gid: 100,
        size: 0x1_0000_0002,
        used: 0x2000,
        device: v3::Device { major: 8, minor: 1 },
        fsid: 0x0a0b_0c0d_0e0f_1011,
        fileid: 42,
        atime: time(1, 2),
        mtime: time(3, 4),
        ctime: time(5, 6),
    }
}

/// type, mode, nlink, uid, gid; size; used; rdev; fsid; fileid; atime; mtime; ctime
const ATTRIBUTES_HEX: &str = "00000001 000001a4 00000001 000003e8 00000064
    00000001 00000002 00000000 00002000 00000008 00000001 0a0b0c0d 0e0f1011
    00000000 0000002a 00000001 00000002 00000003 00000004 00000005 00000006";

#[test]
fn a_getattr_call_on_a_stream() {
    let gids = [0, 5];
    let credential = Credential::system(&AuthSys {
        stamp: 0x0102_0304,
        machine: "host".into(),
        uid: 0,
        gid: 0,
        gids: U32List::Values(&gids),
    });
    let mut out = Vec::new();
    let at = record::begin(&mut out);
    let procedure = v3::Procedure::GetAttr.number();
    let program = (v3::PROGRAM, v3::VERSION);
    rpc::encode_call(&mut out, 0x1122_3344, program, procedure, &credential);
    handle().encode(&mut out);
    record::finish(&mut out, at);
    let expected = hex("80000054 ; last fragment, 84 bytes
        11223344 00000000 00000002 ; xid, CALL, RPC version
        000186a3 00000003 00000001 ; 100003, 3, GETATTR
        00000001 00000020 ; AUTH_SYS, 32 bytes
        01020304 00000004 686f7374 00000000 00000000 ; stamp, machine, uid, gid
        00000002 00000000 00000005 ; gids
        00000000 00000000 ; AUTH_NONE
        00000005 aabbccdd ee000000 ; handle");
    assert_eq!(out, expected);
}

#[test]
fn heads_of_replies() {
    let head = |outcome| ReplyHead { xid: 0x1122_3344, outcome };
    check!(
        ReplyHead,
        head(ReplyOutcome::Success),
        "11223344 00000001 00000000 00000000 00000000 00000000"
    );
    check!(
        ReplyHead,
        head(ReplyOutcome::ProgramMismatch { low: 2, high: 4 }),
        "11223344 00000001 00000000 00000000 00000000 00000002 00000002 00000004"
    );
    check!(
        ReplyHead,
        head(ReplyOutcome::RpcMismatch { low: 2, high: 2 }),
        "11223344 00000001 00000001 00000000 00000002 00000002"
    );
    check!(
        ReplyHead,
        head(ReplyOutcome::AuthError(rpc::auth::TOO_WEAK)),
        "11223344 00000001 00000001 00000001 00000005"
    );
    let with_verifier = hex("11223344 00000001 00000000 00000006 00000003 aabbcc00 00000000");
    let mut input = XdrIn::new(&with_verifier);
    assert_eq!(ReplyHead::decode(&mut input), Ok(head(ReplyOutcome::Success)));
    assert!(input.rest().is_empty());
}

#[test]
fn portmapper_and_mount() {
    let mapping = portmap::Mapping { program: 100_005, version: 3, protocol: 17, port: 0 };
    check!(portmap::Mapping, mapping, "000186a5 00000003 00000011 00000000");
    let mappings = [mapping];
    check!(
        portmap::DumpRes,
        List::new(&mappings),
        "00000001 000186a5 00000003 00000011 00000000 00000000"
    );
    check!(Path, Path::from("/srv"), "00000004 2f737276");
    check!(
        mount::Mount3Res,
        Reply::Ok(Mount3Ok { handle: handle(), flavors: Flavors(U32List::Values(&[1, 0])) }),
        "00000000 00000005 aabbccdd ee000000 00000002 00000001 00000000"
    );
    check!(mount::Mount3Res, Reply::Err(MountStatus::ACCES, ()), "0000000d");
    check!(mount::Mount1Res, Reply::Ok(handle2()), &format!("00000000 {HANDLE2_HEX}"));
    let groups = ["a".into(), "bc".into()];
    let exports = [mount::ExportEntry { directory: "/e".into(), groups: List::new(&groups) }];
    check!(
        mount::ExportRes,
        List::new(&exports),
        "00000001 00000002 2f650000 00000001 00000001 61000000 00000001 00000002 62630000 00000000
        00000000"
    );
}

#[test]
fn version_3_attributes() {
    check!(v3::GetAttrRes, Reply3::Ok(attributes()), &format!("00000000 {ATTRIBUTES_HEX}"));
    check!(v3::GetAttrRes, Reply3::Err(Status3::STALE, ()), "00000046");
    let set = v3::SetAttributes {
        mode: Some(0o644),
        size: Some(7),
        atime: v3::SetTime::ServerTime,
        mtime: v3::SetTime::To(time(8, 9)),
        ..v3::SetAttributes::default()
    };
    check!(
        v3::SetAttrArgs,
        v3::SetAttrArgs { object: handle(), attributes: set, guard: Some(time(1, 2)) },
        "00000005 aabbccdd ee000000
        00000001 000001a4 00000000 00000000 00000001 00000000 00000007 ; mode, uid, gid, size
        00000001 00000002 00000008 00000009 ; atime, mtime
        00000001 00000001 00000002 ; guard"
    );
}

#[test]
fn version_3_reading_and_writing() {
    check!(
        v3::ReadArgs,
        v3::ReadArgs { file: handle(), offset: 0x1_0000_2000, count: 8192 },
        "00000005 aabbccdd ee000000 00000001 00002000 00002000"
    );
    check!(
        v3::ReadRes,
        Reply3::Ok(v3::ReadOk { attributes: None, count: 3, eof: true, data: b"abc" }),
        "00000000 00000000 00000003 00000001 00000003 61626300"
    );
    check!(
        v3::WriteArgs,
        v3::WriteArgs {
            file: handle(),
            offset: 1,
            count: 2,
            stable: v3::StableHow::FileSync,
            data: b"xy",
        },
        "00000005 aabbccdd ee000000 00000000 00000001 00000002 00000002 00000002 78790000"
    );
    let before = v3::WccAttributes { size: 9, mtime: time(1, 2), ctime: time(3, 4) };
    let wcc = WccData { before: Some(before), after: None };
    let verifier = *b"verifier";
    check!(
        v3::WriteRes,
        Reply3::Ok(v3::WriteOk { wcc, count: 2, committed: v3::StableHow::Unstable, verifier }),
        "00000000 00000001 00000000 00000009 00000001 00000002 00000003 00000004 00000000
        00000002 00000000 76657269 66696572"
    );
    check!(v3::CommitRes, Reply3::Err(Status3::IO, WccData::NONE), "00000005 00000000 00000000");
}

#[test]
fn version_3_names() {
    check!(
        v3::LookupRes,
        Reply3::Ok(v3::LookupOk {
            object: handle(),
            attributes: Some(attributes()),
            dir_attributes: None,
        }),
        &format!("00000000 00000005 aabbccdd ee000000 00000001 {ATTRIBUTES_HEX} 00000000")
    );
    check!(
        v3::CreateArgs,
        v3::CreateArgs {
            dir: handle(),
            name: "f1".into(),
            how: v3::CreateHow::Exclusive(*b"verifier"),
        },
        "00000005 aabbccdd ee000000 00000002 66310000 00000002 76657269 66696572"
    );
    let attributes = v3::SetAttributes { uid: Some(7), ..v3::SetAttributes::default() };
    check!(
        v3::MkNodArgs,
        v3::MkNodArgs {
            dir: handle(),
            name: "dev".into(),
            what: v3::MkNodData::BlockDevice(attributes, v3::Device { major: 8, minor: 1 }),
        },
        "00000005 aabbccdd ee000000 00000003 64657600 00000003
        00000000 00000001 00000007 00000000 00000000 00000000 00000000 00000008 00000001"
    );
    check!(
        v3::LinkRes,
        Reply3::Err(Status3::MLINK, v3::LinkWcc { attributes: None, dir_wcc: WccData::NONE }),
        "0000001f 00000000 00000000 00000000"
    );
}

#[test]
fn version_3_listings() {
    let entries = [
        v3::EntryPlus {
            fileid: 1,
            name: ".".into(),
            cookie: 10,
            attributes: Some(attributes()),
            object: Some(handle()),
        },
        v3::EntryPlus {
            fileid: 2,
            name: "long name".into(),
            cookie: 11,
            attributes: None,
            object: None,
        },
    ];
    let listing = v3::ReadDirPlusOk {
        dir_attributes: None,
        verifier: [0, 0, 0, 0, 0, 0, 0, 1],
        entries: List::new(&entries),
        eof: true,
    };
    check!(
        v3::ReadDirPlusRes,
        Reply3::Ok(listing),
        &format!(
            "00000000 00000000 00000000 00000001
            00000001 00000000 00000001 00000001 2e000000 00000000 0000000a
            00000001 {ATTRIBUTES_HEX} 00000001 00000005 aabbccdd ee000000
            00000001 00000000 00000002 00000009 6c6f6e67 206e616d 65000000 00000000 0000000b
            00000000 00000000
            00000000 00000001"
        )
    );
    let bytes: usize = entries.iter().map(v3::EntryPlus::bytes).sum();
    assert_eq!(super::encoded(&List::new(&entries)).len(), bytes + 4);
    let entries = [v3::Entry { fileid: 1, name: "abcde".into(), cookie: 2 }];
    assert_eq!(super::encoded(&List::new(&entries)).len(), entries[0].bytes() + 4);
    let entries = [v2::Entry { fileid: 1, name: "abcd".into(), cookie: 2 }];
    assert_eq!(super::encoded(&List::new(&entries)).len(), entries[0].bytes() + 4);
}

#[test]
fn version_2() {
    let second = |seconds| v2::TimeVal2 { seconds, microseconds: 0 };
    let attributes = v2::FileAttributes2 {
        kind: v2::FileKind2::Regular,
        mode: 0o100_644,
        nlink: 1,
        uid: 2,
        gid: 3,
        size: 4,
        block_bytes: 4096,
        device: 5,
        blocks: 6,
        fsid: 7,
        fileid: 8,
        atime: second(9),
        mtime: second(10),
        ctime: second(11),
    };
    let attributes_hex = "00000001 000081a4 00000001 00000002 00000003 00000004 00001000 00000005
        00000006 00000007 00000008 00000009 00000000 0000000a 00000000 0000000b 00000000";
    check!(
        v2::ReadArgs,
        v2::ReadArgs { file: handle2(), offset: 1, count: 8192, total_count: 0 },
        &format!("{HANDLE2_HEX} 00000001 00002000 00000000")
    );
    check!(
        Reply2<v2::ReadOk<'_>>,
        Reply2::Ok(v2::ReadOk { attributes, data: v2::Data2(b"abcde") }),
        &format!("00000000 {attributes_hex} 00000005 61626364 65000000")
    );
    let set = v2::SetAttributes2 { mode: Some(0o644), ..v2::SetAttributes2::default() };
    check!(
        v2::CreateArgs,
        v2::CreateArgs { dir: handle2(), name: "f".into(), attributes: set },
        &format!(
            "{HANDLE2_HEX} 00000001 66000000 000001a4 ffffffff ffffffff ffffffff
            ffffffff ffffffff ffffffff ffffffff"
        )
    );
    let entries = [v2::Entry { fileid: 1, name: "..".into(), cookie: 0x0102_0304 }];
    check!(
        Reply2<v2::ReadDirOk<'_>>,
        Reply2::Ok(v2::ReadDirOk { entries: List::new(&entries), eof: false }),
        "00000000 00000001 00000001 00000002 2e2e0000 01020304 00000000 00000000"
    );
    check!(Reply2<()>, Reply2::Err(v2::Status2::NOENT, ()), "00000002");
    check!(
        Reply2<v2::StatFsOk>,
        Reply2::Ok(v2::StatFsOk {
            transfer_bytes: 8192,
            block_bytes: 4096,
            blocks: 3,
            free_blocks: 2,
            available_blocks: 1,
        }),
        "00000000 00002000 00001000 00000003 00000002 00000001"
    );
}
