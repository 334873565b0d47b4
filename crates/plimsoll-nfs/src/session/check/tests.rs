//! Replies with one fault each, and the message for each.

use plimsoll_engine::interface::LinkKind::{Datagram, Stream};
use plimsoll_model::outcome::{ErrorClass, OpStatus};
use plimsoll_model::units::Nanos;

use super::super::NfsVersion::{self, V2, V3};
use super::super::replies::{RUN, attributes2, attributes3, read_ok, reply, write_ok};
use super::super::test_io::*;
use crate::op::*;
use crate::wire::rpc::{self, ReplyOutcome};
use crate::wire::v2::{self, FileKind2, Reply2, Status2};
use crate::wire::v3::{self, FileKind, PostOpAttr, Reply3, StableHow, Status3, WccData};
use crate::wire::{Encode, List, Path};

/// How a call ends with a reply, and the message.
fn end(version: NfsVersion, call: NfsCall, result: impl Encode) -> (OpStatus, String) {
    end_with(version, call, |xid| reply(xid, result))
}

fn end_with(
    version: NfsVersion,
    call: NfsCall,
    message: impl FnOnce(u32) -> Vec<u8>,
) -> (OpStatus, String) {
    let mut bench = Bench::connected(version, Datagram);
    bench.issue(call);
    let message = message(bench.xid(0));
    bench.message(&message);
    (bench.last().status, bench.io.detail)
}

fn check((status, detail): (OpStatus, String), class: ErrorClass, text: &str) {
    assert_eq!(status, OpStatus::Failed(class), "{detail}");
    assert!(detail.contains(text), "{detail}");
}

fn get_attr() -> NfsCall {
    NfsCall::GetAttr(large_file())
}

fn unstable() -> NfsCall {
    NfsCall::Write(two_blocks(), Stability::Unstable)
}

#[test]
fn errors_of_nfs_have_their_names_and_their_objects() {
    let stale = Reply3::<v3::FileAttributes, ()>::Err(Status3::STALE, ());
    let name = large_file().file().name();
    let text = format!("GETATTR of dir00000/{name}: NFS3ERR_STALE (70): the file handle is stale");
    check(end(V3, get_attr(), stale), ErrorClass::Status(70), &text);
    let stale = Reply2::<v2::FileAttributes2>::Err(Status2::STALE, ());
    check(end(V2, get_attr(), stale), ErrorClass::Status(70), "NFSERR_STALE (70): the file handle");
    let full = v3::WriteRes::Err(Status3::NOSPC, WccData::NONE);
    let text = "WRITE of dir00000/";
    check(end(V3, unstable(), full), ErrorClass::Status(28), text);
    check(end(V3, unstable(), full), ErrorClass::Status(28), "at offset 8192: NFS3ERR_NOSPC (28)");
    let odd = Reply3::<v3::FileAttributes, ()>::Err(Status3(12_345), ());
    check(end(V3, get_attr(), odd), ErrorClass::Status(12_345), "no RFC names (12345)");
}

#[test]
fn a_name_that_is_not_there_fails_as_expected_or_not() {
    let (gone, there) = (Presence::Missing, Presence::Exists);
    let call = |presence| NfsCall::Remove(SlotNo(7), presence);
    for version in [V2, V3] {
        let noent = |xid| match version {
            V2 => reply(xid, Reply2::<()>::Err(Status2::NOENT, ())),
            _ => reply(xid, v3::RemoveRes::Err(Status3::NOENT, WccData::NONE)),
        };
        assert_eq!(end_with(version, call(gone), noent).0, OpStatus::ExpectedFailure);
        let (status, detail) = end_with(version, call(there), noent);
        assert_eq!(status, OpStatus::Failed(ErrorClass::Status(2)));
        assert!(detail.starts_with("REMOVE of dir00001/slot000007: NFS"), "{detail}");
        // The first try removed it, and its reply was lost.
        let mut bench = Bench::connected(version, Datagram);
        bench.issue(call(there));
        bench.pass(Nanos::from_millis(1_500));
        let message = noent(bench.xid(0));
        bench.message(&message);
        assert_eq!((bench.last().status, bench.last().ambiguous), (OpStatus::Ok, true));
        // One that is there after all.
        let mut bench = Bench::connected(version, Stream);
        bench.issue(call(gone));
        bench.answer(0, call(gone));
        assert_eq!(bench.last().status, OpStatus::Unexpected { expected: 2, actual: 0 });
    }
}

#[test]
fn refusals_of_the_rpc_layer_are_named() {
    let refusals = [
        (ReplyOutcome::ProgramUnavailable, "PROG_UNAVAIL"),
        (ReplyOutcome::ProgramMismatch { low: 2, high: 4 }, "PROG_MISMATCH"),
        (ReplyOutcome::ProcedureUnavailable, "PROC_UNAVAIL"),
        (ReplyOutcome::GarbageArguments, "GARBAGE_ARGS"),
        (ReplyOutcome::SystemError, "SYSTEM_ERR"),
        (ReplyOutcome::RpcMismatch { low: 3, high: 3 }, "RPC_MISMATCH"),
        (ReplyOutcome::AuthError(rpc::auth::TOO_WEAK), "AUTH_TOOWEAK; it may accept"),
    ];
    for (outcome, text) in refusals {
        let ended = end_with(V3, get_attr(), |xid| {
            let mut message = Vec::new();
            rpc::encode_reply(&mut message, xid, outcome);
            message
        });
        check(ended, ErrorClass::Rejected, text);
    }
}

#[test]
fn what_is_no_reply_is_malformed() {
    check(end(V3, get_attr(), ()), ErrorClass::Malformed, "ends too early");
    let call = |xid: u32| [xid.to_be_bytes(), [0; 4]].concat();
    check(end_with(V3, get_attr(), call), ErrorClass::Malformed, "REPLY");
    let site = site(V3, Datagram);
    let span = two_blocks();
    let ok = v3::ReadOk { count: 5, ..read_ok(site.content_of(span)) };
    let read = NfsCall::Read(span, Verify::Length);
    check(end(V3, read, v3::ReadRes::Ok(ok)), ErrorClass::Malformed, "READ's count");
    let ok = v2::ReadDirOk { entries: List::new(&[]), eof: false };
    check(end(V2, NfsCall::ReadDir(DirNo(0)), Reply2::Ok(ok)), ErrorClass::Malformed, "no entry");
    let ok = write_ok(span, StableHow::DataSync, RUN);
    let write = NfsCall::Write(span, Stability::FileSync);
    check(end(V3, write, v3::WriteRes::Ok(ok)), ErrorClass::Malformed, "less was done");
}

#[test]
fn objects_of_another_kind_are_noticed() {
    let ok = attributes3(FileKind::Directory, 1 << 20);
    let text = "attributes of a directory, and not of a regular file";
    check(end(V3, get_attr(), Reply3::<_, ()>::Ok(ok)), ErrorClass::Corrupt, text);
    let ok = attributes2(FileKind2::Fifo, 1 << 20);
    check(end(V2, get_attr(), Reply2::Ok(ok)), ErrorClass::Corrupt, "of a special file");
    let attributes: PostOpAttr = Some(attributes3(FileKind::Regular, 9));
    let ok = v3::AccessOk { attributes, access: 0 };
    let access = NfsCall::Access(large_file());
    check(end(V3, access, v3::AccessRes::Ok(ok)), ErrorClass::Corrupt, "not grant READ");
}

#[test]
fn names_lead_where_they_led_before_the_run() {
    let (call, other) = (NfsCall::Lookup(large_file()), [9; 32]);
    let object = v3::Handle::new(&other).unwrap();
    let ok = v3::LookupOk { object, attributes: None, dir_attributes: None };
    let text = "leads to another file";
    check(end(V3, call, v3::LookupRes::Ok(ok)), ErrorClass::Corrupt, text);
    let attributes = attributes2(FileKind2::Regular, 1 << 20);
    let ok = v2::DirOpOk { file: v2::Handle2(other), attributes };
    check(end(V2, call, Reply2::Ok(ok)), ErrorClass::Corrupt, text);
    let ok = Path(b"elsewhere");
    let text = "the link says \"elsewhere\", but \"file0000384\" was written";
    check(end(V2, NfsCall::ReadLink(LinkNo(2)), Reply2::Ok(ok)), ErrorClass::Corrupt, text);
}

#[test]
fn lengths_and_sizes_are_what_they_should_be() {
    let (site, span) = (site(V3, Datagram), two_blocks());
    for verify in [Verify::Length, Verify::Content] {
        let ok = v3::ReadRes::Ok(read_ok(&site.content_of(span)[..100]));
        let text = "asked for 8192 bytes, got 100";
        check(end(V3, NfsCall::Read(span, verify), ok), ErrorClass::Length, text);
    }
    let ok = v3::WriteOk { count: 8_191, ..write_ok(span, StableHow::Unstable, RUN) };
    check(end(V3, unstable(), v3::WriteRes::Ok(ok)), ErrorClass::Length, "got 8191");
    let ok = attributes2(FileKind2::Regular, 16_383);
    check(end(V2, unstable(), Reply2::Ok(ok)), ErrorClass::Length, "16384 bytes were written");
    let ok = attributes3(FileKind::Regular, 65_535);
    let text = "65536 bytes were written, the server says it has 65535";
    check(end(V3, get_attr(), Reply3::<_, ()>::Ok(ok)), ErrorClass::Length, text);
}

#[test]
fn every_wrong_byte_is_caught_at_its_offset_when_content_is_compared() {
    let (site, span) = (site(V3, Datagram), two_blocks());
    for at in [0, 1, 4_095, 8_191] {
        let mut data = site.content_of(span).to_vec();
        data[at] ^= 0x10;
        let (actual, expected) = (data[at], data[at] ^ 0x10);
        let text = format!(
            "first wrong byte at offset {}: 0x{actual:02x}, but 0x{expected:02x} was written",
            8_192 + at
        );
        let read = |verify| NfsCall::Read(span, verify);
        let ok = v3::ReadRes::Ok(read_ok(&data));
        check(end(V3, read(Verify::Content), ok), ErrorClass::Corrupt, &text);
        assert_eq!(end(V3, read(Verify::Length), ok).0, OpStatus::Ok);
        let attributes = attributes2(FileKind2::Regular, 1 << 20);
        let ok = Reply2::Ok(v2::ReadOk { attributes, data: v2::Data2(&data) });
        check(end(V2, read(Verify::Content), ok), ErrorClass::Corrupt, &text);
        assert_eq!(end(V2, read(Verify::Length), ok).0, OpStatus::Ok);
    }
}

#[test]
fn a_restart_of_the_server_is_noticed_once() {
    let mut bench = Bench::connected(V3, Stream);
    let mut write = |stability, verifier: &[u8; 8]| {
        let sent = bench.io.sent.len();
        bench.issue(NfsCall::Write(two_blocks(), stability));
        let committed = StableHow::from(stability);
        let ok = write_ok(two_blocks(), committed, *verifier);
        let message = reply(bench.xid(sent), v3::WriteRes::Ok(ok));
        bench.message(&message);
        bench.last().status
    };
    let changed = OpStatus::Failed(ErrorClass::Verifier);
    assert_eq!(write(Stability::Unstable, b"run no 1"), OpStatus::Ok);
    assert_eq!(write(Stability::Unstable, b"run no 1"), OpStatus::Ok);
    // What is durable cannot be lost.
    assert_eq!(write(Stability::FileSync, b"run no 2"), OpStatus::Ok);
    assert_eq!(write(Stability::Unstable, b"run no 2"), changed);
    assert_eq!(write(Stability::Unstable, b"run no 2"), OpStatus::Ok);
    bench.issue(NfsCall::Commit(large_file()));
    bench.answer(bench.io.sent.len() - 1, NfsCall::Commit(large_file()));
    assert_eq!(bench.last().status, changed);
    assert!(bench.io.detail.contains("may have lost data"), "{}", bench.io.detail);
}
