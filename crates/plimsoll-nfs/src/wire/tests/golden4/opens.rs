//! OPEN and CLOSE. RFC 8881 §18.2, §18.16

use super::*;
use crate::wire::v4::{
    Ace, CloseArgs, Delegation, Opaque, OpenArgs, OpenClaim, OpenHow, OpenOk, ReadDelegation,
    WriteDelegation, share,
};

/// An OPEN of one file, its reply, and what the client does with the file at once.
fn open(head: &str, claim: &[&str], ok: &[&str]) -> Exchange {
    let call_list = [&[SEQUENCE_CACHED, PUTFH, head], claim, &[GETFH, ACCESS, GETATTR]].concat();
    let results = [&[SEQUENCE_OK, PUTFH_OK], ok, &[GETFH_OK, ACCESS_OK, GETATTR_OK]].concat();
    Exchange { call: call(6, &call_list), reply: reply(0, 6, &results) }
}

fn check_open(exchange: &Exchange, arguments: &OpenArgs<'_>, ok: &OpenOk<'_>) {
    check_call!(
        exchange.call,
        Sequence sequence(true),
        PutFh HANDLE,
        Open *arguments,
        GetFh (),
        Access 0x1f_u32,
        GetAttr attribute::OF_FILES,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        Open *ok,
        GetFh HANDLE,
        Access GRANTED,
        GetAttr attributes(),
    );
}

fn open_args<'a>(access: u32, how: OpenHow<'a>, claim: OpenClaim<'a>) -> OpenArgs<'a> {
    OpenArgs {
        seqid: 0,
        access,
        deny: 0,
        client_id: 0x1_0000_0002,
        owner: Opaque(b"owner"),
        how,
        claim,
    }
}

/// Who opens: open_owner4.
const OWNER: &str = "00000001 00000002 00000005 6f776e65 72000000 ; clientid, owner";

pub(super) fn create() -> Exchange {
    open(
        "00000012 ; OPEN
        00000000 ; seqid
        00000402 ; access: WRITE, WANT_NO_DELEG
        00000000 ; deny: NONE",
        &[
            OWNER,
            "00000001 00000000 ; OPEN4_CREATE, UNCHECKED4",
            MODE,
            "00000000 00000002 66310000 ; CLAIM_NULL, name",
        ],
        &[
            "00000012 00000000 ; OPEN, NFS4_OK
            00000001 ; seqid",
            OTHER,
            CHANGE_INFO,
            "00000004 ; flags: OPEN4_RESULT_LOCKTYPE_POSIX
            00000002 00000000 00000002 ; attributes that were set: 33
            00000003 00000003 ; OPEN_DELEGATE_NONE_EXT, WND4_NOT_SUPP_FTYPE",
        ],
    )
}

#[test]
fn a_file_is_made_by_an_open() {
    let how = OpenHow::Unchecked(mode());
    let arguments = open_args(share::WRITE | share::WANT_NONE, how, OpenClaim::Null("f1".into()));
    let ok = OpenOk {
        state: state(1),
        change: change_info(),
        flags: 4,
        set: MODE_SET,
        delegation: Delegation::Refused { why: 3 },
    };
    check_open(&create(), &arguments, &ok);
}

pub(super) fn open_to_read() -> Exchange {
    open(
        "00000012 ; OPEN
        00000000 ; seqid
        00000301 ; access: READ, WANT_ANY_DELEG
        00000000 ; deny: NONE",
        &[OWNER, "00000000 ; OPEN4_NOCREATE\n 00000004 ; CLAIM_FH"],
        &[
            "00000012 00000000 ; OPEN, NFS4_OK
            00000001 ; seqid",
            OTHER,
            CHANGE_INFO,
            "00000000 ; no flags
            00000000 ; no attributes
            00000001 ; OPEN_DELEGATE_READ
            00000002 ; seqid",
            OTHER,
            "00000000 ; recall
            00000000 00000000 00120081 ; ACE: ALLOWED, no flags, mask
            00000009 45564552 594f4e45 40000000 ; who",
        ],
    )
}

const PERMISSIONS: Ace<'static> =
    Ace { kind: 0, flags: 0, mask: 0x12_0081, who: Name(b"EVERYONE@") };

#[test]
fn a_file_is_opened_by_its_handle_and_reading_is_delegated() {
    let access = share::READ | share::WANT_ANY;
    let arguments = open_args(access, OpenHow::NoCreate, OpenClaim::Handle);
    let delegation = ReadDelegation { state: state(2), recall: false, permissions: PERMISSIONS };
    let ok = OpenOk {
        state: state(1),
        change: change_info(),
        flags: 0,
        set: Bitmap::default(),
        delegation: Delegation::Read(delegation),
    };
    check_open(&open_to_read(), &arguments, &ok);
}

pub(super) fn open_again() -> Exchange {
    open(
        "00000012 ; OPEN
        00000000 ; seqid
        00000003 ; access: BOTH
        00000000 ; deny: NONE",
        &[
            OWNER,
            "00000000 ; OPEN4_NOCREATE
            00000001 00000002 ; CLAIM_PREVIOUS, OPEN_DELEGATE_WRITE",
        ],
        &[
            "00000012 00000000 ; OPEN, NFS4_OK
            00000001 ; seqid",
            OTHER,
            CHANGE_INFO,
            "00000000 ; no flags
            00000000 ; no attributes
            00000002 ; OPEN_DELEGATE_WRITE
            00000002 ; seqid",
            OTHER,
            "00000001 ; recall
            00000001 00000000 00010000 ; NFS_LIMIT_SIZE, bytes
            00000000 00000000 00120081 ; ACE: ALLOWED, no flags, mask
            00000009 45564552 594f4e45 40000000 ; who",
        ],
    )
}

#[test]
fn a_file_is_claimed_after_a_restart_with_its_delegation() {
    let claim = OpenClaim::Previous { delegation: 2 };
    let arguments = open_args(share::BOTH, OpenHow::NoCreate, claim);
    let delegation = WriteDelegation {
        state: state(2),
        recall: true,
        space_limit: [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0],
        permissions: PERMISSIONS,
    };
    let ok = OpenOk {
        state: state(1),
        change: change_info(),
        flags: 0,
        set: Bitmap::default(),
        delegation: Delegation::Write(delegation),
    };
    check_open(&open_again(), &arguments, &ok);
}

#[test]
fn a_reason_for_no_delegation_may_come_with_a_promise() {
    for (text, why) in [
        ("00000003 00000001 00000001", 1), // WND4_CONTENTION
        ("00000003 00000002 00000000", 2), // WND4_RESOURCE
        ("00000003 00000000", 0),          // WND4_NOT_WANTED
        ("00000003 00000008", 8),          // WND4_IS_DIR
    ] {
        let bytes = crate::wire::tests::golden::hex(text);
        let mut input = XdrIn::new(&bytes);
        check_next(&mut input, &Delegation::Refused { why });
        assert_eq!(input.finish(), Ok(()));
    }
}

pub(super) fn close() -> Exchange {
    Exchange {
        call: call(
            4,
            &[
                SEQUENCE_CACHED,
                PUTFH,
                GETATTR,
                "00000004 ; CLOSE
                00000000 ; seqid of NFSv4.0
                00000001 ; seqid",
                OTHER,
            ],
        ),
        reply: reply(
            0,
            4,
            &[
                SEQUENCE_OK,
                PUTFH_OK,
                GETATTR_OK,
                "00000004 00000000 ; CLOSE, NFS4_OK
                ffffffff 00000000 00000000 00000000 ; invalid stateid",
            ],
        ),
    }
}

/// What should follow CLOSE, for no use. RFC 8881 §8.2.3, §18.2.4
const INVALID: StateId = StateId { seqid: u32::MAX, other: [0; 12] };

#[test]
fn a_file_is_closed() {
    let exchange = close();
    check_call!(
        exchange.call,
        Sequence sequence(true),
        PutFh HANDLE,
        GetAttr attribute::OF_FILES,
        Close CloseArgs { seqid: 0, state: state(1) },
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutFh (),
        GetAttr attributes(),
        Close INVALID,
    );
}
