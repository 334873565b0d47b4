//! One directory of the file set: its files, its link, and none of its slots. Many calls are in
//! flight; a file continues as soon as its own last reply is there.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use super::super::fileset::{Content, EntryName, FileNo, FileSet, ROOT};
use super::super::handles::{Handles, OwnedHandle};
use super::super::op::{Accessed, DirNo, LinkNo, SlotNo, Stability};
use super::super::parameters::NfsVersion;
use super::super::procedure::results::{Attributes, Kind};
use super::super::procedure::{Call, Dialect};
use super::super::refusal::CallError;
use super::super::remote::{Entry, Listing, Remote};
use crate::procedure::Reply;
use crate::wire::rpc::CallWriter;
use crate::wire::v3::Status3;
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

impl DirectoryDone {
    /// With no file yet.
    pub(super) fn new(handle: OwnedHandle, link: OwnedHandle) -> Self {
        Self { handle, link, files: Vec::new(), verifier: None }
    }

    /// Adds its handles to those of the directories before it.
    pub(super) fn add_to(self, handles: &mut Handles) {
        handles.dirs.push(self.handle);
        handles.links.push(self.link);
        handles.files.extend(self.files.into_iter().map(|(_, handle)| handle));
    }
}

/// Why a directory is not in order, and what could not be done.
type Unable = (CallError, String);

/// Prepares a directory of unknown state: makes what is missing, writes what is too short, cuts
/// what has grown, removes the slots.
pub(super) fn build(
    remote: &mut Remote,
    shared: &Shared<'_>,
    number: DirNo,
) -> Result<DirectoryDone, Unable> {
    let unable =
        |verb: &'static str| move |error| (error, format!("{verb} {ROOT}/{}", number.name()));
    let (handle, is_new) =
        find_or_make(remote, shared.root, number.name().as_bytes()).map_err(unable("make"))?;
    let directory = Directory { shared, number, dialect: remote.dialect() };
    let mut done = DirectoryDone::new(handle, OwnedHandle::NONE);
    let there = match is_new {
        true => Vec::new(),
        false => remote.list(&handle, Listing::Full).map_err(unable("list"))?,
    };
    let steps = directory.missing(there, &mut done)?;
    directory.run(remote, steps, done)
}

/// Prepares a directory that was in order before a load point: its accessed files may have grown
/// since, and slots may have been left.
pub(super) fn restore(
    remote: &mut Remote,
    shared: &Shared<'_>,
    number: DirNo,
    prepared: &DirectoryDone,
) -> Result<DirectoryDone, Unable> {
    let directory = Directory { shared, number, dialect: remote.dialect() };
    let slots = shared.set.slots_of(number).map(|slot| Step::Drop(SlotNo(slot)));
    let files = prepared.files.iter().map(|(file, handle)| Step::SizeOf(file.file(), *handle));
    let done = DirectoryDone::new(prepared.handle, prepared.link);
    directory.run(remote, slots.chain(files).collect(), done)
}

fn find_or_make(
    remote: &mut Remote,
    root: &OwnedHandle,
    name: &[u8],
) -> Result<(OwnedHandle, bool), CallError> {
    match remote.make_dir(root, name) {
        Err(error) if error.status() == Some(Status3::EXIST) => {
            Ok((remote.look_up(root, name)?.handle, false))
        }
        made => made.map(|handle| (handle, true)),
    }
}

/// One call of a directory's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    FindFile(FileNo),
    MakeFile(FileNo),
    SizeOf(FileNo, OwnedHandle),
    Cut(FileNo, OwnedHandle),
    /// A chunk, from this offset on. Those of a file one after the other, so that a file with its
    /// whole size has its whole content wherever the work was cut short: the next run looks at
    /// sizes only.
    Write(FileNo, OwnedHandle, u64),
    Commit(FileNo, OwnedHandle),
    FindLink,
    MakeLink,
    Drop(SlotNo),
}

impl Step {
    fn name(self, dir: DirNo) -> EntryName {
        match self {
            Self::FindFile(file)
            | Self::MakeFile(file)
            | Self::SizeOf(file, _)
            | Self::Cut(file, _)
            | Self::Write(file, ..)
            | Self::Commit(file, _) => file.name(),
            Self::FindLink | Self::MakeLink => LinkNo(dir.0).name(),
            Self::Drop(slot) => slot.name(),
        }
    }

    fn describe(self, dir: DirNo) -> String {
        let verb = match self {
            Self::FindFile(_) | Self::FindLink => "look up",
            Self::MakeFile(_) | Self::MakeLink => "create",
            Self::SizeOf(..) => "see the size of",
            Self::Cut(..) => "cut",
            Self::Write(..) => "write",
            Self::Commit(..) => "commit",
            Self::Drop(_) => "remove",
        };
        format!("{verb} {ROOT}/{}/{}", dir.name(), self.name(dir))
    }
}

/// The directory that is worked on.
struct Directory<'a> {
    shared: &'a Shared<'a>,
    number: DirNo,
    dialect: Dialect,
}

impl Directory<'_> {
    fn run(
        &self,
        remote: &mut Remote,
        steps: Vec<Step>,
        mut done: DirectoryDone,
    ) -> Result<DirectoryDone, Unable> {
        let handle = done.handle;
        let call = |step, to: CallWriter<'_>| self.call(&handle, step, to);
        let on_reply = |step, reply: Reply<'_>, steps: &mut Vec<Step>| {
            self.settle(step, reply, &mut done, steps)
        };
        remote.run(steps, call, on_reply).map_err(|(error, step)| match step {
            Some(step) => (error, step.describe(self.number)),
            None => (error, format!("write {ROOT}/{}", self.number.name())),
        })?;
        done.files.sort_unstable_by_key(|(accessed, _)| *accessed);
        Ok(done)
    }

    /// What is missing beyond what is `there`; the last is done first.
    fn missing(&self, there: Vec<Entry>, done: &mut DirectoryDone) -> Result<Vec<Step>, Unable> {
        let there: HashMap<Vec<u8>, _> =
            there.into_iter().map(|e| (e.name, (e.handle, e.attributes))).collect();
        let has = |name: EntryName| there.contains_key(name.as_bytes());
        let has_link = has(LinkNo(self.number.0).name());
        let mut steps = vec![if has_link { Step::FindLink } else { Step::MakeLink }];
        let slots = self.shared.set.slots_of(self.number).map(SlotNo);
        steps.extend(slots.filter(|slot| has(slot.name())).map(Step::Drop));
        let files = self.shared.set.files_of(self.number).rev().map(FileNo);
        let mut files: Vec<FileNo> = files.collect();
        // The largest is begun first: the writes of one file wait for each other.
        files.sort_by_key(|file| file.bytes());
        for file in files {
            match there.get(file.name().as_bytes()) {
                None => steps.push(Step::MakeFile(file)),
                Some((Some(handle), Some(attributes))) => self
                    .on_size((file, *handle), attributes, done, &mut steps)
                    .map_err(|error| (error, Step::FindFile(file).describe(self.number)))?,
                Some(_) => steps.push(Step::FindFile(file)),
            }
        }
        Ok(steps)
    }

    /// Compares what is there with what should be.
    fn on_size(
        &self,
        (file, handle): (FileNo, OwnedHandle),
        attributes: &Attributes,
        done: &mut DirectoryDone,
        steps: &mut Vec<Step>,
    ) -> Result<(), CallError> {
        if attributes.kind != Kind::File {
            return Err(CallError::Foreign);
        }
        done.files.extend(file.accessed().map(|accessed| (accessed, handle)));
        match attributes.size.cmp(&file.bytes()) {
            Ordering::Equal => self.shared.tally.step(),
            Ordering::Greater => steps.push(Step::Cut(file, handle)),
            Ordering::Less => steps.push(Step::Write(file, handle, 0)),
        }
        Ok(())
    }

    fn chunk_bytes(&self, file: FileNo, offset: u64) -> u32 {
        u64::from(self.shared.chunk_bytes).min(file.bytes() - offset) as u32
    }

    fn call(&self, dir: &OwnedHandle, step: Step, to: CallWriter<'_>) {
        let (name, text) = (step.name(self.number), LinkNo(self.number.0).text());
        let name = name.as_bytes();
        let call = match &step {
            Step::FindFile(_) | Step::FindLink => Call::LookUp(dir, name),
            Step::MakeFile(_) => Call::Create(dir, name),
            Step::MakeLink => Call::MakeLink(dir, name, text.as_bytes()),
            Step::SizeOf(_, handle) => Call::GetAttr(handle),
            Step::Cut(file, handle) => Call::SetSize(handle, file.bytes()),
            Step::Write(file, handle, offset) => {
                let bytes = self.chunk_bytes(*file, *offset) as usize;
                let data = self.shared.content.slice(*file, *offset, bytes);
                Call::Write(handle, *offset, data, Stability::Unstable)
            }
            Step::Commit(_, handle) => Call::Commit(handle),
            Step::Drop(_) => Call::Remove(dir, name),
        };
        call.encode(self.dialect, to);
    }

    fn settle(
        &self,
        step: Step,
        reply: Reply<'_>,
        done: &mut DirectoryDone,
        steps: &mut Vec<Step>,
    ) -> Result<(), CallError> {
        match step {
            Step::FindFile(file) => match reply.looked_up().map_err(CallError::from) {
                Err(CallError::Status(Status3::NOENT)) => steps.push(Step::MakeFile(file)),
                resolved => {
                    let resolved = resolved?.owned();
                    match resolved.attributes {
                        Some(attributes) => {
                            self.on_size((file, resolved.handle), &attributes, done, steps)?;
                        }
                        None => steps.push(Step::SizeOf(file, resolved.handle)),
                    }
                }
            },
            Step::MakeFile(file) => match reply.made()?.handle.map(OwnedHandle::from) {
                Some(handle) => {
                    done.files.extend(file.accessed().map(|accessed| (accessed, handle)));
                    steps.push(Step::Write(file, handle, 0));
                }
                None => steps.push(Step::FindFile(file)),
            },
            Step::SizeOf(file, handle) => {
                self.on_size((file, handle), &reply.attributes()?, done, steps)?;
            }
            Step::Cut(..) => {
                reply.set_attributes()?;
                self.shared.tally.step();
            }
            Step::Write(file, handle, offset) => {
                self.on_written((file, handle, offset), reply, done, steps)?;
            }
            Step::Commit(..) => {
                check_verifier(&mut done.verifier, Some(reply.committed()?.verifier))?;
                self.shared.tally.step();
            }
            Step::FindLink => done.link = reply.looked_up()?.handle.into(),
            Step::MakeLink => match reply.made_link()?.handle {
                Some(handle) => done.link = handle.into(),
                None => steps.push(Step::FindLink),
            },
            Step::Drop(_) => drop(reply.was_removed()?),
        }
        Ok(())
    }

    fn on_written(
        &self,
        (file, handle, offset): (FileNo, OwnedHandle, u64),
        reply: Reply<'_>,
        done: &mut DirectoryDone,
        steps: &mut Vec<Step>,
    ) -> Result<(), CallError> {
        let (written, requested) = (reply.written()?, self.chunk_bytes(file, offset));
        check_verifier(&mut done.verifier, written.verifier)?;
        let bytes = written.bytes_of(requested as usize).min(requested);
        if bytes == 0 {
            return Err(CallError::Nothing);
        }
        self.shared.tally.bytes.fetch_add(u64::from(bytes), Relaxed);
        let end = offset + u64::from(bytes);
        // The next run notices by its size what a restart lost of a small file, and a COMMIT for
        // each would be half of all calls. Large files hold four fifths of the bytes: with them
        // durable, little is left for the server to store while it is measured.
        let is_small = file.bytes() <= u64::from(self.shared.chunk_bytes);
        if end < file.bytes() {
            steps.push(Step::Write(file, handle, end));
        } else if is_small || self.dialect.version == NfsVersion::V2 {
            self.shared.tally.step();
        } else {
            steps.push(Step::Commit(file, handle));
        }
        Ok(())
    }
}

/// Another verifier than `before` means that the server restarted.
pub(super) fn check_verifier(
    before: &mut Option<[u8; 8]>,
    now: Option<[u8; 8]>,
) -> Result<(), CallError> {
    *before = before.or(now);
    match now.is_some() && *before != now {
        true => Err(CallError::Restarted),
        false => Ok(()),
    }
}
