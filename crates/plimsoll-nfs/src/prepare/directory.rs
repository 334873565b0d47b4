//! One directory of the file set: its files, its link, and none of its slots. Everything it needs
//! is asked in a pipeline; a file goes on as soon as its own last reply is there.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use super::super::fileset::{Content, EntryName, FileNo, FileSet, ROOT};
use super::super::handles::OwnedHandle;
use super::super::op::{Accessed, DirNo, LinkNo, SlotNo, Stability};
use super::super::parameters::NfsVersion;
use super::super::procedure::Call;
use super::super::procedure::results::{Attributes, Kind, Written};
use super::super::refusal::{CallError, NfsStatus};
use super::super::remote::{Entry, Feed, Listing, Remote, Retries};
use crate::procedure::Reply;
use plimsoll_protocol::channel_pool::Tally;

/// What all directories share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    /// How much of the numbering.
    pub set: FileSet,
    /// What is in the files.
    pub content: &'a Content,
    /// Directory of the set.
    pub root: &'a OwnedHandle,
    /// Bytes of one WRITE.
    pub chunk_bytes: u32,
    /// Calls in flight.
    pub window: usize,
    /// Who counts.
    pub tally: &'a Tally,
}

/// A directory in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryDone {
    /// Its handle.
    pub handle: OwnedHandle,
    /// Handle of its link.
    pub link: OwnedHandle,
    /// Handles of its accessed files, rising.
    pub files: Vec<(Accessed, OwnedHandle)>,
    /// The server's verifier, if anything was written.
    pub verifier: Option<[u8; 8]>,
}

/// Brings a directory into order that another run, or nobody, has worked on: makes what is
/// missing, writes what is too short, cuts what has grown, removes the slots.
pub(super) fn build(
    remote: &mut Remote,
    shared: &Shared<'_>,
    dir: DirNo,
) -> Result<DirectoryDone, (CallError, String)> {
    let name = dir.name();
    let path = || format!("{ROOT}/{name}");
    let (handle, is_new) = find_or_make(remote, shared.root, name.as_bytes())
        .map_err(|error| (error, format!("make {}", path())))?;
    let mut work = Work::new(remote.version(), shared, dir, handle);
    if is_new {
        work.plan_all();
    } else {
        let there = remote
            .list(&handle, Listing::Full)
            .map_err(|error| (error, format!("list {}", path())))?;
        work.plan_missing(there).map_err(|error| (error, path()))?;
    }
    run(remote, shared.window, work)
}

/// What was in order before a load point: its accessed files may have grown since, and slots may
/// have been left.
pub(super) fn restore(
    remote: &mut Remote,
    shared: &Shared<'_>,
    dir: DirNo,
    known: DirectoryDone,
) -> Result<DirectoryDone, (CallError, String)> {
    let mut work = Work::new(remote.version(), shared, dir, known.handle);
    work.link = Some(known.link);
    work.ready.extend(shared.set.slots_of(dir).map(|slot| Step::Drop(SlotNo(slot))));
    for (accessed, handle) in known.files {
        work.keep(accessed.file(), handle);
        work.ready.push(Step::SizeOf(accessed.file()));
    }
    run(remote, shared.window, work)
}

fn find_or_make(
    remote: &mut Remote,
    root: &OwnedHandle,
    name: &[u8],
) -> Result<(OwnedHandle, bool), CallError> {
    match remote.make_dir(root, name) {
        Ok(handle) => Ok((handle, true)),
        Err(error) if error.status() == Some(NfsStatus::EXIST) => {
            Ok((remote.look_up(root, name)?.handle, false))
        }
        Err(error) => Err(error),
    }
}

fn run(
    remote: &mut Remote,
    window: usize,
    mut work: Work<'_>,
) -> Result<DirectoryDone, (CallError, String)> {
    match remote.run(window, &mut work) {
        Ok(()) => Ok(work.done()),
        Err(error) => {
            let doing = work.failed.map_or_else(
                || format!("write {ROOT}/{}", work.dir.name()),
                |step| step.in_words(work.dir),
            );
            Err((error, doing))
        }
    }
}

/// One call of a directory's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    FindFile(FileNo),
    MakeFile(FileNo),
    SizeOf(FileNo),
    Cut(FileNo),
    Write { file: FileNo, offset: u64, bytes: u32 },
    Commit(FileNo),
    FindLink,
    MakeLink,
    Drop(SlotNo),
}

impl Step {
    fn name(self, dir: DirNo) -> EntryName {
        match self {
            Self::FindFile(file)
            | Self::MakeFile(file)
            | Self::SizeOf(file)
            | Self::Cut(file)
            | Self::Write { file, .. }
            | Self::Commit(file) => file.name(),
            Self::FindLink | Self::MakeLink => LinkNo(dir.0).name(),
            Self::Drop(slot) => slot.name(),
        }
    }

    fn in_words(self, dir: DirNo) -> String {
        let verb = match self {
            Self::FindFile(_) | Self::FindLink => "look up",
            Self::MakeFile(_) | Self::MakeLink => "create",
            Self::SizeOf(_) => "see the size of",
            Self::Cut(_) => "cut",
            Self::Write { .. } => "write",
            Self::Commit(_) => "commit",
            Self::Drop(_) => "remove",
        };
        format!("{verb} {ROOT}/{}/{}", dir.name(), self.name(dir))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct FileState {
    handle: Option<OwnedHandle>,
    /// Bytes to be written still.
    bytes_left: u64,
}

struct Work<'a> {
    version: NfsVersion,
    shared: &'a Shared<'a>,
    dir: DirNo,
    handle: OwnedHandle,
    /// Number of the first file here.
    first: u32,
    files: Vec<FileState>,
    link: Option<OwnedHandle>,
    /// What can be called now; the last is next, so that a file begun is finished first.
    ready: Vec<Step>,
    in_flight: HashMap<u32, Step>,
    calls: u32,
    name: EntryName,
    link_text: EntryName,
    verifier: Option<[u8; 8]>,
    failed: Option<Step>,
    retries: Retries,
}

impl<'a> Work<'a> {
    fn new(version: NfsVersion, shared: &'a Shared<'a>, dir: DirNo, handle: OwnedHandle) -> Self {
        let files = shared.set.files_of(dir);
        Self {
            version,
            shared,
            dir,
            handle,
            first: files.start,
            files: vec![FileState::default(); files.len()],
            link: None,
            ready: Vec::new(),
            in_flight: HashMap::new(),
            calls: 0,
            name: LinkNo(dir.0).name(),
            link_text: LinkNo(dir.0).text(),
            verifier: None,
            failed: None,
            retries: Retries::default(),
        }
    }

    fn plan_all(&mut self) {
        let files = self.shared.set.files_of(self.dir);
        self.ready.push(Step::MakeLink);
        self.ready.extend(files.rev().map(|n| Step::MakeFile(FileNo(n))));
    }

    fn plan_missing(&mut self, there: Vec<Entry>) -> Result<(), CallError> {
        let there: HashMap<Vec<u8>, _> =
            there.into_iter().map(|e| (e.name, (e.handle, e.attributes))).collect();
        let has = |name: EntryName| there.contains_key(name.as_bytes());
        let link = LinkNo(self.dir.0).name();
        self.ready.push(if has(link) { Step::FindLink } else { Step::MakeLink });
        for slot in self.shared.set.slots_of(self.dir).map(SlotNo) {
            if has(slot.name()) {
                self.ready.push(Step::Drop(slot));
            }
        }
        for file in self.shared.set.files_of(self.dir).rev().map(FileNo) {
            match there.get(file.name().as_bytes()) {
                None => self.ready.push(Step::MakeFile(file)),
                Some((Some(handle), Some(attributes))) => {
                    self.keep(file, *handle);
                    self.on_size(file, attributes)?;
                }
                Some(_) => self.ready.push(Step::FindFile(file)),
            }
        }
        Ok(())
    }

    fn state(&mut self, file: FileNo) -> &mut FileState {
        let at = (file.0 - self.first) as usize;
        &mut self.files[at]
    }

    fn keep(&mut self, file: FileNo, handle: OwnedHandle) {
        self.state(file).handle = Some(handle);
    }

    fn handle_of(&self, file: FileNo) -> &OwnedHandle {
        let state = &self.files[(file.0 - self.first) as usize];
        state.handle.as_ref().expect("a file is touched only after it was found or made")
    }

    /// Compares what is there with what should be.
    fn on_size(&mut self, file: FileNo, found: &Attributes) -> Result<(), CallError> {
        if found.kind != Kind::File {
            return Err(CallError::Foreign);
        }
        match found.size.cmp(&file.bytes()) {
            std::cmp::Ordering::Equal => self.finish_file(),
            std::cmp::Ordering::Greater => self.ready.push(Step::Cut(file)),
            std::cmp::Ordering::Less => self.write_all(file),
        }
        Ok(())
    }

    /// The last chunk is written when all others are there, so that a file with its whole size
    /// has its whole content wherever the work was cut short: the next run looks at sizes only.
    fn write_all(&mut self, file: FileNo) {
        let chunk = u64::from(self.shared.chunk_bytes);
        self.state(file).bytes_left = file.bytes();
        let tail = self.tail_of(file);
        if tail == 0 {
            return self.write_tail(file);
        }
        let bytes = self.shared.chunk_bytes;
        let chunks = (0..tail / chunk).rev();
        self.ready.extend(chunks.map(|at| Step::Write { file, offset: at * chunk, bytes }));
    }

    /// Where the last chunk of a file begins.
    fn tail_of(&self, file: FileNo) -> u64 {
        let chunk = u64::from(self.shared.chunk_bytes);
        (file.bytes() - 1) / chunk * chunk
    }

    fn write_tail(&mut self, file: FileNo) {
        let offset = self.tail_of(file);
        let bytes = (file.bytes() - offset) as u32;
        self.ready.push(Step::Write { file, offset, bytes });
    }

    fn finish_file(&mut self) {
        self.shared.tally.step();
    }

    fn call(&self, step: Step) -> Call<'_> {
        let (dir, name) = (&self.handle, self.name.as_bytes());
        match step {
            Step::FindFile(_) | Step::FindLink => Call::LookUp(dir, name),
            Step::MakeFile(_) => Call::Create(dir, name),
            Step::MakeLink => Call::MakeLink(dir, name, self.link_text.as_bytes()),
            Step::SizeOf(file) => Call::GetAttr(self.handle_of(file)),
            Step::Cut(file) => Call::SetSize(self.handle_of(file), file.bytes()),
            Step::Write { file, offset, bytes } => {
                let data = self.shared.content.slice(file, offset, bytes as usize);
                Call::Write(self.handle_of(file), offset, data, Stability::Unstable)
            }
            Step::Commit(file) => Call::Commit(self.handle_of(file)),
            Step::Drop(_) => Call::Remove(dir, name),
        }
    }

    fn settle(&mut self, step: Step, reply: Reply<'_>) -> Result<(), CallError> {
        match step {
            Step::FindFile(file) => match reply.looked_up().map_err(CallError::from) {
                Ok(found) => {
                    self.keep(file, found.handle.into());
                    match found.attributes {
                        Some(attributes) => self.on_size(file, &attributes)?,
                        None => self.ready.push(Step::SizeOf(file)),
                    }
                }
                Err(error) if error.status() == Some(NfsStatus::NOENT) => {
                    self.ready.push(Step::MakeFile(file));
                }
                Err(error) => return Err(error),
            },
            Step::MakeFile(file) => match reply.made()?.handle {
                Some(handle) => {
                    self.keep(file, handle.into());
                    self.write_all(file);
                }
                None => self.ready.push(Step::FindFile(file)),
            },
            Step::SizeOf(file) => self.on_size(file, &reply.attributes()?)?,
            Step::Cut(_) => {
                reply.set_attributes()?;
                self.finish_file();
            }
            Step::Write { file, offset, bytes } => {
                self.on_written(file, offset, bytes, reply.written()?)?;
            }
            Step::Commit(_) => {
                self.compare(Some(reply.committed()?.verifier))?;
                self.finish_file();
            }
            Step::FindLink => self.link = Some(reply.looked_up()?.handle.into()),
            Step::MakeLink => match reply.made_link()?.handle {
                Some(handle) => self.link = Some(handle.into()),
                None => self.ready.push(Step::FindLink),
            },
            Step::Drop(_) => match reply.removed().map_err(CallError::from) {
                Ok(_) | Err(CallError::Status(NfsStatus::NOENT)) => {}
                Err(error) => return Err(error),
            },
        }
        Ok(())
    }

    fn on_written(
        &mut self,
        file: FileNo,
        offset: u64,
        asked: u32,
        written: Written,
    ) -> Result<(), CallError> {
        self.compare(written.verifier)?;
        let bytes = written.bytes_of(asked as usize).min(asked);
        if bytes == 0 {
            return Err(CallError::Nothing);
        }
        self.shared.tally.bytes.fetch_add(u64::from(bytes), Ordering::Relaxed);
        if bytes < asked {
            let (offset, bytes) = (offset + u64::from(bytes), asked - bytes);
            self.ready.push(Step::Write { file, offset, bytes });
        }
        let chunk = u64::from(self.shared.chunk_bytes);
        let tail = self.tail_of(file);
        let state = self.state(file);
        state.bytes_left -= u64::from(bytes);
        if state.bytes_left > 0 {
            if offset < tail && state.bytes_left == file.bytes() - tail {
                self.write_tail(file);
            }
            return Ok(());
        }
        // What a restart could lose of a small file is found by its size in the next run, and
        // a COMMIT for each would be half of all calls. Large files hold four fifths of the
        // bytes: with them durable, little is left for the server to store while it is measured.
        match self.version == NfsVersion::V3 && file.bytes() > chunk {
            true => self.ready.push(Step::Commit(file)),
            false => self.finish_file(),
        }
        Ok(())
    }

    fn compare(&mut self, verifier: Option<[u8; 8]>) -> Result<(), CallError> {
        match (self.verifier, verifier) {
            (Some(before), Some(now)) if before != now => Err(CallError::Restarted),
            (None, Some(_)) => {
                self.verifier = verifier;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn done(self) -> DirectoryDone {
        let numbered = self.files.iter().zip(self.first..);
        let files = numbered
            .filter_map(|(state, n)| Some((FileNo(n).accessed()?, state.handle?)))
            .collect();
        DirectoryDone {
            handle: self.handle,
            link: self.link.expect("the link is found or made before the work ends"),
            files,
            verifier: self.verifier,
        }
    }
}

impl Feed for Work<'_> {
    fn next(&mut self) -> Option<(u32, Call<'_>)> {
        let step = self.ready.pop()?;
        let number = self.calls;
        self.calls += 1;
        self.in_flight.insert(number, step);
        self.name = step.name(self.dir);
        Some((number, self.call(step)))
    }

    fn on_reply(&mut self, number: u32, reply: Reply<'_>) -> Result<(), CallError> {
        let Some(step) = self.in_flight.remove(&number) else { return Ok(()) };
        if self.retries.calls_again(reply) {
            self.ready.push(step);
            return Ok(());
        }
        self.settle(step, reply).inspect_err(|_| self.failed = Some(step))
    }

    fn wants_pause(&mut self) -> bool {
        self.retries.wants_pause()
    }
}
