//! Names and listings, and compounds that end early. RFC 8881 §18.4, §18.13, §18.23 to §18.28

use super::*;
use crate::wire::v4::{
    CompoundReply, CreateArgs4, CreateKind, CreateOk4, Entry4, Operation, ReadDirArgs4, ReadDirOk4,
    RenameArgs4, RenameOk4, Status4,
};
use crate::wire::xdr::{List, Path, XdrError};

pub(super) fn lookup() -> Exchange {
    Exchange {
        call: call(
            5,
            &[SEQUENCE, PUTFH, "0000000f 00000002 66310000 ; LOOKUP, name", GETFH, GETATTR],
        ),
        reply: reply(
            0,
            5,
            &[SEQUENCE_OK, PUTFH_OK, "0000000f 00000000 ; LOOKUP, NFS4_OK", GETFH_OK, GETATTR_OK],
        ),
    }
}

#[test]
fn a_name_is_looked_up() {
    let exchange = lookup();
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutFh HANDLE,
        Lookup Name(b"f1"),
        GetFh (),
        GetAttr attribute::OF_FILES,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        Lookup (),
        GetFh HANDLE,
        GetAttr attributes(),
    );
}

/// The replies to the same call that end early.
pub(super) fn lookup_failed() -> Exchange {
    let no_entry = "0000000f 00000002 ; LOOKUP, NFS4ERR_NOENT";
    Exchange { reply: reply(2, 3, &[SEQUENCE_OK, PUTFH_OK, no_entry]), ..lookup() }
}

/// Reads a reply to the LOOKUP up to its last result.
fn statuses(text: &str) -> Vec<Result<Status4, XdrError>> {
    let bytes = crate::wire::tests::golden::hex(text);
    let mut reply = CompoundReply::read(XdrIn::new(&bytes)).unwrap();
    let mut next = |operation| reply.next(operation);
    let sequence = next(Operation::Sequence);
    if sequence == Ok(Status4::OK) {
        check_next(&mut reply.input, &sequence_ok());
    }
    let rest = [Operation::PutFh, Operation::Lookup, Operation::GetFh, Operation::GetAttr];
    [sequence].into_iter().chain(rest.map(|operation| reply.next(operation))).collect()
}

#[test]
fn a_compound_ends_at_the_first_operation_that_fails() {
    let [ok, no_entry] = [Ok(Status4::OK), Ok(Status4::NOENT)];
    let expected = [ok, ok, no_entry, no_entry, no_entry];
    assert_eq!(statuses(&lookup_failed().reply), expected);
    // NFS4ERR_BADSESSION of SEQUENCE.
    let refused = reply(10_052, 1, &["00000035 00002744"]);
    assert_eq!(statuses(&refused), [Ok(Status4::BADSESSION); 5]);
    // NFS4ERR_MINOR_VERS_MISMATCH, without results.
    let refused = reply(10_021, 0, &[]);
    assert_eq!(statuses(&refused), [Ok(Status4::MINOR_VERS_MISMATCH); 5]);
}

#[test]
fn a_server_that_does_not_know_an_operation_answers_illegal() {
    let illegal = reply(10_044, 3, &[SEQUENCE_OK, PUTFH_OK, "0000273c 0000273c"]);
    let [ok, illegal_status] = [Ok(Status4::OK), Ok(Status4::OP_ILLEGAL)];
    let expected = [ok, ok, illegal_status, illegal_status, illegal_status];
    assert_eq!(statuses(&illegal), expected);
}

#[test]
fn a_reply_to_another_call_is_refused() {
    let other = reply(0, 3, &[SEQUENCE_OK, PUTFH_OK, "00000019 00000000 00000001 00000000"]);
    let error = Err(XdrError::Value { what: "the operations of the call", value: 25 });
    assert_eq!(statuses(&other)[2], error);
    // All succeeded, but results are missing.
    let short = reply(0, 2, &[SEQUENCE_OK, PUTFH_OK]);
    assert_eq!(statuses(&short)[2], Err(XdrError::Truncated));
    let bytes = crate::wire::tests::golden::hex(&reply(0, 1_025, &[]));
    let error = CompoundReply::read(XdrIn::new(&bytes)).unwrap_err();
    assert_eq!(error, XdrError::TooLong { bytes: 1_025, max: 1_024 });
}

#[test]
fn attributes_that_do_not_match_their_bitmap_are_refused() {
    let decode = |text| {
        let bytes = crate::wire::tests::golden::hex(text);
        Attributes4::decode(&mut XdrIn::new(&bytes)).map(|_| ())
    };
    assert_eq!(decode("00000002 00000000 00000002 00000004 000001a4"), Ok(()));
    // A bitmap may be longer than it must be.
    let longer = "00000004 00000000 00000002 00000000 00000000 00000004 000001a4";
    assert_eq!(decode(longer), Ok(()));
    let bytes_behind = "00000002 00000000 00000002 00000008 000001a4 00000000";
    assert_eq!(decode(bytes_behind), Err(XdrError::Excess { bytes: 4 }));
    let too_short = "00000002 00000000 00000002 00000000";
    assert_eq!(decode(too_short), Err(XdrError::Truncated));
    // 54, time_modify_set; 128, which no version has.
    let unknown = "00000002 00000000 00400000 00000004 00000000";
    assert!(matches!(decode(unknown), Err(XdrError::Value { .. })));
    let beyond = "00000005 00000000 00000000 00000000 00000000 00000001 00000004 00000000";
    assert_eq!(decode(beyond), Err(XdrError::Excess { bytes: 4 }));
}

/// Attributes of the entries in a listing of names.
const FEW: Bitmap = Bitmap::from_numbers(&[
    attribute::RDATTR_ERROR,
    attribute::FILE_ID,
    attribute::MOUNTED_ON_FILE_ID,
]);

pub(super) fn list() -> Exchange {
    Exchange {
        call: call(
            3,
            &[
                SEQUENCE,
                PUTFH,
                "0000001a ; READDIR
                00000000 00000000 ; cookie
                00000000 00000000 ; cookie verifier
                00001000 00002000 ; dircount, maxcount
                00000002 00100800 00800000 ; 11, 20, 55",
            ],
        ),
        reply: reply(
            0,
            3,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "0000001a 00000000 ; READDIR, NFS4_OK
                76657269 66696572 ; cookie verifier
                00000001 ; an entry
                00000000 00000003 00000002 66310000 ; cookie, name
                00000002 00100800 00800000 00000014 ; 11, 20, 55; bytes
                00000000 ; rdattr_error
                00000000 0000002a 00000000 0000002b ; fileid, mounted_on_fileid
                00000001 ; an entry
                00000000 00000004 00000001 67000000 ; cookie, name
                00000002 00080002 00000002 00000014 ; 1, 19, 33; bytes
                00000002 00000005 aabbccdd ee000000 ; type, filehandle
                000001a4 ; mode
                00000000 00000001 ; no more entries, eof",
            ],
        ),
    }
}

#[test]
fn a_directory_is_listed() {
    let exchange = list();
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutFh HANDLE,
        ReadDir ReadDirArgs4 {
            cookie: 0,
            verifier: [0; 8],
            dir_bytes: 0x1000,
            bytes_max: 0x2000,
            attributes: FEW,
        },
    );
    let few = Attributes4 {
        error: Some(Status4::OK),
        file_id: Some(42),
        mounted_on_file_id: Some(43),
        ..Attributes4::default()
    };
    let directory =
        Attributes4 { kind: Some(FileKind4::Directory), handle: Some(HANDLE), ..mode() };
    let entries = [
        Entry4 { cookie: 3, name: Name(b"f1"), attributes: few },
        Entry4 { cookie: 4, name: Name(b"g"), attributes: directory },
    ];
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        ReadDir ReadDirOk4 { verifier: *b"verifier", entries: List::new(&entries), eof: true },
    );
}

pub(super) fn read_link() -> Exchange {
    Exchange {
        call: call(3, &[SEQUENCE, PUTFH, "0000001b ; READLINK"]),
        reply: reply(
            0,
            3,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "0000001b 00000000 ; READLINK, NFS4_OK
                00000004 742f6631 ; text",
            ],
        ),
    }
}

#[test]
fn a_link_is_read() {
    let exchange = read_link();
    check_call!(exchange.call, Sequence sequence(false), PutFh HANDLE, ReadLink (),);
    check_reply!(exchange.reply, Sequence sequence_ok(), PutFh (), ReadLink Path(b"t/f1"),);
}

pub(super) fn remove() -> Exchange {
    Exchange {
        call: call(3, &[SEQUENCE_CACHED, PUTFH, "0000001c 00000002 66310000 ; REMOVE, name"]),
        reply: reply(
            0,
            3,
            &[SEQUENCE_OK, PUTFH_OK, "0000001c 00000000 ; REMOVE, NFS4_OK", CHANGE_INFO],
        ),
    }
}

#[test]
fn a_name_is_removed() {
    let exchange = remove();
    check_call!(exchange.call, Sequence sequence(true), PutFh HANDLE, Remove Name(b"f1"),);
    check_reply!(exchange.reply, Sequence sequence_ok(), PutFh (), Remove change_info(),);
}

pub(super) fn rename() -> Exchange {
    Exchange {
        call: call(
            5,
            &[
                SEQUENCE_CACHED,
                PUTFH,
                "00000020 ; SAVEFH",
                PUTFH,
                "0000001d ; RENAME
                00000002 66310000 00000003 6e657700 ; old name, new name",
            ],
        ),
        reply: reply(
            0,
            5,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000020 00000000 ; SAVEFH, NFS4_OK",
                PUTFH_OK,
                "0000001d 00000000 ; RENAME, NFS4_OK",
                CHANGE_INFO,
                "00000000 00000000 00000001 00000000 00000002 ; not atomic, before, after",
            ],
        ),
    }
}

#[test]
fn a_file_is_renamed() {
    let exchange = rename();
    check_call!(
        exchange.call,
        Sequence sequence(true),
        PutFh HANDLE,
        SaveFh (),
        PutFh HANDLE,
        Rename RenameArgs4 { from: Name(b"f1"), to: Name(b"new") },
    );
    let to = ChangeInfo { atomic: false, before: 1, after: 2 };
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        SaveFh (),
        PutFh (),
        Rename RenameOk4 { from: change_info(), to },
    );
}

/// A CREATE of this kind.
fn create(kind: &str) -> Exchange {
    Exchange {
        call: call(
            5,
            &[
                SEQUENCE_CACHED,
                PUTFH,
                kind,
                "00000003 6e657700 ; name",
                MODE,
                "0000001f ; RESTOREFH",
                GETATTR,
            ],
        ),
        reply: reply(
            0,
            5,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000006 00000000 ; CREATE, NFS4_OK",
                CHANGE_INFO,
                "00000002 00000000 00000002 ; attributes that were set: 33
                0000001f 00000000 ; RESTOREFH, NFS4_OK",
                GETATTR_OK,
            ],
        ),
    }
}

fn check_create(exchange: &Exchange, kind: CreateKind<'_>) {
    check_call!(
        exchange.call,
        Sequence sequence(true),
        PutFh HANDLE,
        Create CreateArgs4 { kind, name: Name(b"new"), attributes: mode() },
        RestoreFh (),
        GetAttr attribute::OF_FILES,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        Create CreateOk4 { change: change_info(), set: MODE_SET },
        RestoreFh (),
        GetAttr attributes(),
    );
}

pub(super) fn make_directory() -> Exchange {
    create("00000006 00000002 ; CREATE, NF4DIR")
}

pub(super) fn make_link() -> Exchange {
    create("00000006 00000005 00000004 742f6631 ; CREATE, NF4LNK, text")
}

pub(super) fn make_device() -> Exchange {
    create("00000006 00000003 00000000 00000000 ; CREATE, NF4BLK, specdata")
}

#[test]
fn what_is_no_file_is_created() {
    check_create(&make_directory(), CreateKind::Directory);
    check_create(&make_link(), CreateKind::Link(Path(b"t/f1")));
    check_create(&make_device(), CreateKind::Other(FileKind4::BlockDevice));
}
