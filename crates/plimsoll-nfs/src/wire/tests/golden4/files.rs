//! What is done with files. RFC 8881 §18.1, §18.3, §18.6, §18.7, §18.22, §18.30, §18.32

use super::*;
use crate::wire::v3::StableHow;
use crate::wire::v4::{CommitArgs4, ReadArgs4, ReadOk4, SetAttrArgs4, WriteArgs4, WriteOk4};

pub(super) fn read() -> Exchange {
    Exchange {
        call: call(
            3,
            &[
                SEQUENCE,
                PUTFH,
                "00000019 ; READ
                00000000 ; seqid: the newest",
                OTHER,
                "00000001 00002000 ; offset
                00002000 ; count",
            ],
        ),
        reply: reply(
            0,
            3,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000019 00000000 ; READ, NFS4_OK
                00000001 ; eof
                00000003 61626300 ; data",
            ],
        ),
    }
}

#[test]
fn a_file_is_read() {
    let exchange = read();
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutFh HANDLE,
        Read ReadArgs4 { state: state(9).newest(), offset: 0x1_0000_2000, count: 8192 },
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        Read ReadOk4 { eof: true, data: b"abc" },
    );
}

pub(super) fn write() -> Exchange {
    Exchange {
        call: call(
            4,
            &[
                SEQUENCE,
                PUTFH,
                "00000026 ; WRITE
                00000000 ; seqid: the newest",
                OTHER,
                "00000000 00000001 ; offset
                00000002 ; FILE_SYNC4
                00000002 78790000 ; data",
                GETATTR,
            ],
        ),
        reply: reply(
            0,
            4,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000026 00000000 ; WRITE, NFS4_OK
                00000002 ; count
                00000000 ; UNSTABLE4
                76657269 66696572 ; verifier",
                GETATTR_OK,
            ],
        ),
    }
}

#[test]
fn a_file_is_written() {
    let exchange = write();
    let stable = StableHow::FileSync;
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutFh HANDLE,
        Write WriteArgs4 { state: state(9).newest(), offset: 1, stable, data: b"xy" },
        GetAttr attribute::OF_FILES,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        Write WriteOk4 { count: 2, committed: StableHow::Unstable, verifier: *b"verifier" },
        GetAttr attributes(),
    );
}

pub(super) fn commit() -> Exchange {
    Exchange {
        call: call(
            3,
            &[
                SEQUENCE_CACHED,
                PUTFH,
                "00000005 ; COMMIT
                00000000 00000001 ; offset
                00000002 ; count",
            ],
        ),
        reply: reply(
            0,
            3,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000005 00000000 ; COMMIT, NFS4_OK
                76657269 66696572 ; verifier",
            ],
        ),
    }
}

#[test]
fn a_file_is_committed() {
    let exchange = commit();
    check_call!(
        exchange.call,
        Sequence sequence(true),
        PutFh HANDLE,
        Commit CommitArgs4 { offset: 1, count: 2 },
    );
    check_reply!(exchange.reply, Sequence sequence_ok(), PutFh (), Commit *b"verifier",);
}

pub(super) fn set_attributes() -> Exchange {
    Exchange {
        call: call(
            4,
            &[
                SEQUENCE_CACHED,
                PUTFH,
                "00000022 ; SETATTR
                00000000 00000000 00000000 00000000 ; anonymous stateid",
                MODE,
                GETATTR,
            ],
        ),
        reply: reply(
            0,
            4,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000022 00000000 ; SETATTR, NFS4_OK
                00000002 00000000 00000002 ; attributes that were set: 33",
                GETATTR_OK,
            ],
        ),
    }
}

#[test]
fn attributes_are_set() {
    let exchange = set_attributes();
    check_call!(
        exchange.call,
        Sequence sequence(true),
        PutFh HANDLE,
        SetAttr SetAttrArgs4 { state: StateId::ANONYMOUS, attributes: mode() },
        GetAttr attribute::OF_FILES,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        SetAttr MODE_SET,
        GetAttr attributes(),
    );
}

pub(super) fn return_delegation() -> Exchange {
    Exchange {
        call: call(
            3,
            &[
                SEQUENCE,
                PUTFH,
                "00000008 ; DELEGRETURN
                00000002 ; seqid",
                OTHER,
            ],
        ),
        reply: reply(0, 3, &[SEQUENCE_OK, PUTFH_OK, "00000008 00000000 ; DELEGRETURN, NFS4_OK"]),
    }
}

#[test]
fn a_delegation_is_returned() {
    let exchange = return_delegation();
    check_call!(exchange.call, Sequence sequence(false), PutFh HANDLE, DelegReturn state(2),);
    check_reply!(exchange.reply, Sequence sequence_ok(), PutFh (), DelegReturn (),);
}

pub(super) fn access() -> Exchange {
    Exchange {
        call: call(4, &[SEQUENCE, PUTFH, ACCESS, GETATTR]),
        reply: reply(0, 4, &[SEQUENCE_OK, PUTFH_OK, ACCESS_OK, GETATTR_OK]),
    }
}

#[test]
fn access_is_checked() {
    let exchange = access();
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutFh HANDLE,
        Access 0x1f_u32,
        GetAttr attribute::OF_FILES,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        Access GRANTED,
        GetAttr attributes(),
    );
}

/// What FSSTAT is in NFSv3.
pub(super) fn space() -> Exchange {
    Exchange {
        call: call(
            3,
            &[
                SEQUENCE,
                PUTFH,
                "00000009 ; GETATTR
                00000002 ; words of the bitmap
                00e00000 ; 21, 22, 23
                00001c00 ; 42, 43, 44",
            ],
        ),
        reply: reply(
            0,
            3,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                "00000009 00000000 ; GETATTR, NFS4_OK
                00000002 00e00000 00001c00 ; bitmap
                00000030 ; bytes of the values
                00000000 00000001 ; files_avail
                00000000 00000002 ; files_free
                00000000 00000003 ; files_total
                00000000 00001000 ; space_avail
                00000000 00002000 ; space_free
                00000000 00003000 ; space_total",
            ],
        ),
    }
}

#[test]
fn free_space_is_an_attribute() {
    let exchange = space();
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutFh HANDLE,
        GetAttr attribute::OF_SPACE,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        GetAttr Attributes4 {
            files_available: Some(1),
            files_free: Some(2),
            files_total: Some(3),
            space_available: Some(0x1000),
            space_free: Some(0x2000),
            space_total: Some(0x3000),
            ..Attributes4::default()
        },
    );
}
