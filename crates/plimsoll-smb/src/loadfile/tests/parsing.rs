use std::fmt::Write as _;

use proptest::prelude::*;

use crate::loadfile::grammar::{Argument, Status, Verb};
use crate::loadfile::line::{self, Line, Value};
use crate::loadfile::names::{on_share, own_name};
use crate::loadfile::problem::{LINE_BYTES_MAX, NAME_BYTES_MAX};
use crate::loadfile::{LoadFile, TRANSFER_BYTES_MAX, levels};
use crate::op::PathText;

fn read(text: &str) -> LoadFile {
    LoadFile::parse(text.as_bytes(), "a.txt").unwrap()
}

fn refusal(text: &str) -> String {
    LoadFile::parse(text.as_bytes(), "a.txt").unwrap_err().to_string()
}

fn printed(file: &LoadFile) -> String {
    file.records().iter().fold(String::new(), |mut text, record| {
        writeln!(text, "{}", file.line(record)).unwrap();
        text
    })
}

const EVERY_VERB: &str = r#"Deltree "\clients\client1" NT_STATUS_OK
Mkdir "\clients" NT_STATUS_OK
NTCreateX "\clients\client1\a b.txt" 0x40 0x2 16385 NT_STATUS_OK
WriteX 16385 65534 1 1 NT_STATUS_OK
Write 16385 0 65536 65536 NT_STATUS_OK
ReadX 16385 18446744073709551615 4096 0 NT_STATUS_END_OF_FILE
Flush 16385 0xC0FF0001
LockX 16385 2147483538 1 NT_STATUS_OK
UnlockX 16385 2147483538 18446744073709551615 NT_STATUS_RANGE_NOT_LOCKED
QUERY_FILE_INFORMATION 16385 258 NT_STATUS_OK
SET_FILE_INFORMATION 16385 1004 NT_STATUS_OK
Close 16385 *
QUERY_PATH_INFORMATION "\clients\client1" 1004 NT_STATUS_OK
QUERY_FS_INFORMATION 259 NT_STATUS_OK
FIND_FIRST "\clients\client1\<.JNK" 260 1366 0 NT_STATUS_NO_SUCH_FILE
Rename "\clients\client1\a b.txt" "\clients\client1\c" NT_STATUS_OK
Unlink "\clients\client1\c" 0x6 ERROR
Rmdir "\clients\client1" NT_STATUS_OK
Sleep 1500 NT_STATUS_OK
"#;

#[test]
fn every_verb_is_read_and_written_as_it_was() {
    let file = read(EVERY_VERB);
    assert_eq!(printed(&file), EVERY_VERB);
    assert_eq!(file.counts().len(), Verb::ALL.len());
}

#[test]
fn timestamps_comments_empty_lines_and_bare_names_are_taken() {
    let file = read(
        "# recorded\r\n\r\n  0.25 Mkdir /clients/client1 SUCCESS # made\r\n12 # a pause\n\t\n\
         Mkdir \"x # y\" 0x0\nSleep 5",
    );
    let want = "Mkdir \"\\clients\\client1\" NT_STATUS_OK\n\
                Mkdir \"\\x # y\" NT_STATUS_OK\nSleep 5 NT_STATUS_OK\n";
    assert_eq!(printed(&file), want);
    assert_eq!(file.timestamps, 1);
}

fn check_bad(line: &str, parts: &[&str]) {
    let message = refusal(&format!("# first\nMkdir \"\\a\" NT_STATUS_OK\n{line}\n"));
    assert!(message.starts_with("a.txt:3: "), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} not in {message:?}");
    }
}

#[test]
fn a_wrong_word_is_named_with_its_line_and_the_nearest() {
    check_bad("ReedX 1 0 1 1 NT_STATUS_OK", &["\"ReedX\"", "did you mean ReadX?"]);
    check_bad("ntcreatex \"a\" 0 1 1 NT_STATUS_OK", &["did you mean NTCreateX?"]);
    check_bad("Zzzz 1", &["known operations: NTCreateX, Close"]);
    check_bad("SMBopenX 1 2", &["dbench 1"]);
    check_bad("1.2.3 Close 1 NT_STATUS_OK", &["\"1.2.3\"", "number of seconds"]);
    check_bad("Close 1 NT_STATUS_OKAY", &["\"NT_STATUS_OKAY\"", "did you mean NT_STATUS_OK?"]);
    check_bad("Close 1 fine", &["\"fine\"", "NT_STATUS_…, 0x…"]);
    check_bad("Close 1 0xZZ", &["\"0xZZ\""]);
}

#[test]
fn a_wrong_number_of_arguments_is_refused_with_the_form_expected() {
    check_bad("ReadX 1 0 4096 NT_STATUS_OK", &["expected \"NT_STATUS_OK\"", "ReadX handle offset"]);
    check_bad("ReadX 1 0 4096 4096", &["before its status", "size expected STATUS"]);
    check_bad("Close", &["before its handle", "Close handle STATUS"]);
    check_bad("Close 1 NT_STATUS_OK 7", &["\"7\" is too much"]);
    check_bad("Rename \"a\" NT_STATUS_OK", &["before its status", "Rename \"old\" \"new\" STATUS"]);
}

#[test]
fn a_wrong_number_is_refused_with_its_bounds() {
    check_bad("Close -1 NT_STATUS_OK", &["handle \"-1\"", "from 0 to 4294967295"]);
    check_bad("Close +1 NT_STATUS_OK", &["\"+1\""]);
    check_bad("Close 4294967296 NT_STATUS_OK", &["\"4294967296\""]);
    check_bad("Close 0x NT_STATUS_OK", &["\"0x\""]);
    check_bad("NTCreateX \"a\" 0x40 6 1 NT_STATUS_OK", &["disposition \"6\"", "from 0 to 5"]);
    check_bad("WriteX 1 0 131073 1 NT_STATUS_OK", &["size \"131073\"", "to 131072"]);
    check_bad("LockX 1 18446744073709551616 1 NT_STATUS_OK", &["offset"]);
    check_bad("QUERY_FS_INFORMATION 512 NT_STATUS_OK", &["level 512", "known levels: 1, 2, 258"]);
    check_bad("SET_FILE_INFORMATION 1 1020 NT_STATUS_OK", &["level 1020", "1, 257, 1004"]);
}

#[test]
fn a_name_that_leaves_its_place_is_refused() {
    check_bad("Mkdir \"a\\..\\..\\b\" NT_STATUS_OK", &["a\\\\..\\\\..\\\\b", "stays below"]);
    check_bad("Mkdir \"..\" NT_STATUS_OK", &["stays below"]);
    check_bad("Mkdir \"a\\\\b\" NT_STATUS_OK", &["empty part"]);
    check_bad("Mkdir \"\\\" NT_STATUS_OK", &["names nothing"]);
    check_bad("Mkdir \"a\tb\" NT_STATUS_OK", &["control character"]);
    check_bad("Mkdir \"a NT_STATUS_OK", &["is not closed"]);
    check_bad("Mkdir \"a\"b NT_STATUS_OK", &["closing quote"]);
    check_bad("Unlink \"client1\\*.TMP\" 0x6 NT_STATUS_OK", &["wildcard"]);
    check_bad("FIND_FIRST \"a*\\b\" 260 1 0 NT_STATUS_OK", &["wildcard in its directory"]);
    check_bad("Deltree \"\\clients\" NT_STATUS_OK", &["tree of all clients", "client1"]);
    let long = "x".repeat(NAME_BYTES_MAX + 1);
    check_bad(&format!("Mkdir \"{long}\" NT_STATUS_OK"), &["is longer than"]);
}

#[test]
fn a_file_that_is_none_is_refused() {
    assert!(refusal("").contains("a.txt:0: the file holds no operation"));
    assert!(refusal("# only\nSleep 0\n").contains("a.txt:2: the file holds no operation"));
    let long = format!("Close 1 NT_STATUS_OK\n# {}", "x".repeat(LINE_BYTES_MAX));
    assert!(refusal(&long).starts_with("a.txt:2: the line is longer"));
    let message = LoadFile::parse(&b"Mkdir \"\xff\" *"[..], "a.txt").unwrap_err().to_string();
    assert!(message.starts_with("a.txt:1: the line is not UTF-8"), "{message}");
    let statuses =
        (1..=257).fold(String::new(), |text, n| text + &format!("Close 1 0xC00F{n:04x}\n"));
    assert!(refusal(&statuses).starts_with("a.txt:257: the file expects more than 256"));
}

#[test]
fn a_reader_that_breaks_off_is_an_error_with_its_line() {
    struct Breaks;
    impl std::io::Read for Breaks {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let reader = std::io::Read::chain(&b"Close 1 NT_STATUS_OK\n"[..], Breaks);
    let failure = LoadFile::parse(std::io::BufReader::new(reader), "a.txt").unwrap_err();
    assert_eq!(failure.to_string(), "a.txt:2: cannot be read: the disk is gone");
}

#[test]
fn the_longest_name_fits_for_the_highest_client() {
    let own = "client1\\client1\\";
    let rest = NAME_BYTES_MAX - own.len() - 2 * 9;
    let name = format!("{own}{}", "x".repeat(rest));
    let file = read(&format!("Mkdir \"{name}\" *"));
    let line = file.line(&file.records()[0]);
    let path = on_share(line.values[0].text(), &own_name(u32::MAX));
    assert_eq!(path.as_str().len(), PathText::BYTES_MAX);
    check_bad(&format!("Mkdir \"{name}x\" *"), &["is longer than"]);
}

fn a_value(verb: Verb, argument: Argument) -> BoxedStrategy<Value<'static>> {
    let up_to = |max: u64| (0..=max).prop_map(Value::Number).boxed();
    match argument {
        Argument::Path(_) | Argument::Mask => "client1(\\\\[A-Za-z~@. ]{0,6}[A-Za-z@]){0,3}"
            .prop_map(|text| Value::Text(text.into()))
            .boxed(),
        Argument::Handle | Argument::Word(_) => up_to(u64::from(u32::MAX)),
        Argument::Long(_) => up_to(u64::MAX),
        Argument::Transfer(_) => up_to(TRANSFER_BYTES_MAX),
        Argument::Disposition => up_to(5),
        Argument::Level => {
            let supported = (0..=2000).filter(|level| levels::is_supported(verb, *level));
            prop::sample::select(supported.collect::<Vec<_>>()).prop_map(Value::Number).boxed()
        }
    }
}

fn a_line() -> impl Strategy<Value = Line<'static>> {
    let statuses = [Status::OK, Status::Code(0xC000_0034), Status::AnyFailure, Status::Anything];
    let verb = prop::sample::select(Verb::ALL.to_vec());
    (verb, prop::sample::select(statuses.to_vec())).prop_flat_map(|(verb, status)| {
        let values: Vec<_> =
            verb.arguments().iter().map(|argument| a_value(verb, *argument)).collect();
        values.prop_map(move |mut values| {
            values.resize(4, Value::Number(0));
            let values = values.try_into().unwrap();
            Line { verb, values, status, timestamp: false }
        })
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_again_as_it_was(lines in prop::collection::vec(a_line(), 1..30)) {
        let mut text = "Close 1 NT_STATUS_OK\n".to_owned();
        for line in &lines {
            writeln!(text, "{line}").unwrap();
            let alone = line.to_string();
            let again = line::parse(&alone).unwrap();
            prop_assert_eq!(again.as_ref(), Some(line));
        }
        let file = read(&text);
        for (record, line) in file.records()[1..].iter().zip(&lines) {
            prop_assert_eq!(&file.line(record), line);
        }
        prop_assert_eq!(printed(&file), text);
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        text in "([A-Za-z_]{1,12}|NTCreateX|Close|\"[^\"]{0,9}|[0-9x ]{1,5}|\\PC){0,9}",
    ) {
        let _ = LoadFile::parse(text.as_bytes(), "a.txt");
        for verb in Verb::ALL {
            let _ = line::parse(&format!("{} {text}", verb.name()));
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = LoadFile::parse(&bytes[..], "a.txt");
    }
}
