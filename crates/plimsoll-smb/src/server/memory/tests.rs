use super::*;

const BUDGET: u64 = 1 << 20;

fn share() -> MemoryShare {
    MemoryShare::new(BUDGET)
}

fn path(text: &str) -> SmbPath {
    let units: Vec<u16> = text.encode_utf16().collect();
    SmbPath::from_utf16(&units).unwrap()
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn open_as(
    share: &MemoryShare,
    name: &str,
    options: OpenOptions,
) -> SmbResult<(Box<dyn Handle>, OpenAction)> {
    now(share.open(&path(name), options))
}

fn with(intent: OpenIntent) -> OpenOptions {
    OpenOptions { write: true, intent, ..OpenOptions::default() }
}

fn file(share: &MemoryShare, name: &str) -> Box<dyn Handle> {
    open_as(share, name, with(OpenIntent::Create)).unwrap().0
}

fn directory(share: &MemoryShare, name: &str) -> Box<dyn Handle> {
    let options = OpenOptions { directory: true, ..with(OpenIntent::Create) };
    open_as(share, name, options).unwrap().0
}

fn refusal(outcome: SmbResult<(Box<dyn Handle>, OpenAction)>) -> SmbError {
    outcome.err().unwrap()
}

fn names(handle: &dyn Handle, pattern: Option<&str>) -> Vec<String> {
    now(handle.list_dir(pattern)).unwrap().into_iter().map(|entry| entry.info.name).collect()
}

#[test]
fn what_is_written_is_read_and_names_ignore_case_but_keep_it() {
    let share = share();
    directory(&share, "Some Folder");
    let written = file(&share, "some folder\\Notes.TXT");
    assert_eq!(now(written.write(3, b"abc")).unwrap(), 3);
    let (opened, action) =
        open_as(&share, "SOME FOLDER\\notes.txt", OpenOptions::default()).unwrap();
    assert_eq!(action, OpenAction::Opened);
    assert_eq!(now(opened.read(0, 100)).unwrap(), &b"\0\0\0abc"[..]);
    assert_eq!(now(opened.read(6, 100)).unwrap(), &b""[..]);
    assert_eq!(now(opened.stat()).unwrap().name, "Notes.TXT");
    let (root, _) = open_as(&share, "", OpenOptions::default()).unwrap();
    assert_eq!(names(root.as_ref(), None), ["Some Folder"]);
    assert_eq!(now(root.stat()).unwrap().name, "plimsoll");
}

#[test]
fn every_way_to_open_finds_makes_empties_or_refuses() {
    let share = share();
    for intent in [OpenIntent::Open, OpenIntent::Truncate] {
        assert!(matches!(refusal(open_as(&share, "a", with(intent))), SmbError::NotFound));
    }
    let opened = |intent| open_as(&share, "a", with(intent)).map(|(_, action)| action);
    assert_eq!(opened(OpenIntent::OpenOrCreate).unwrap(), OpenAction::Created);
    assert_eq!(opened(OpenIntent::OpenOrCreate).unwrap(), OpenAction::Opened);
    assert!(matches!(opened(OpenIntent::Create), Err(SmbError::Exists)));
    let (handle, _) = open_as(&share, "a", with(OpenIntent::Open)).unwrap();
    now(handle.write(0, b"content")).unwrap();
    assert_eq!(opened(OpenIntent::OverwriteOrCreate).unwrap(), OpenAction::Overwritten);
    assert_eq!(now(handle.stat()).unwrap().end_of_file, 0);
    let below = open_as(&share, "a\\b", with(OpenIntent::Create));
    assert!(matches!(refusal(below), SmbError::PathNotFound));
    let as_directory = OpenOptions { directory: true, ..OpenOptions::default() };
    assert!(matches!(refusal(open_as(&share, "a", as_directory)), SmbError::NotADirectory));
    directory(&share, "d");
    let as_file = OpenOptions { non_directory: true, ..OpenOptions::default() };
    assert!(matches!(refusal(open_as(&share, "d", as_file)), SmbError::IsDirectory));
}

#[test]
fn a_removed_file_lives_until_it_is_closed_and_a_full_directory_stays() {
    let share = share();
    directory(&share, "d");
    let handle = file(&share, "d\\a");
    now(handle.write(0, b"still here")).unwrap();
    assert!(matches!(now(share.unlink(&path("d"))), Err(SmbError::NotEmpty)));
    now(share.unlink(&path("d\\a"))).unwrap();
    assert_eq!(now(handle.read(0, 10)).unwrap(), &b"still here"[..]);
    assert_eq!(now(handle.link_count()).unwrap(), 0);
    now(share.unlink(&path("d"))).unwrap();
    assert!(matches!(now(share.unlink(&path("d"))), Err(SmbError::NotFound)));
    drop(handle);
    assert_eq!(share.budget.free(), BUDGET);
}

#[test]
fn a_rename_moves_replaces_when_told_to_and_never_into_itself() {
    let share = share();
    for name in ["d", "d\\e"] {
        directory(&share, name);
    }
    let handle = file(&share, "a");
    now(handle.write(0, b"of a")).unwrap();
    drop(file(&share, "d\\b"));
    let rename = |from: &str, to: &str, replace| now(share.rename(&path(from), &path(to), replace));
    assert!(matches!(rename("a", "d\\b", false), Err(SmbError::Exists)));
    assert!(matches!(rename("a", "d\\e", true), Err(SmbError::AccessDenied)));
    rename("a", "d\\B", true).unwrap();
    assert_eq!(now(handle.stat()).unwrap().name, "B");
    assert!(matches!(rename("a", "x", true), Err(SmbError::NotFound)));
    assert!(matches!(rename("d", "D\\e\\f", true), Err(SmbError::AccessDenied)));
    rename("d", "D", false).unwrap();
    rename("D", "moved", false).unwrap();
    let (moved, _) = open_as(&share, "moved", OpenOptions::default()).unwrap();
    assert_eq!(names(moved.as_ref(), None), ["B", "e"]);
    assert_eq!(names(moved.as_ref(), Some("b*")), ["B"]);
    assert_eq!(names(moved.as_ref(), Some("E")), ["e"]);
}

#[test]
fn a_read_only_file_is_neither_written_nor_replaced() {
    let share = share();
    let handle = file(&share, "a");
    now(handle.set_attributes(0x21)).unwrap();
    assert!(now(handle.stat()).unwrap().read_only);
    for intent in [OpenIntent::Open, OpenIntent::Truncate] {
        assert!(matches!(refusal(open_as(&share, "a", with(intent))), SmbError::AccessDenied));
    }
    assert!(open_as(&share, "a", OpenOptions::default()).is_ok());
    drop(file(&share, "b"));
    let replaced = now(share.rename(&path("b"), &path("a"), true));
    assert!(matches!(replaced, Err(SmbError::AccessDenied)));
    assert!(matches!(now(handle.set_attributes(0x2)), Err(SmbError::NotSupported)));
}

#[test]
fn memory_has_a_limit_that_removing_gives_back() {
    let share = share();
    let handle = file(&share, "big");
    let block = vec![7; 64 << 10];
    let mut at = 0;
    let full = loop {
        match now(handle.write(at, &block)) {
            Ok(_) => at += block.len() as u64,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, SmbError::DiskFull));
    assert!(at > BUDGET / 2 && at <= BUDGET, "{at}");
    let info = now(share.volume_info()).unwrap();
    assert!(info.actual_available_allocation_units < 64);
    now(handle.truncate(0)).unwrap();
    now(handle.write(0, &block)).unwrap();
    drop(handle);
    now(share.unlink(&path("big"))).unwrap();
    assert_eq!(share.budget.free(), BUDGET);
    let many = (0..).find(|n| open_as(&share, &n.to_string(), with(OpenIntent::Create)).is_err());
    assert!(many.unwrap() < 2000);
}

#[test]
fn a_path_that_is_too_deep_is_refused() {
    let share = share();
    let deep = vec!["d"; DEPTH_MAX + 1].join("\\");
    assert!(matches!(
        refusal(open_as(&share, &deep, OpenOptions::default())),
        SmbError::NameInvalid
    ));
}
