//! Replies that differ from their specification and mean the same: accepted, and counted by kind.

use plimsoll_engine::interface::LinkKind::{Datagram, Stream};
use plimsoll_engine::interface::Session as _;
use plimsoll_model::outcome::{ErrorClass, OpStatus};

use super::super::NfsVersion::{self, V2, V3};
use super::super::replies::{self, attributes3, read_ok, reply};
use super::super::test_io::*;
use crate::nonconformity::facts;
use crate::op::*;
use crate::wire::Encode;
use crate::wire::v2::{Reply2, Status2};
use crate::wire::v3::{self, FileKind, PostOpAttr, Reply3, Status3};

/// How a call ends with a reply, and how it is counted.
fn noted(
    version: NfsVersion,
    call: NfsCall,
    message: impl FnOnce(u32) -> Vec<u8>,
) -> (OpStatus, Vec<String>) {
    let mut bench = Bench::connected(version, Datagram);
    bench.issue(call);
    let message = message(bench.xid(0));
    bench.message(&message);
    let counters = bench.session.take_counters();
    let notes = counters.nonconformities.iter().map(facts);
    (bench.last().status, notes.collect())
}

fn check(ended: (OpStatus, Vec<String>), status: OpStatus, note: &str) {
    assert_eq!(ended, (status, vec![note.to_owned()]));
}

fn of_attributes(attributes: PostOpAttr) -> Vec<u8> {
    let mut bytes = Vec::new();
    attributes.encode(&mut bytes);
    bytes
}

#[test]
fn bytes_behind_any_reply_are_counted_by_procedure() {
    let sections = [(V2, "RFC 1094"), (V3, "RFC 1813")];
    for (version, document) in sections {
        let site = site(version, Datagram);
        for call in super::every_call(version) {
            let longer = |xid| [replies::good(&site, call, xid), vec![0; 4]].concat();
            let (status, notes) = noted(version, call, longer);
            assert_eq!((status, notes.len()), (OpStatus::Ok, 1), "{call:?}: {notes:?}");
            assert!(notes[0].starts_with(document), "{notes:?}");
            assert!(notes[0].contains("TrailingBytes, 1"), "{notes:?}");
        }
    }
}

#[test]
fn each_reply_counts_once_and_over_streams_too() {
    let mut bench = Bench::connected(V3, Stream);
    for _ in 0..3 {
        let sent = bench.io.sent.len();
        bench.issue(NfsCall::FsStat);
        let good = replies::good(&bench.site, NfsCall::FsStat, bench.xid(sent));
        bench.bytes(&framed(Stream, &[good, vec![0; 4]].concat()));
    }
    let counted = bench.session.take_counters().nonconformities;
    let notes: Vec<String> = counted.iter().map(facts).collect();
    let expected = "RFC 1813 FSSTAT (section 3.3.18: TrailingBytes, 3)";
    assert_eq!(notes, [expected]);
    assert!(bench.session.take_counters().nonconformities.is_empty());
}

#[test]
fn padding_in_the_head_counts_as_any_other() {
    let site = site(V3, Datagram);
    let padded = |xid| {
        let mut good = replies::good(&site, NfsCall::FsStat, xid);
        // A verifier of one byte instead of none, and three bytes of padding.
        good.splice(16..20, [0, 0, 0, 1, 9, 9, 9, 9]);
        good
    };
    let note = "RFC 4506 FSSTAT (section 4.10: NonzeroPadding, 1)";
    check(noted(V3, NfsCall::FsStat, padded), OpStatus::Ok, note);
}

#[test]
fn a_failed_status_needs_nothing_behind_it() {
    let alone = |xid| reply(xid, Status3::STALE);
    let stale = OpStatus::Failed(ErrorClass::Status(70));
    let note = "RFC 1813 READLINK (section 3.3.5: resfail, MissingPart, 1)";
    check(noted(V3, NfsCall::ReadLink(LinkNo(2)), alone), stale, note);
    // GETATTR and NFSv2 have nothing there.
    let call = NfsCall::GetAttr(large_file());
    assert_eq!(noted(V3, call, alone), (stale, vec![]));
    let more = |xid| [reply(xid, Reply2::<()>::Err(Status2::STALE, ())), vec![0; 4]].concat();
    let note = "RFC 1094 GETATTR (section 2.2.2: TrailingBytes, 1)";
    check(noted(V2, call, more), stale, note);
}

#[test]
fn attributes_that_nobody_asked_for_decide_nothing() {
    let ok = |attributes| v3::AccessRes::Ok(v3::AccessOk { attributes, access: 0xd });
    let call = NfsCall::Access(large_file());
    let access = |attributes: PostOpAttr| noted(V3, call, |xid| reply(xid, ok(attributes)));
    assert_eq!(access(None), (OpStatus::Ok, vec![]), "they may be left out");
    let directory = attributes3(FileKind::Directory, 9);
    let note = "RFC 1813 ACCESS (section 3.3.4: attributes, OtherObject, 1)";
    check(access(Some(directory)), OpStatus::Ok, note);
    let odd = v3::FileAttributes { mode: 0o100_644, ..attributes3(FileKind::Regular, 9) };
    let note = "RFC 1813 ACCESS (section 3.3.4: mode, UndefinedValue, 1)";
    check(access(Some(odd)), OpStatus::Ok, note);
    let patched = |at: usize, word: u32| {
        noted(V3, call, |xid| {
            let mut bytes = of_attributes(Some(attributes3(FileKind::Regular, 9)));
            bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
            let head = reply(xid, Status3::OK);
            [head, bytes, 0xd_u32.to_be_bytes().to_vec()].concat()
        })
    };
    let note = "RFC 1813 ACCESS (section 3.3.4: type, UndefinedValue, 1)";
    check(patched(4, 9), OpStatus::Ok, note);
    let note = "RFC 4506 ACCESS (section 4.4: bool, UndefinedValue, 1)";
    check(patched(0, 0xffff_ffff), OpStatus::Ok, note);
}

#[test]
fn attributes_that_were_asked_for_decide() {
    let mut ok = Vec::new();
    Reply3::<_, ()>::Ok(attributes3(FileKind::Regular, 1 << 20)).encode(&mut ok);
    ok[4..8].copy_from_slice(&9_u32.to_be_bytes());
    let (status, notes) =
        noted(V3, NfsCall::GetAttr(large_file()), |xid| [reply(xid, ()), ok].concat());
    assert_eq!((status, notes), (OpStatus::Failed(ErrorClass::Malformed), vec![]));
}

#[test]
fn rights_beyond_those_asked_about_are_counted() {
    let ok = v3::AccessRes::Ok(v3::AccessOk { attributes: None, access: 0x41 });
    let note = "RFC 1813 ACCESS (section 3.3.4: access, WrongFlag, 1)";
    check(noted(V3, NfsCall::Access(large_file()), |xid| reply(xid, ok)), OpStatus::Ok, note);
}

#[test]
fn padding_may_be_wrong_or_missing_and_data_may_not() {
    let link = NfsCall::ReadLink(LinkNo(2));
    let site = site(V3, Datagram);
    // The text has 11 bytes.
    let changed = |change: fn(&mut Vec<u8>)| {
        noted(V3, link, |xid| {
            let mut good = replies::good(&site, link, xid);
            change(&mut good);
            good
        })
    };
    let note = "RFC 4506 READLINK (section 4.10: NonzeroPadding, 1)";
    check(changed(|good| *good.last_mut().unwrap() = 7), OpStatus::Ok, note);
    let note = "RFC 4506 READLINK (section 4.10: padding, MissingPart, 1)";
    check(changed(|good| good.truncate(good.len() - 1)), OpStatus::Ok, note);
    let (status, notes) = changed(|good| good.truncate(good.len() - 2));
    assert_eq!((status, notes), (OpStatus::Failed(ErrorClass::Malformed), vec![]));
    let span = two_blocks();
    let read = NfsCall::Read(span, Verify::Length);
    let cut = |xid| {
        let mut good = reply(xid, v3::ReadRes::Ok(read_ok(site.content_of(span))));
        good.truncate(good.len() - 4);
        good
    };
    assert_eq!(noted(V3, read, cut).0, OpStatus::Failed(ErrorClass::Malformed));
}
