//! Everything but reads and writes: opening and closing, querying, renaming, removing, locking.

use super::files::{File, Locked};
use super::{DiskMix, Part, closable, pick};
use crate::op::{
    Disposition, Expected, FileChange, FileLevel, FindLevel, FsLevel, HandleNo, PathText, SmbCall,
    SmbOp,
};
use crate::script::succeeds;
use crate::wire::create::options;
use crate::wire::status;
use crate::workspace::{self, FIRST_LARGE, Home, SEED_FILES, SeedFile};

/// Names that must be missing are numbered below this.
const MISSING_NAMES: u32 = 1_000_000;
/// One open in this many is of a file that the session made and closed, if there is one.
const REOPEN_ONE_IN: u32 = 5;
/// Bytes of a lock.
const LOCK_BYTES: u32 = 512;
/// Where the records of clients begin in a shared file. Databases lock behind the end of a file: a
/// locked record keeps no client from the data.
pub(crate) const RECORDS_AT: u64 = 1 << 30;

const FILE_LEVELS: [FileLevel; 3] = [FileLevel::Basic, FileLevel::Standard, FileLevel::NetworkOpen];
const FS_LEVELS: [FsLevel; 4] =
    [FsLevel::Volume, FsLevel::Size, FsLevel::Attribute, FsLevel::FullSize];
const FIND_LEVELS: [FindLevel; 3] = [FindLevel::Both, FindLevel::IdBoth, FindLevel::Full];

impl DiskMix {
    pub(super) fn open_existing(&mut self) -> SmbCall {
        let shared_percent = self.plan.workload.shared_percent;
        let draw = self.draws.open_shared.draw(self.owner);
        let draws_shared = draw.quantile * 100.0 < shared_percent;
        let between = matches!(self.part, Part::Between);
        let lacks_own = self.files.document.is_none();
        let lacks_shared = shared_percent > 0.0 && self.files.shared_document.is_none();
        let shared_first = match between {
            true => self.draws.between_shared.draw(self.owner).quantile * 100.0 < shared_percent,
            false => lacks_shared && (shared_percent >= 50.0 || !lacks_own),
        };
        if shared_first {
            return self.open_document(Home::Shared, self.any_large());
        }
        if lacks_own {
            let own = self.application().document;
            let file = if between { self.any_large() } else { own };
            return self.open_document(self.home(), file);
        }
        if draws_shared {
            let file = self.any_closed(Home::Shared);
            return self.open_seed(Home::Shared, file);
        }
        let closed = self.files.made_closed().map(|made| made.file.number);
        match pick(closed, self.bits(0)) {
            Some(number) if self.below(1, REOPEN_ONE_IN) == 0 => self.open_made(number),
            _ => self.open_seed(self.home(), self.any_closed(self.home())),
        }
    }

    fn open_document(&mut self, home: Home, file: SeedFile) -> SmbCall {
        // It may be open already when another of the session's files was drawn before.
        let file = match self.files.is_open(File::Seed(home, file)) {
            true => self.large_closed(home),
            false => file,
        };
        let handle = self.free();
        match home {
            Home::Shared => self.files.shared_document = Some(handle),
            Home::Client(_) => self.files.document = Some(handle),
        }
        self.open_seed(home, file)
    }

    fn open_seed(&mut self, home: Home, file: SeedFile) -> SmbCall {
        let handle = self.free();
        let content = workspace::content(self.plan.workload.file_set_seed, home, file);
        self.files.insert(handle, File::Seed(home, file), content);
        let path = workspace::path_of(home, file);
        succeeds(create(path, handle, Disposition::Open))
    }

    fn open_made(&mut self, number: u32) -> SmbCall {
        let handle = self.free();
        let client = self.owner.client;
        let content = workspace::made_content(self.plan.workload.file_set_seed, client, number);
        self.files.insert(handle, File::Made(number), content);
        let made = self.files.made_mut(number).expect("it was drawn from those that are there");
        let path = workspace::made_path(client, made.file);
        succeeds(create(path, handle, Disposition::Open))
    }

    pub(super) fn open_new(&mut self) -> SmbCall {
        let handle = self.free();
        let client = self.owner.client;
        let file = self.files.make();
        let seed = self.plan.workload.file_set_seed;
        let content = workspace::made_content(seed, client, file.number);
        self.files.insert(handle, File::Made(file.number), content);
        let make = [Disposition::Create, Disposition::OverwriteIf, Disposition::OpenIf];
        let disposition = make[self.below(0, make.len() as u32) as usize];
        succeeds(create(workspace::made_path(client, file), handle, disposition))
    }

    pub(super) fn open_missing(&mut self) -> SmbCall {
        // The handle never opens.
        let op = create(self.missing_path(), self.free(), Disposition::Open);
        fails(op, status::OBJECT_NAME_NOT_FOUND)
    }

    pub(super) fn close(&mut self) -> SmbCall {
        let handle = pick(closable(&self.files, self.deck.left()), self.bits(0));
        let handle = handle.expect("the card is played when there is one");
        self.files.take(handle);
        succeeds(SmbOp::Close { handle })
    }

    pub(super) fn query_path(&mut self) -> SmbCall {
        let made = pick(self.files.made().iter(), self.bits(0));
        let path = match (self.below(1, 4), made) {
            (0, Some(made)) => workspace::made_path(self.owner.client, made.file),
            (1, _) => workspace::work_directory(self.owner.client),
            _ => workspace::path_of(self.lookup_home(), self.any_seed()),
        };
        succeeds(SmbOp::QueryPath { path, level: self.one_of(&FILE_LEVELS) })
    }

    pub(super) fn query_missing(&mut self) -> SmbCall {
        let (path, level) = (self.missing_path(), self.one_of(&FILE_LEVELS));
        fails(SmbOp::QueryPath { path, level }, status::OBJECT_NAME_NOT_FOUND)
    }

    pub(super) fn find_match(&mut self) -> SmbCall {
        let file = self.any_seed();
        let pattern = match self.below(0, 2) {
            0 => workspace::seed_name(file),
            // Ten files or fewer.
            _ => text(&format_args!("file{}?.dat", file.0 / 10)),
        };
        succeeds(self.find(workspace::seed_directory(self.lookup_home()), pattern))
    }

    pub(super) fn find_none(&mut self) -> SmbCall {
        let number = self.below(0, MISSING_NAMES);
        let pattern = match self.below(1, 2) {
            0 => workspace::missing_name(number),
            _ => text(&format_args!("none{:03}*.dat", number / 1_000)),
        };
        fails(self.find(self.some_directory(), pattern), status::NO_SUCH_FILE)
    }

    fn find(&self, directory: PathText, pattern: PathText) -> SmbOp {
        SmbOp::Find { directory, pattern, level: self.one_of(&FIND_LEVELS), entries_max: 0 }
    }

    pub(super) fn query_fs(&mut self) -> SmbCall {
        succeeds(SmbOp::QueryFs { level: self.one_of(&FS_LEVELS) })
    }

    pub(super) fn query_file(&mut self) -> SmbCall {
        let any = pick(self.files.open(), self.bits(0));
        let (handle, _) = any.expect("the card is played when a file is open");
        succeeds(SmbOp::QueryFile { handle, level: self.one_of(&FILE_LEVELS) })
    }

    pub(super) fn set_file(&mut self) -> SmbCall {
        let any = pick(self.files.own(), self.bits(0));
        let (handle, open) = any.expect("the card is played when an own file is open");
        let set = match self.files.size(open.file) {
            // To where it is: what was written stays.
            Some(bytes) if self.below(1, 2) == 0 => FileChange::EndOfFile(u64::from(bytes)),
            _ => FileChange::Basic,
        };
        succeeds(SmbOp::SetFile { handle, set })
    }

    pub(super) fn flush(&mut self) -> SmbCall {
        let any = pick(self.files.own(), self.bits(0));
        let (handle, _) = any.expect("the card is played when an own file is open");
        succeeds(SmbOp::Flush { handle })
    }

    pub(super) fn rename(&mut self) -> SmbCall {
        let number = self.any_made_closed();
        let made = self.files.made_mut(number).expect("it was drawn from those that are there");
        let from = made.file;
        made.file.renames += 1;
        let to = made.file;
        let client = self.owner.client;
        succeeds(SmbOp::Rename {
            path: workspace::made_path(client, from),
            to: workspace::made_path(client, to),
            replace: false,
        })
    }

    pub(super) fn unlink(&mut self) -> SmbCall {
        let number = self.any_made_closed();
        let made = self.files.made_mut(number).expect("it was drawn from those that are there");
        let path = workspace::made_path(self.owner.client, made.file);
        self.files.remove(number);
        succeeds(SmbOp::Unlink { path })
    }

    /// Locks a part of the document, which no one else has open; where shared files are written,
    /// the client's record of the shared document.
    pub(super) fn lock(&mut self) -> SmbCall {
        let own = self.files.document.expect("the card is played when there is a document");
        let writes_shared = self.plan.workload.shared_write_percent > 0.0;
        let shared = self.files.shared_document.filter(|_| writes_shared);
        let sectors = self.plan.workspace.bytes_of(FIRST_LARGE) / LOCK_BYTES;
        let length = u64::from(LOCK_BYTES);
        let (handle, offset) = match shared {
            Some(shared) => (shared, RECORDS_AT + u64::from(self.owner.client) * length),
            None => (own, u64::from(self.below(0, sectors)) * length),
        };
        self.files.locked = Some(Locked { handle, offset, length });
        succeeds(SmbOp::Lock { handle, offset, length })
    }

    pub(super) fn unlock(&mut self) -> SmbCall {
        let locked = self.files.locked.take().expect("the card is played when there is a lock");
        let Locked { handle, offset, length } = locked;
        succeeds(SmbOp::Unlock { handle, offset, length })
    }

    fn free(&self) -> HandleNo {
        // A create that must fail takes no handle.
        self.files.free().unwrap_or(HandleNo(self.plan.workload.model.handles_open_max))
    }

    fn any_made_closed(&self) -> u32 {
        let closed = self.files.made_closed().map(|made| made.file.number);
        pick(closed, self.bits(0)).expect("the card is played when there is one")
    }

    fn any_seed(&self) -> SeedFile {
        let files = &self.application().files;
        files[self.below(2, files.len() as u32) as usize]
    }

    fn any_large(&self) -> SeedFile {
        SeedFile(FIRST_LARGE.0 + self.below(2, SEED_FILES - FIRST_LARGE.0))
    }

    /// A seed file that is not open; the card is played when there is one.
    fn any_closed(&self, home: Home) -> SeedFile {
        let files = &self.application().files;
        let from = self.below(2, files.len() as u32) as usize;
        let mut all = files[from..].iter().chain(&files[..from]);
        let closed = all.find(|file| !self.files.is_open(File::Seed(home, **file)));
        *closed.unwrap_or(&files[from])
    }

    fn large_closed(&self, home: Home) -> SeedFile {
        let mut large = (FIRST_LARGE.0..SEED_FILES).map(SeedFile);
        large.find(|file| !self.files.is_open(File::Seed(home, *file))).unwrap_or(FIRST_LARGE)
    }

    fn some_directory(&self) -> PathText {
        match self.below(3, 2) {
            0 => workspace::seed_directory(self.lookup_home()),
            _ => workspace::work_directory(self.owner.client),
        }
    }

    fn missing_path(&self) -> PathText {
        let name = workspace::missing_name(self.below(4, MISSING_NAMES));
        text(&format_args!("{}\\{name}", self.some_directory()))
    }

    fn one_of<T: Copy>(&self, levels: &[T]) -> T {
        levels[self.below(5, levels.len() as u32) as usize]
    }
}

fn create(path: PathText, handle: HandleNo, disposition: Disposition) -> SmbOp {
    SmbOp::Create { path, handle, disposition, options: options::NON_DIRECTORY_FILE }
}

fn fails(op: SmbOp, status: u32) -> SmbCall {
    SmbCall { op, expected: Expected::Failure(status) }
}

fn text(text: &std::fmt::Arguments<'_>) -> PathText {
    use std::fmt::Write as _;
    let mut path = PathText::EMPTY;
    path.write_fmt(*text).expect("our own names are far shorter than a path may be");
    path
}
