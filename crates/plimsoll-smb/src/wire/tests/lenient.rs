//! Replies that differ from their specification: those that mean the same are read, and noted.

use plimsoll_model::nonconformity::{Nonconformities, NonconformityKind as Kind};

use super::super::*;
use super::golden::hex;
use crate::op::{FileLevel, FindLevel, FsLevel};
use crate::wire::fscc::Entries;

/// Section, field and kind of what was noted.
type Noted = (&'static str, Option<&'static str>, Kind);

#[track_caller]
fn check_noted(nonconformities: &Nonconformities, expected: &[Noted]) {
    let noted: Vec<_> =
        nonconformities.iter().map(|one| (&*one.section, one.field.as_deref(), one.kind)).collect();
    let expected: Vec<_> =
        expected.iter().map(|(section, field, kind)| (*section, *field, *kind)).collect();
    assert_eq!(noted, expected);
}

/// The body as it is to be decoded.
#[track_caller]
fn body(command: Command, bytes: &[u8], expected: &[Noted]) -> Vec<u8> {
    let mut nonconformities = Nonconformities::default();
    let right = lenient::body(command, bytes, &mut nonconformities).into_owned();
    check_noted(&nonconformities, expected);
    right
}

/// A CREATE response as impacket 0.13 sends it, with another oplock, action, and contexts.
fn create(oplock: &str, action: &str, contexts: &str) -> Vec<u8> {
    hex(&format!(
        "5900 {oplock} 00 (CreateAction) {action} (times) 0000000000000000 0000000000000000 \
         0000000000000000 0000000000000000 (AllocationSize) 0004000000000000 \
         (EndOfFile) 0004000000000000 (FileAttributes) A0000000 00000000 \
         (FileId) 22110000000000004433000000000000 (contexts) {contexts}"
    ))
}

#[test]
fn a_failed_status_says_all_whatever_its_body_is() {
    let size = ("2.2.2", Some("StructureSize"), Kind::WrongSize);
    let short = ("2.2.2", None, Kind::MissingPart);
    let close = format!("3C00{}", "00".repeat(58));
    for (bytes, noted) in [
        ("0900 00 00 00000000 00", None),
        ("0900 00 00 00000000", None),
        (&*close, Some(size)),
        ("0400 0000 0000 0000", Some(size)),
        ("0900 00 00 08000000 00", Some(short)),
        ("0900", Some(short)),
        ("", Some(short)),
    ] {
        let mut nonconformities = Nonconformities::default();
        lenient::failed(Command::Close, &hex(bytes), &mut nonconformities);
        check_noted(&nonconformities, noted.as_slice());
        assert!(
            nonconformities
                .iter()
                .all(|one| (&*one.reply_to, &*one.document) == ("CLOSE", "MS-SMB2"))
        );
    }
}

#[test]
fn another_size_of_a_structure_that_is_all_there_is_noted() {
    let wrong = hex("1000 (Reserved) 0000 (Count) 00100000 0000000000000000");
    let noted = [("2.2.22", Some("StructureSize"), Kind::WrongSize)];
    let right = body(Command::Write, &wrong, &noted);
    assert_eq!(WriteResponse::decode(&right).unwrap().count, 4_096);
    assert!(WriteResponse::decode(&wrong).is_err());
}

#[test]
fn an_end_that_nobody_reads_may_be_missing() {
    for (command, bytes, section) in [
        (Command::Flush, "0400", "2.2.18"),
        (Command::Lock, "040000", "2.2.27"),
        (Command::Close, "3C0000000000000000000000", "2.2.16"),
        (Command::TreeConnect, "1000 01 00 00000000", "2.2.10"),
        (Command::Write, "1100 0000 00100000", "2.2.22"),
    ] {
        let right = body(command, &hex(bytes), &[(section, None, Kind::MissingPart)]);
        assert!(right.len() > bytes.len() / 2);
    }
    let right = body(Command::Close, &hex("3C00"), &[("2.2.16", None, Kind::MissingPart)]);
    assert_eq!(CloseResponse::decode(&right), Ok(CloseResponse::default()));
}

#[test]
fn bytes_behind_the_end_are_noted_and_padding_is_not() {
    let read = "1100 50 00 03000000 00000000 00000000 616263";
    for (behind, noted) in [
        ("", None),
        ("00000000000000", None),
        ("0000000000000000", Some(("2.2.20", None, Kind::TrailingBytes))),
    ] {
        let right = body(Command::Read, &hex(&format!("{read}{behind}")), noted.as_slice());
        assert_eq!(ReadResponse::decode(&right).unwrap().data, b"abc");
    }
    let noted = [("2.2.29", None, Kind::TrailingBytes)];
    body(Command::Echo, &hex("0400 0000 0000000000000000"), &noted);
    // The first byte of a buffer is part of the size, and may be there or not.
    body(Command::Write, &hex("1100 0000 00100000 0000000000000000 00"), &[]);
}

#[test]
fn what_a_create_says_of_caching_and_action_may_be_nothing_that_is_defined() {
    let section = "2.2.14";
    let oplock = (section, Some("OplockLevel"), Kind::UndefinedValue);
    let action = (section, Some("CreateAction"), Kind::UndefinedValue);
    let contexts = (section, Some("CreateContextsLength"), Kind::WrongSize);
    let none = "00000000 00000000";
    for (bytes, noted) in [
        (create("00", "01000000", none), vec![]),
        // impacket repeats the disposition: OVERWRITE_IF.
        (create("00", "05000000", &format!("{none} 00")), vec![action]),
        (create("07", "01000000", none), vec![oplock]),
        (create("00", "01000000", "98000000 FF000000"), vec![contexts]),
        (create("07", "05000000", "00000000 01000000"), vec![action, contexts, oplock]),
    ] {
        let right = body(Command::Create, &bytes, &noted);
        let reply = CreateResponse::decode(&right).unwrap();
        assert_eq!(reply.file_id, FileId { persistent: 0x1122, volatile: 0x3344 });
        assert_eq!((reply.oplock, reply.end_of_file), (OplockLevel::None, 1_024));
        assert_eq!(reply.lease, None);
    }
}

#[test]
fn what_the_meaning_depends_on_stays_wrong() {
    let lease = create("FF", "01000000", "98000000 FF000000");
    assert!(CreateResponse::decode(&body(Command::Create, &lease, &[])).is_err());
    // Neither the size nor the length of a CLOSE response: it is another message.
    let error = hex("0900 00 00 00000000 00");
    assert!(CloseResponse::decode(&body(Command::Close, &error, &[])).is_err());
    let elsewhere = hex("1100 FF 00 03000000 00000000 00000000 616263");
    assert!(ReadResponse::decode(&body(Command::Read, &elsewhere, &[])).is_err());
    for (command, bytes) in [(Command::Echo, "04"), (Command::Echo, ""), (Command::Write, "1100")] {
        assert_eq!(body(command, &hex(bytes), &[]), hex(bytes), "{command:?}");
    }
}

#[test]
fn a_security_token_that_nobody_reads_may_lie_outside_of_its_message() {
    let token = ("2.2.6", Some("SecurityBufferLength"), Kind::WrongSize);
    for (bytes, noted) in [
        ("0900 0000 4800 0200 A107", None),
        ("0900 0000 4800 FF00 A107", Some(token)),
        ("0900 0100 FFFF 0100", Some(token)),
    ] {
        let mut nonconformities = Nonconformities::default();
        let bytes = hex(bytes);
        let right = lenient::without_token(Command::SessionSetup, &bytes, &mut nonconformities);
        check_noted(&nonconformities, noted.as_slice());
        assert!(SessionSetupResponse::decode(&right).is_ok());
    }
    // In the challenge it is all that matters.
    let right = body(Command::SessionSetup, &hex("0900 0000 4800 FF00 A107"), &[]);
    assert!(SessionSetupResponse::decode(&right).is_err());
}

#[test]
fn flags_of_a_header_without_a_meaning_are_noted() {
    for (flags, noted) in [
        (0x1, None),
        (0x3000_007f, None),
        (0x81, Some(("2.2.1", Some("Flags"), Kind::UndefinedValue))),
    ] {
        let mut nonconformities = Nonconformities::default();
        lenient::header(&Header { flags, ..Header::new(Command::Read) }, &mut nonconformities);
        check_noted(&nonconformities, noted.as_slice());
    }
}

#[test]
fn what_is_told_of_files_and_volumes_may_lack_its_reserved_end() {
    let file = |level, bytes: usize, expected: &[Noted]| {
        let mut nonconformities = Nonconformities::default();
        let result = lenient::check_file_info(level, &vec![0; bytes], &mut nonconformities);
        check_noted(&nonconformities, expected);
        result.is_ok()
    };
    let (missing, trailing) = (Kind::MissingPart, Kind::TrailingBytes);
    assert!(file(FileLevel::Standard, 24, &[]));
    assert!(file(FileLevel::Standard, 22, &[("2.4.47", None, missing)]));
    assert!(!file(FileLevel::Standard, 21, &[]));
    assert!(file(FileLevel::Basic, 36, &[("2.4.7", None, missing)]));
    assert!(!file(FileLevel::Basic, 32, &[]));
    assert!(file(FileLevel::NetworkOpen, 57, &[("2.4.33", None, trailing)]));
    assert!(!file(FileLevel::Ea, 3, &[]) && !file(FileLevel::Internal, 0, &[]));
    assert!(!file(FileLevel::All, 99, &[]));

    let mut all = vec![0; 104];
    all[96] = 5;
    let mut nonconformities = Nonconformities::default();
    lenient::check_file_info(FileLevel::All, &all, &mut nonconformities).unwrap();
    check_noted(&nonconformities, &[("2.4.2", Some("FileNameLength"), Kind::WrongSize)]);

    let mut nonconformities = Nonconformities::default();
    assert!(lenient::check_volume_info(FsLevel::FullSize, &[], &mut nonconformities).is_err());
    lenient::check_volume_info(FsLevel::Size, &[0; 24], &mut nonconformities).unwrap();
    check_noted(&nonconformities, &[]);
    lenient::check_volume_info(FsLevel::Volume, &[1; 18], &mut nonconformities).unwrap();
    check_noted(&nonconformities, &[("2.5.9", Some("VolumeLabelLength"), Kind::WrongSize)]);
}

#[test]
fn a_short_name_that_is_longer_than_its_place_is_none() {
    let mut output = vec![0; 94];
    output[68] = 25;
    let mut entries = Entries::new(FindLevel::Both, &output);
    assert_eq!(entries.next().unwrap().unwrap().short_name.wire_bytes(), 0);
    let mut nonconformities = Nonconformities::default();
    lenient::listed(FindLevel::Both, &entries, &mut nonconformities);
    check_noted(&nonconformities, &[("2.4.8", Some("ShortNameLength"), Kind::WrongSize)]);
}
