use std::sync::Arc;

use plimsoll_engine::interface::{Script, ScriptContext, Step, Ticket};
use plimsoll_model::outcome::{OpStatus, Outcome};
use plimsoll_model::units::Nanos;

use plimsoll_protocol::InputFile;

use crate::loadfile::{LOAD_FILES, LoadFile, LoadFileSource, Replay};
use crate::op::{
    Disposition, Expected, ExpectedLength, FileLevel, FindLevel, FsLevel, HandleNo, SmbCall, SmbOp,
};
use crate::wire::status::END_OF_FILE;

fn read(text: &str) -> Arc<LoadFile> {
    Arc::new(LoadFile::parse(text.as_bytes(), "a.txt").unwrap())
}

fn step(replay: &mut Replay) -> Step<SmbCall> {
    let context = ScriptContext { index: 0, due: Nanos::from_secs(7), now: Nanos::from_secs(7) };
    let step = replay.next(context);
    if let Step::Issue(call) = &step {
        replay.on_issued(Ticket(0));
        assert_eq!(replay.next(context), Step::WaitForOutcome);
        let (kind, status) = (call.op.kind().into(), OpStatus::Ok);
        let outcome = Outcome { kind, status, bytes_read: 0, bytes_written: 0, ambiguous: false };
        replay.on_outcome(Ticket(0), &outcome, context.now);
    }
    step
}

fn calls(text: &str, client: u32) -> Vec<SmbCall> {
    let file = read(text);
    let mut replay = Replay::new(file.clone(), client);
    assert_eq!(step(&mut replay), Step::Think);
    let one = |_| match step(&mut replay) {
        Step::Issue(call) => call,
        other => panic!("{other:?}"),
    };
    file.records().iter().map(one).collect()
}

fn the_call(line: &str) -> SmbCall {
    calls(line, 0).remove(0)
}

#[test]
fn a_pass_is_a_piece_of_work_and_comes_again_and_again() {
    let mut replay = Replay::new(read("Close 1 *\nSleep 1500\nSleep 0\nClose 2 *\n"), 0);
    for _ in 0..3 {
        assert_eq!(step(&mut replay), Step::Think);
        assert!(matches!(step(&mut replay), Step::Issue(_)));
        assert_eq!(step(&mut replay), Step::SleepUntil(Nanos(7_001_500_000)));
        assert!(matches!(step(&mut replay), Step::Issue(_)));
    }
}

#[test]
fn each_client_works_in_its_own_directory() {
    let text = "Rename \"\\clients\\client1\\A\" \"/clients/client1/B\" *\n\
                FIND_FIRST \"\\clients\\client1\" 260 9 0 *\n\
                FIND_FIRST \"\\*\" 260 9 0 *\n\
                QUERY_PATH_INFORMATION \"\\\" 1004 *";
    let ops: Vec<SmbOp> = calls(text, 41).into_iter().map(|call| call.op).collect();
    let SmbOp::Rename { path, to, .. } = &ops[0] else { panic!() };
    assert_eq!(path.as_str(), r"plimsoll-files\replay\clients\client42\A");
    assert_eq!(to.as_str(), r"plimsoll-files\replay\clients\client42\B");
    let SmbOp::Find { directory, pattern, level, entries_max } = &ops[1] else { panic!() };
    assert_eq!(directory.as_str(), r"plimsoll-files\replay\clients");
    assert_eq!((pattern.as_str(), *level, *entries_max), ("client42", FindLevel::Both, 9));
    let SmbOp::Find { directory, pattern, .. } = &ops[2] else { panic!() };
    assert_eq!((directory.as_str(), pattern.as_str()), (r"plimsoll-files\replay", "*"));
    let SmbOp::QueryPath { path, level } = &ops[3] else { panic!() };
    assert_eq!((path.as_str(), *level), (r"plimsoll-files\replay", FileLevel::Basic));
}

#[test]
fn what_smb2_forbids_is_masked_and_the_rest_passes() {
    let call = the_call("NTCreateX \"client1\\A\" 0x103460 5 77 NT_STATUS_OK");
    let SmbOp::Create { handle, disposition, options, .. } = call.op else { panic!() };
    assert_eq!((handle, disposition), (HandleNo(77), Disposition::OverwriteIf));
    assert_eq!(options, 0x1040, "non-directory and delete on close stay");
}

#[test]
fn a_read_wants_what_its_line_expects() {
    let expectation = |line: &str| {
        let call = the_call(line);
        let SmbOp::Read { length: 4096, expected_length, check: None, .. } = call.op else {
            panic!()
        };
        (expected_length, call.expected)
    };
    let ok = expectation("ReadX 1 0 4096 100 NT_STATUS_OK");
    assert_eq!(ok, (ExpectedLength::Exactly(100), Expected::Success));
    assert_eq!(expectation("ReadX 1 0 4096 100 *"), (ExpectedLength::Any, Expected::Anything));
    let nothing = expectation("ReadX 1 0 4096 0 NT_STATUS_OK");
    assert_eq!(nothing, (ExpectedLength::Any, Expected::Failure(END_OF_FILE)));
}

#[test]
fn statuses_are_expected_as_written_but_for_the_published_exceptions() {
    let expected = |line: &str| the_call(line).expected;
    assert_eq!(expected("Mkdir \"\\clients\" NT_STATUS_OK"), Expected::Anything);
    assert_eq!(expected("Mkdir \"\\clients\\client1\" NT_STATUS_OK"), Expected::Success);
    let collision = expected("Mkdir \"\\clients\" NT_STATUS_OBJECT_NAME_COLLISION");
    assert_eq!(collision, Expected::Failure(0xC000_0035));
    assert_eq!(expected("QUERY_FS_INFORMATION 259 ERROR"), Expected::AnyFailure);
    let SmbOp::QueryFs { level } = the_call("QUERY_FS_INFORMATION 1 *").op else { panic!() };
    assert_eq!(level, FsLevel::Size);
}

#[test]
fn a_client_writes_its_own_bytes_whatever_the_file_is_called() {
    let text = "WriteX 1 0 10 10 *\nWrite 2 5 10 10 *";
    let keys = |client| {
        let key = |call: SmbCall| match call.op {
            SmbOp::Write { content, .. } => content.key,
            other => panic!("{other:?}"),
        };
        calls(text, client).into_iter().map(key).collect::<Vec<_>>()
    };
    assert_eq!(keys(3)[0], keys(3)[1]);
    assert_ne!(keys(3)[0], keys(4)[0]);
}

#[test]
fn a_file_that_the_user_named_is_taken_up_as_it_was_read() {
    let mut text: &[u8] = b"Mkdir \"\\client1\" *\n";
    let content = (LOAD_FILES.read)(&mut text, "a.txt").unwrap();
    let input = InputFile { path: "a.txt".into(), sha256: "ab".into(), content };
    let source = LoadFileSource::from_input(&input).unwrap();
    assert_eq!((source.path, source.sha256), (input.path, input.sha256));
    assert_eq!(source.file.records().len(), 1);
    assert!((LOAD_FILES.read)(&mut &b"vm"[..], "a.txt").is_err());
}

#[test]
fn departures_name_what_is_asked_otherwise() {
    let text = "0.5 QUERY_PATH_INFORMATION \"\\client1\" 1035 *\nNTCreateX \"a\" 0x20 1 1 *\n\
                QUERY_FS_INFORMATION 1 *\nQUERY_FS_INFORMATION 259 *";
    let source = LoadFileSource { path: "a.txt".into(), sha256: "ab".into(), file: read(text) };
    let deviations = source.deviations().join("\n");
    for part in [
        "load file a.txt",
        "timestamps of 1 lines",
        "level 1035 (FileAttributeTagInformation) is asked as Basic (1 lines)",
        "level 1 (SMB_INFO_ALLOCATION) is asked as Size (1 lines)",
        "left out of 1 NTCreateX lines",
    ] {
        assert!(deviations.contains(part), "{part:?} not in {deviations}");
    }
    assert!(!deviations.contains("259"), "{deviations}");
}

#[test]
fn clients_share_one_file_in_memory() {
    let file = read("Close 1 *");
    let replays: Vec<Replay> = (0..128).map(|n| Replay::new(file.clone(), n)).collect();
    assert_eq!(Arc::strong_count(&file), 129);
    // Besides the shared file, a client has its name and its position.
    assert!(size_of::<Replay>() < 512, "{}", size_of::<Replay>());
    drop(replays);
    assert_eq!(Arc::strong_count(&file), 1);
}
