//! Callbacks. RFC 8881 §20.2, §20.9

use super::*;
use crate::wire::tests::golden::hex;
use crate::wire::v4::{
    CallbackHead, CallbackOperation, CbRecallArgs, CbSequenceArgs, CbSequenceOk, ReferringCalls,
    encode_recall,
};

const CB_SEQUENCE: &str = "0000000b ; CB_SEQUENCE
    73657373 696f6e20 6f662074 65737473 ; session
    00000007 ; sequence
    00000003 ; slot
    00000005 ; highest slot
    00000001 ; the reply is cached";

const CB_RECALL: &str = "00000004 ; CB_RECALL
    00000002 ; seqid
    6f746865 72206f66 206f6e65 ; other
    00000001 ; truncate
    00000005 aabbccdd ee000000 ; handle";

fn callback(referring: &str) -> String {
    let head = "00000000 ; tag
        00000001 ; minor version
        00000000 ; ident of NFSv4.0
        00000002 ; operations";
    [head, CB_SEQUENCE, referring, CB_RECALL].join("\n")
}

pub(super) fn recall() -> Exchange {
    Exchange {
        call: callback("00000000 ; no referring calls"),
        reply: reply(
            0,
            2,
            &["0000000b 00000000 ; CB_SEQUENCE, NFS4_OK
            73657373 696f6e20 6f662074 65737473 ; session
            00000007 ; sequence
            00000003 ; slot
            00000005 ; highest slot
            00000006 ; target of the highest slot
            00000004 00000000 ; CB_RECALL, NFS4_OK"],
        ),
    }
}

/// The same with two calls that the server refers to.
pub(super) fn recall_with_referring_calls() -> Exchange {
    let call = callback(
        "00000001 ; a list
        73657373 696f6e20 6f662074 65737473 ; session
        00000002 ; calls
        00000007 00000003 ; sequence, slot
        00000008 00000004 ; sequence, slot",
    );
    Exchange { call, ..recall() }
}

#[test]
fn a_delegation_is_recalled() {
    let sequence = |calls| CbSequenceArgs {
        session: SESSION,
        sequence: 7,
        slot: 3,
        highest_slot: 5,
        cache: true,
        referring: ReferringCalls(calls),
    };
    let arguments = CbRecallArgs { state: state(2), truncate: true, handle: HANDLE };
    let mut out = Vec::new();
    encode_recall(&sequence(0), &arguments, &mut out);
    assert_eq!(out, hex(&recall().call));
    for (exchange, calls) in [(recall(), 0), (recall_with_referring_calls(), 2)] {
        let bytes = hex(&exchange.call);
        let mut input = XdrIn::new(&bytes);
        let head = CallbackHead { tag: b"", minor_version: 1, operations: 2 };
        check_next(&mut input, &head);
        assert_eq!(input.u32(), Ok(CallbackOperation::Sequence.number()));
        check_next(&mut input, &sequence(calls));
        assert_eq!(input.u32(), Ok(CallbackOperation::Recall.number()));
        check_next(&mut input, &arguments);
        assert_eq!(input.finish(), Ok(()));
    }
    // The head of the reply is that of a COMPOUND; then operation, status, value of each.
    let bytes = hex(&recall().reply);
    let mut input = XdrIn::new(&bytes);
    for word in [0, 0, 2, CallbackOperation::Sequence.number(), 0] {
        assert_eq!(input.u32(), Ok(word));
    }
    let ok = CbSequenceOk {
        session: SESSION,
        sequence: 7,
        slot: 3,
        highest_slot: 5,
        target_highest_slot: 6,
    };
    check_next(&mut input, &ok);
    assert_eq!(input.u32(), Ok(CallbackOperation::Recall.number()));
    assert_eq!(input.u32(), Ok(0));
    assert_eq!(input.finish(), Ok(()));
}
