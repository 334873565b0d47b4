//! Clients and sessions. RFC 8881 §18.34 to §18.37, §18.46, §18.50, §18.51

use super::*;
use crate::wire::rpc::AuthSys;
use crate::wire::v4::{
    BindConnection, CALLBACK_PROGRAM, CallbackSecurity, ChannelLimits, CreateSessionArgs,
    CreateSessionOk, ExchangeIdArgs, ExchangeIdOk, ImplementationId, NoProtection, Opaque,
    direction, exchange_flags, session_flags,
};
use crate::wire::xdr::U32List;

pub(super) fn exchange_id() -> Exchange {
    Exchange {
        call: call(
            1,
            &["0000002a ; EXCHANGE_ID
            76657269 66696572 ; verifier
            00000008 636c6965 6e742031 ; owner
            00010001 ; flags: SUPP_MOVED_REFER, USE_NON_PNFS
            00000000 ; SP4_NONE
            00000001 ; one implementation
            00000007 6578616d 706c6500 ; domain
            00000006 6d616b65 72730000 ; name
            00000000 00000001 00000002 ; date"],
        ),
        reply: reply(
            0,
            1,
            &["0000002a 00000000 ; EXCHANGE_ID, NFS4_OK
            00000001 00000002 ; clientid
            00000003 ; sequence
            80010000 ; flags: CONFIRMED_R, USE_NON_PNFS
            00000000 ; SP4_NONE
            00000000 00000004 ; minor id of the server's owner
            00000004 686f7374 ; its major id
            00000005 73636f70 65000000 ; scope
            00000000 ; no implementation"],
        ),
    }
}

#[test]
fn a_client_introduces_itself() {
    let exchange = exchange_id();
    let implementation = ImplementationId {
        domain: Opaque(b"example"),
        name: Opaque(b"makers"),
        date: Time4 { seconds: 1, nanoseconds: 2 },
    };
    check_call!(
        exchange.call,
        ExchangeId ExchangeIdArgs {
            verifier: *b"verifier",
            owner: Opaque(b"client 1"),
            flags: exchange_flags::MOVED_REFER | exchange_flags::NON_PNFS,
            protection: NoProtection,
            implementation: Some(implementation),
        },
    );
    check_reply!(
        exchange.reply,
        ExchangeId ExchangeIdOk {
            client_id: 0x1_0000_0002,
            sequence: 3,
            flags: exchange_flags::CONFIRMED | exchange_flags::NON_PNFS,
            protection: NoProtection,
            minor_id: 4,
            major_id: Opaque(b"host"),
            scope: Opaque(b"scope"),
            implementation: None,
        },
    );
}

pub(super) fn create_session() -> Exchange {
    let limits = "00000000 ; header padding
        00100400 00100800 ; longest call and reply
        00000c00 ; longest cached reply
        00000010 ; operations
        00000040 ; slots
        00000000 ; no RDMA
        00000000 ; header padding
        00001000 00001000 ; longest callback and reply
        00000000 ; longest cached reply
        00000002 ; operations
        00000001 ; slots
        00000001 00000009 ; RDMA reads";
    Exchange {
        call: call(
            1,
            &[
                "0000002b ; CREATE_SESSION
                00000001 00000002 ; clientid
                00000003 ; sequence
                00000002 ; flags: CONN_BACK_CHAN",
                limits,
                "40000000 ; program of the callbacks
                00000001 ; one way to authenticate them
                00000001 ; AUTH_SYS
                00000000 00000004 686f7374 ; stamp, machine
                00000001 00000002 ; uid, gid
                00000001 00000003 ; gids",
            ],
        ),
        reply: reply(
            0,
            1,
            &[
                "0000002b 00000000 ; CREATE_SESSION, NFS4_OK
                73657373 696f6e20 6f662074 65737473 ; session
                00000003 ; sequence
                00000002 ; flags: CONN_BACK_CHAN",
                limits,
            ],
        ),
    }
}

#[test]
fn a_session_is_created() {
    let exchange = create_session();
    let fore = ChannelLimits {
        header_padding: 0,
        call_bytes_max: 0x10_0400,
        reply_bytes_max: 0x10_0800,
        cached_bytes_max: 0xc00,
        operations_max: 16,
        slots: 64,
        rdma_reads: None,
    };
    let back = ChannelLimits {
        header_padding: 0,
        call_bytes_max: 4096,
        reply_bytes_max: 4096,
        cached_bytes_max: 0,
        operations_max: 2,
        slots: 1,
        rdma_reads: Some(9),
    };
    let system =
        AuthSys { stamp: 0, machine: "host".into(), uid: 1, gid: 2, gids: U32List::Values(&[3]) };
    check_call!(
        exchange.call,
        CreateSession CreateSessionArgs {
            client_id: 0x1_0000_0002,
            sequence: 3,
            flags: session_flags::BACK_CHANNEL,
            fore,
            back,
            callback_program: CALLBACK_PROGRAM,
            security: CallbackSecurity::System(system),
        },
    );
    check_reply!(
        exchange.reply,
        CreateSession CreateSessionOk {
            session: SESSION,
            sequence: 3,
            flags: session_flags::BACK_CHANNEL,
            fore,
            back,
        },
    );
}

#[test]
fn the_first_way_to_authenticate_callbacks_counts() {
    let read = |text: &str| {
        let bytes = crate::wire::tests::golden::hex(text);
        let mut input = XdrIn::new(&bytes);
        let is_none = CallbackSecurity::decode(&mut input) == Ok(CallbackSecurity::None);
        is_none && input.finish().is_ok()
    };
    let system = "00000001 00000000 00000000 00000000 00000000 00000000";
    assert!(read(&format!("00000002 00000000 {system}")));
    assert!(!read(&format!("00000002 {system} 00000000")));
    assert!(read("00000000"));
}

pub(super) fn reclaim_complete() -> Exchange {
    Exchange {
        call: call(
            2,
            &[
                SEQUENCE,
                "0000003a ; RECLAIM_COMPLETE
                00000000 ; of all file systems",
            ],
        ),
        reply: reply(0, 2, &[SEQUENCE_OK, "0000003a 00000000 ; RECLAIM_COMPLETE, NFS4_OK"]),
    }
}

#[test]
fn a_client_has_nothing_to_reclaim() {
    let exchange = reclaim_complete();
    check_call!(exchange.call, Sequence sequence(false), ReclaimComplete false,);
    check_reply!(exchange.reply, Sequence sequence_ok(), ReclaimComplete (),);
}

pub(super) fn lone_sequence() -> Exchange {
    Exchange { call: call(1, &[SEQUENCE]), reply: reply(0, 1, &[SEQUENCE_OK]) }
}

#[test]
fn a_lease_is_renewed() {
    let exchange = lone_sequence();
    check_call!(exchange.call, Sequence sequence(false),);
    check_reply!(exchange.reply, Sequence sequence_ok(),);
    let arguments = super::super::encoded(&sequence(false));
    assert_eq!(arguments.len(), crate::wire::v4::SEQUENCE_BYTES);
}

pub(super) fn root() -> Exchange {
    Exchange {
        call: call(
            5,
            &[
                SEQUENCE,
                "00000018 ; PUTROOTFH
                0000000f 00000006 6578706f 72740000 ; LOOKUP, name",
                GETFH,
                "00000009 ; GETATTR
                00000001 ; words of the bitmap
                c0000407 ; 0, 1, 2, 10, 30, 31",
            ],
        ),
        reply: reply(
            0,
            5,
            &[
                SEQUENCE_OK,
                "00000018 00000000 ; PUTROOTFH, NFS4_OK
                0000000f 00000000 ; LOOKUP, NFS4_OK",
                GETFH_OK,
                "00000009 00000000 ; GETATTR, NFS4_OK
                00000001 c0000407 ; bitmap
                00000028 ; bytes of the values
                00000002 0010011a 00b0a23a ; supported_attrs
                00000002 ; type: NF4DIR
                00000000 ; fh_expire_type: FH4_PERSISTENT
                0000005a ; lease_time
                00000000 00100000 ; maxread
                00000000 00080000 ; maxwrite",
            ],
        ),
    }
}

#[test]
fn the_root_of_an_export_is_looked_up() {
    let exchange = root();
    check_call!(
        exchange.call,
        Sequence sequence(false),
        PutRootFh (),
        Lookup Name(b"export"),
        GetFh (),
        GetAttr attribute::OF_EXPORT,
    );
    check_reply!(
        exchange.reply,
        Sequence sequence_ok(),
        PutRootFh (),
        Lookup (),
        GetFh HANDLE,
        GetAttr Attributes4 {
            supported: Some(attribute::OF_FILES),
            kind: Some(FileKind4::Directory),
            fh_expire_type: Some(0),
            lease_time_s: Some(90),
            read_bytes_max: Some(0x10_0000),
            write_bytes_max: Some(0x8_0000),
            ..Attributes4::default()
        },
    );
}

pub(super) fn bind_connection() -> Exchange {
    Exchange {
        call: call(
            1,
            &["00000029 ; BIND_CONN_TO_SESSION
            73657373 696f6e20 6f662074 65737473 ; session
            00000003 ; CDFC4_FORE_OR_BOTH
            00000000 ; no RDMA"],
        ),
        reply: reply(
            0,
            1,
            &["00000029 00000000 ; BIND_CONN_TO_SESSION, NFS4_OK
            73657373 696f6e20 6f662074 65737473 ; session
            00000003 ; CDFS4_BOTH
            00000000 ; no RDMA"],
        ),
    }
}

#[test]
fn a_connection_is_bound_to_a_session() {
    let exchange = bind_connection();
    let bind = |direction| BindConnection { session: SESSION, direction, rdma: false };
    check_call!(exchange.call, BindConnToSession bind(direction::FORE_OR_BOTH),);
    check_reply!(exchange.reply, BindConnToSession bind(direction::BOTH),);
}

pub(super) fn destroy_session() -> Exchange {
    Exchange {
        call: call(
            1,
            &["0000002c ; DESTROY_SESSION
            73657373 696f6e20 6f662074 65737473 ; session"],
        ),
        reply: reply(0, 1, &["0000002c 00000000 ; DESTROY_SESSION, NFS4_OK"]),
    }
}

pub(super) fn destroy_client_id() -> Exchange {
    Exchange {
        call: call(
            1,
            &["00000039 ; DESTROY_CLIENTID
            00000001 00000002 ; clientid"],
        ),
        reply: reply(0, 1, &["00000039 00000000 ; DESTROY_CLIENTID, NFS4_OK"]),
    }
}

#[test]
fn a_client_takes_its_leave() {
    let exchange = destroy_session();
    check_call!(exchange.call, DestroySession SESSION,);
    check_reply!(exchange.reply, DestroySession(),);
    let exchange = destroy_client_id();
    check_call!(exchange.call, DestroyClientId 0x1_0000_0002_u64,);
    check_reply!(exchange.reply, DestroyClientId(),);
}
