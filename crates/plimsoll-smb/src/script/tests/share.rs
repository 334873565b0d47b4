//! A share in memory that answers as a server does: it checks what scripts expect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::op::{Disposition, ExpectedLength, FileChange, HandleNo, SmbOp};
use crate::wire::status;
use crate::workspace::{self, Home, Workspace};
use plimsoll_protocol::content::ContentTable;

/// A share in memory; names are as they are written.
pub(super) struct Share {
    table: ContentTable,
    directories: BTreeSet<String>,
    files: BTreeMap<String, Vec<u8>>,
    opens: HashMap<HandleNo, String>,
    locks: Vec<(HandleNo, String, u64, u64)>,
    pub moved: Moved,
}

/// What was read and written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    pub read: u64,
    pub written: u64,
    pub verified: u64,
    pub handles_open_max: usize,
    /// Most bytes in files that a script made.
    pub made_bytes_max: u64,
}

impl Share {
    /// What lies on the share for one client when a load point begins.
    pub(super) fn prepared(seed: u64, client: u32, workspace: Workspace) -> Self {
        let mut share = Self {
            table: ContentTable::new(seed),
            directories: BTreeSet::new(),
            files: BTreeMap::new(),
            opens: HashMap::new(),
            locks: Vec::new(),
            moved: Moved::default(),
        };
        let homes = [Home::Shared, Home::Client(client)];
        for home in homes {
            for directory in [workspace::home_path(home), workspace::seed_directory(home)] {
                share.directories.insert(directory.as_str().to_owned());
            }
            for file in workspace.files() {
                let key = workspace::content(seed, home, file).key;
                let bytes = share.generated(key, 0, workspace.bytes_of(file));
                share.files.insert(workspace::path_of(home, file).as_str().to_owned(), bytes);
            }
        }
        let work = workspace::work_directory(client);
        share.directories.insert(work.as_str().to_owned());
        let nic = share.generated(workspace::nic_content(seed).key, 0, 1_048_576);
        share.files.insert(workspace::nic_path().as_str().to_owned(), nic);
        share
    }

    /// Nothing is open or locked, and of files only those of `other` are there, unchanged.
    pub(super) fn is_as_prepared(&self, other: &Self) -> bool {
        self.opens.is_empty() && self.locks.is_empty() && self.files == other.files
    }

    /// A server's answer; panics on wrong data.
    pub(super) fn answer(&mut self, op: &SmbOp) -> u32 {
        match op {
            SmbOp::Create { path, handle, disposition, .. } => {
                self.create(path.as_str(), *handle, *disposition)
            }
            SmbOp::Close { handle } => {
                self.locks.retain(|lock| lock.0 != *handle);
                open_status(self.opens.remove(handle).is_some())
            }
            SmbOp::Flush { handle } | SmbOp::QueryFile { handle, .. } => {
                open_status(self.opens.contains_key(handle))
            }
            SmbOp::Read { .. } => self.read(op),
            SmbOp::Write { .. } => self.write(op),
            SmbOp::SetFile { handle, set } => self.set_file(*handle, *set),
            SmbOp::Lock { handle, offset, length } => self.lock(*handle, *offset, *length),
            SmbOp::Unlock { handle, offset, length } => {
                let before = self.locks.len();
                self.locks.retain(|(by, _, at, n)| (*by, *at, *n) != (*handle, *offset, *length));
                if self.locks.len() < before { status::SUCCESS } else { status::RANGE_NOT_LOCKED }
            }
            SmbOp::Rename { path, to, .. } => self.rename(path.as_str(), to.as_str()),
            SmbOp::Unlink { path } => self.unlink(path.as_str()),
            SmbOp::QueryPath { path, .. } => match self.directories.contains(path.as_str()) {
                true => status::SUCCESS,
                false => self.find_file(path.as_str()),
            },
            SmbOp::Find { directory, pattern, .. } => {
                self.find(directory.as_str(), pattern.as_str())
            }
            SmbOp::QueryFs { .. } | SmbOp::Echo | SmbOp::Logon | SmbOp::OpenSession => {
                status::SUCCESS
            }
            SmbOp::Mkdir { .. }
            | SmbOp::Rmdir { .. }
            | SmbOp::Deltree { .. }
            | SmbOp::FindNext { .. }
            | SmbOp::WriteText { .. } => {
                panic!("no script here does {op:?}")
            }
        }
    }

    fn create(&mut self, path: &str, handle: HandleNo, disposition: Disposition) -> u32 {
        let existing = self.find_file(path);
        let opened = match (existing, disposition) {
            (status::SUCCESS, Disposition::Create) => status::OBJECT_NAME_COLLISION,
            (status::SUCCESS, Disposition::Open | Disposition::OpenIf) => status::SUCCESS,
            (status::SUCCESS, _) => {
                self.files.insert(path.to_owned(), Vec::new());
                status::SUCCESS
            }
            (status::OBJECT_NAME_NOT_FOUND, Disposition::Open | Disposition::Overwrite) => existing,
            (status::OBJECT_NAME_NOT_FOUND, _) => {
                self.files.insert(path.to_owned(), Vec::new());
                status::SUCCESS
            }
            (other, _) => other,
        };
        if opened == status::SUCCESS {
            let before = self.opens.insert(handle, path.to_owned());
            assert_eq!(before, None, "{handle:?} was open");
            self.moved.handles_open_max = self.moved.handles_open_max.max(self.opens.len());
        }
        opened
    }

    fn read(&mut self, op: &SmbOp) -> u32 {
        let SmbOp::Read { handle, offset, length, expected_length, check } = op else {
            unreachable!()
        };
        let Some(path) = self.opens.get(handle) else { return status::FILE_CLOSED };
        if self.is_locked(*handle, path, *offset, u64::from(*length)) {
            return status::FILE_LOCK_CONFLICT;
        }
        let data = &self.files[path];
        let start = *offset as usize;
        if start >= data.len() {
            return status::END_OF_FILE;
        }
        let got = &data[start..data.len().min(start + *length as usize)];
        assert!(
            matches!(expected_length, ExpectedLength::Exactly(n) if *n as usize == got.len()),
            "{op:?}"
        );
        if let Some(content) = check {
            assert_eq!(got, self.table.bytes(content.key, *offset, got.len()), "{op:?}");
            self.moved.verified += 1;
        }
        self.moved.read += got.len() as u64;
        status::SUCCESS
    }

    fn write(&mut self, op: &SmbOp) -> u32 {
        let SmbOp::Write { handle, offset, length, content } = op else { unreachable!() };
        let Some(path) = self.opens.get(handle).cloned() else { return status::FILE_CLOSED };
        if self.is_locked(*handle, &path, *offset, u64::from(*length)) {
            return status::FILE_LOCK_CONFLICT;
        }
        let bytes = self.generated(content.key, *offset, *length);
        let data = self.files.get_mut(&path).expect("an open file is there");
        let (start, end) = (*offset as usize, *offset as usize + bytes.len());
        if data.len() < end {
            data.resize(end, 0);
        }
        data[start..end].copy_from_slice(&bytes);
        self.moved.written += u64::from(*length);
        let made = self.files.iter().filter(|(path, _)| path.contains("made"));
        let made_bytes = made.map(|(_, data)| data.len() as u64).sum();
        self.moved.made_bytes_max = self.moved.made_bytes_max.max(made_bytes);
        status::SUCCESS
    }

    fn set_file(&mut self, handle: HandleNo, set: FileChange) -> u32 {
        let Some(path) = self.opens.get(&handle) else { return status::FILE_CLOSED };
        if let FileChange::EndOfFile(bytes) = set {
            let data = self.files.get_mut(path).expect("an open file is there");
            data.resize(bytes as usize, 0);
        }
        status::SUCCESS
    }

    fn lock(&mut self, handle: HandleNo, offset: u64, length: u64) -> u32 {
        let Some(path) = self.opens.get(&handle).cloned() else { return status::FILE_CLOSED };
        let overlaps = |(_, of, at, n): &(HandleNo, String, u64, u64)| {
            *of == path && *at < offset + length && offset < at + n
        };
        if self.locks.iter().any(overlaps) {
            return status::LOCK_NOT_GRANTED;
        }
        self.locks.push((handle, path, offset, length));
        status::SUCCESS
    }

    fn is_locked(&self, by: HandleNo, path: &str, offset: u64, length: u64) -> bool {
        self.locks.iter().any(|(holder, of, at, n)| {
            *holder != by && of == path && *at < offset + length && offset < at + n
        })
    }

    fn rename(&mut self, path: &str, to: &str) -> u32 {
        match (self.find_file(path), self.find_file(to)) {
            (status::SUCCESS, status::SUCCESS) => status::OBJECT_NAME_COLLISION,
            (status::SUCCESS, _) if self.is_open(path) => status::SHARING_VIOLATION,
            (status::SUCCESS, status::OBJECT_NAME_NOT_FOUND) => {
                let data = self.files.remove(path).expect("it was found");
                self.files.insert(to.to_owned(), data);
                status::SUCCESS
            }
            (status::SUCCESS, other) | (other, _) => other,
        }
    }

    fn unlink(&mut self, path: &str) -> u32 {
        match self.find_file(path) {
            status::SUCCESS if self.is_open(path) => status::SHARING_VIOLATION,
            status::SUCCESS => {
                self.files.remove(path);
                status::SUCCESS
            }
            other => other,
        }
    }

    fn find(&self, directory: &str, pattern: &str) -> u32 {
        if !self.directories.contains(directory) {
            return status::OBJECT_NAME_NOT_FOUND;
        }
        let below = format!("{directory}\\");
        let names = self.files.keys().filter_map(|path| path.strip_prefix(&below));
        let matched = names.filter(|name| !name.contains('\\')).any(|name| matches(name, pattern));
        if matched { status::SUCCESS } else { status::NO_SUCH_FILE }
    }

    fn find_file(&self, path: &str) -> u32 {
        let (directory, _) = path.rsplit_once('\\').unwrap_or_default();
        match (self.files.contains_key(path), directory) {
            (true, _) => status::SUCCESS,
            _ if self.directories.contains(directory) => status::OBJECT_NAME_NOT_FOUND,
            _ => status::OBJECT_PATH_NOT_FOUND,
        }
    }

    fn is_open(&self, path: &str) -> bool {
        self.opens.values().any(|open| open == path)
    }

    fn generated(&self, key: u64, offset: u64, length: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length as usize);
        for at in (0..length).step_by(workspace::SLICE_BYTES_MAX) {
            let chunk = (length - at).min(workspace::SLICE_BYTES_MAX as u32) as usize;
            bytes.extend_from_slice(self.table.bytes(key, offset + u64::from(at), chunk));
        }
        bytes
    }
}

fn open_status(open: bool) -> u32 {
    if open { status::SUCCESS } else { status::FILE_CLOSED }
}

/// MS-FSA 2.1.4.4, for the wildcards scripts use.
fn matches(name: &str, pattern: &str) -> bool {
    match (pattern.chars().next(), name.chars().next()) {
        (None, end) => end.is_none(),
        (Some('*'), _) => (0..=name.len()).any(|from| matches(&name[from..], &pattern[1..])),
        (Some('?'), Some(_)) => matches(&name[1..], &pattern[1..]),
        (Some(literal), Some(is)) => literal == is && matches(&name[1..], &pattern[1..]),
        (Some(_), None) => false,
    }
}

#[test]
fn the_judge_knows_the_statuses_it_must_tell_apart() {
    use crate::op::PathText;
    assert!(matches("file12.dat", "file1?.dat") && matches("none.dat", "no*.d*"));
    assert!(!matches("file12.dat", "file2?.dat") && !matches("a", "a?"));
    let mut share = Share::prepared(1, 0, Workspace::new(20.0, 0.001));
    let path = |text: &str| PathText::new(&format!("plimsoll-files\\client00000\\{text}")).unwrap();
    let open = |text, handle, disposition| SmbOp::Create {
        path: path(text),
        handle: HandleNo(handle),
        disposition,
        options: 0,
    };
    let mut answers = |op: SmbOp| share.answer(&op);
    let missing = open("work\\a", 0, Disposition::Open);
    assert_eq!(answers(missing), status::OBJECT_NAME_NOT_FOUND);
    let nowhere = open("wrok\\a", 0, Disposition::Create);
    assert_eq!(answers(nowhere), status::OBJECT_PATH_NOT_FOUND);
    assert_eq!(answers(open("work\\a", 0, Disposition::Create)), status::SUCCESS);
    assert_eq!(answers(open("work\\a", 1, Disposition::Create)), status::OBJECT_NAME_COLLISION);
    assert_eq!(answers(SmbOp::Unlink { path: path("work\\a") }), status::SHARING_VIOLATION);
    let lock = SmbOp::Lock { handle: HandleNo(0), offset: 0, length: 9 };
    assert_eq!(answers(lock.clone()), status::SUCCESS);
    assert_eq!(answers(lock), status::LOCK_NOT_GRANTED);
    let unlock = SmbOp::Unlock { handle: HandleNo(0), offset: 1, length: 9 };
    assert_eq!(answers(unlock), status::RANGE_NOT_LOCKED);
    let (expected_length, check) = (ExpectedLength::Any, None);
    let read = SmbOp::Read { handle: HandleNo(0), offset: 0, length: 1, expected_length, check };
    assert_eq!(answers(read), status::END_OF_FILE);
    assert_eq!(answers(SmbOp::Close { handle: HandleNo(0) }), status::SUCCESS);
    assert_eq!(answers(SmbOp::Flush { handle: HandleNo(0) }), status::FILE_CLOSED);
    let rename =
        SmbOp::Rename { path: path("work\\a"), to: path("seed\\file00.dat"), replace: false };
    assert_eq!(answers(rename), status::OBJECT_NAME_COLLISION);
    assert_eq!(answers(SmbOp::Unlink { path: path("work\\a") }), status::SUCCESS);
}
