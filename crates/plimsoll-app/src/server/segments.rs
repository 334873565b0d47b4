//! The data segments of the clients: one file each, shared by all connections that give the same
//! number. Everything is read and written by position.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::wire::{Refusal, Status};
use rustix::fs::{
    Advice, AtFlags, FallocateFlags, FileType, Mode, OFlags, fadvise, fallocate, fdatasync, fstat,
    fstatvfs, fsync, ftruncate, openat, unlinkat,
};
use rustix::io::{Errno, pread, pwrite};

use super::root::Root;
use super::troubles::Troubles;

/// Entries of unused segments that stay in the table before a sweep: they record which segments
/// this server has had open.
const TABLE_SLACK: u64 = 65_536;

/// What a write waits for before its reply leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Nothing: the page cache has it, and a crash of the system may lose it
    #[default]
    None,
    /// fdatasync: it is on stable storage
    Fdatasync,
}

/// All segments.
#[derive(Debug)]
pub(super) struct Segments {
    root: Root,
    bytes_max: u64,
    durability: Durability,
    page_cache: PageCache,
    troubles: Troubles,
    open: Mutex<HashMap<u32, Weak<Segment>>>,
    open_count: Arc<AtomicU64>,
}

/// What a segment that others have written may find in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageCache {
    /// Whatever is there.
    AsItIs,
    /// Nothing: pages charged to another process would be memory beyond this one's limit.
    Empty,
}

/// Which time this server opens a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// Its content is other processes' work.
    First,
    Again,
}

/// One client's data.
#[derive(Debug)]
pub(super) struct Segment {
    file: OwnedFd,
    name: String,
    bytes: u64,
    /// After a failed fdatasync the kernel forgets what it could not write, and reports that only
    /// once for this open file: every further one would succeed and prove nothing.
    lost_writes: Mutex<bool>,
    troubles: Troubles,
    /// Those that are open, this one included.
    open_count: Arc<AtomicU64>,
}

impl Segments {
    pub(super) fn new(
        root: Root,
        bytes_max: u64,
        durability: Durability,
        page_cache: PageCache,
        troubles: Troubles,
    ) -> Self {
        let (open, open_count) = (Mutex::default(), Arc::default());
        Self { root, bytes_max, durability, page_cache, troubles, open, open_count }
    }

    /// The segment of `client`, made or brought to its size where needed.
    pub(super) fn open(&self, client: u32, bytes: u64) -> Result<Arc<Segment>, Refusal> {
        if bytes > self.bytes_max {
            return Err(Refusal::SegmentSize);
        }
        let mut open = self.table();
        if let Some(existing) = open.get(&client).and_then(Weak::upgrade) {
            // Another connection relies on its size.
            return if existing.bytes == bytes { Ok(existing) } else { Err(Refusal::SegmentSize) };
        }
        let name = format!("client-{client:06}.segment");
        let opening = if open.contains_key(&client) { Opening::Again } else { Opening::First };
        let file = match self.file(&name, bytes, opening) {
            Ok(file) => file,
            Err(errno) => {
                self.troubles.note(&format!(
                    "{}: cannot make it {bytes} bytes long: {}",
                    self.root.path.join(&name).display(),
                    io::Error::from(errno)
                ));
                return Err(if is_full(errno) { Refusal::NoRoom } else { Refusal::Storage });
            }
        };
        let (lost_writes, troubles) = (Mutex::new(false), self.troubles.clone());
        let open_count = Arc::clone(&self.open_count);
        open_count.fetch_add(1, Ordering::Relaxed);
        let segment = Arc::new(Segment { file, name, bytes, lost_writes, troubles, open_count });
        if open.len() as u64 > 2 * self.open_count() + TABLE_SLACK {
            open.retain(|_, weak| weak.strong_count() > 0);
        }
        open.insert(client, Arc::downgrade(&segment));
        Ok(segment)
    }

    /// Segments that a connection has open.
    pub(super) fn open_count(&self) -> u64 {
        self.open_count.load(Ordering::Relaxed)
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u32, Weak<Segment>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what is in a file of the right size. Room is taken at once: a server that finds its
    /// disk full in the middle of a load point has wasted it.
    fn file(&self, name: &str, bytes: u64, opening: Opening) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.root.directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        let before = fstat(&file)?;
        if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
            return Err(Errno::ISDIR);
        }
        let bytes_before = u64::try_from(before.st_size).unwrap_or(0);
        if bytes_before != bytes {
            ftruncate(&file, bytes)?;
        }
        let allocated = u64::try_from(before.st_blocks).unwrap_or(0) * 512;
        if let Err(errno) = take_room(&file, bytes, allocated.min(bytes_before)) {
            // The error at hand matters more than one of the cleanup.
            let _ = match bytes_before {
                0 => unlinkat(&self.root.directory, name, AtFlags::empty()),
                some => ftruncate(&file, some),
            };
            return Err(errno);
        }
        if self.durability == Durability::Fdatasync && bytes_before != bytes {
            // A write is not durable if a crash could lose the file's name.
            fsync(&file)?;
            fsync(&self.root.directory)?;
        }
        let others = opening == Opening::First && bytes_before > 0;
        if self.page_cache == PageCache::Empty && others {
            fdatasync(&file)?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(file)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.open_count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn take_room(file: impl AsFd, bytes: u64, allocated_bytes: u64) -> Result<(), Errno> {
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP) => {
            let system = fstatvfs(&file)?;
            let free = system.f_bavail.saturating_mul(system.f_frsize);
            if bytes.saturating_sub(allocated_bytes) > free { Err(Errno::NOSPC) } else { Ok(()) }
        }
        other => other,
    }
}

fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
}

impl Segment {
    /// Whether `bytes` at this offset are within it.
    pub(super) fn holds(&self, offset: u64, bytes: usize) -> bool {
        offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes)
    }

    /// Fills `buffer` from `offset`, which must be within the segment.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Status> {
        let mut filled = 0;
        while filled < buffer.len() {
            match pread(&self.file, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => return Err(self.failed(&"it has become shorter")),
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.failed(&io::Error::from(errno))),
            }
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`, which must be within the segment.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Status> {
        let mut written = 0;
        while written < bytes.len() {
            match pwrite(&self.file, &bytes[written..], offset + written as u64) {
                Ok(0) => return Err(self.failed(&"nothing is written")),
                Ok(some) => written += some,
                Err(Errno::INTR) => {}
                Err(errno) if is_full(errno) => {
                    self.failed(&io::Error::from(errno));
                    return Err(Status::NoRoom);
                }
                Err(errno) => return Err(self.failed(&io::Error::from(errno))),
            }
        }
        Ok(())
    }

    /// Waits until all that was written is on stable storage. Fails for good once it has failed.
    pub(super) fn make_durable(&self) -> Result<(), Status> {
        self.make_durable_by(|| fdatasync(&self.file))
    }

    fn make_durable_by(&self, sync: impl Fn() -> Result<(), Errno>) -> Result<(), Status> {
        // Held over the call: of two that wait for the same pages only one gets the error, and the
        // other must not answer before that is recorded.
        let mut lost_writes = self.lost_writes.lock().unwrap_or_else(PoisonError::into_inner);
        if *lost_writes {
            return Err(Status::Storage);
        }
        loop {
            match sync() {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    *lost_writes = true;
                    let status = self.failed(&io::Error::from(errno));
                    return Err(if is_full(errno) { Status::NoRoom } else { status });
                }
            }
        }
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Status {
        self.troubles.note(&format!("{}: {why}", self.name));
        Status::Storage
    }
}

#[cfg(test)]
mod tests {
    use super::super::root::SegmentsRoot;
    use super::*;

    fn segments(path: &std::path::Path) -> Segments {
        let root = Root::open(&SegmentsRoot::Kept(path.to_owned())).unwrap();
        Segments::new(root, 1 << 20, Durability::Fdatasync, PageCache::Empty, Troubles::unheard())
    }

    #[test]
    fn a_segment_keeps_what_is_in_it_and_has_its_room() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = tempfile::tempdir().unwrap();
        let segments = segments(dir.path());
        let segment = segments.open(3, 65_536).unwrap();
        segment.write(b"kept", 65_532).unwrap();
        segment.make_durable().unwrap();
        let shared = segments.open(3, 65_536).unwrap();
        assert!(Arc::ptr_eq(&segment, &shared));
        assert_eq!(segments.open(3, 4_096).unwrap_err(), Refusal::SegmentSize);
        assert_eq!(segments.open_count(), 1);
        drop((segment, shared));
        assert_eq!(segments.open_count(), 0);
        let again = segments.open(3, 65_536).unwrap();
        let mut read = [0; 4];
        again.read(&mut read, 65_532).unwrap();
        assert_eq!(&read, b"kept");
        let file = dir.path().join("client-000003.segment").metadata().unwrap();
        assert_eq!((file.len(), file.blocks() * 512 >= 65_536), (65_536, true));
    }

    #[test]
    fn what_is_too_large_or_has_no_room_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&SegmentsRoot::Kept(dir.path().to_owned())).unwrap();
        let none = Durability::None;
        let segments = Segments::new(root, u64::MAX, none, PageCache::AsItIs, Troubles::unheard());
        let refused = segments.open(1, 1 << 42).unwrap_err();
        assert_eq!(refused, Refusal::NoRoom);
        assert!(!dir.path().join("client-000001.segment").exists());
        let segments = self::segments(tempfile::tempdir().unwrap().path());
        let refused = segments.open(1, (1 << 20) + 1).unwrap_err();
        assert_eq!(refused, Refusal::SegmentSize);
    }

    /// Of a device without storage.
    fn full_segment() -> Segment {
        let file = std::fs::File::options().write(true).open("/dev/full").unwrap();
        Segment {
            file: file.into(),
            name: "full".into(),
            bytes: 10,
            lost_writes: Mutex::new(false),
            troubles: Troubles::unheard(),
            open_count: Arc::new(AtomicU64::new(1)),
        }
    }

    #[test]
    fn a_full_disk_and_a_failed_fdatasync_are_told_apart_and_the_latter_stays() {
        let segment = full_segment();
        assert_eq!(segment.write(b"data", 0), Err(Status::NoRoom));
        // A device without storage cannot be synced.
        assert_eq!(segment.make_durable(), Err(Status::Storage));
        assert_eq!(segment.make_durable_by(|| Ok(())), Err(Status::Storage));
    }

    #[test]
    fn an_error_that_the_kernel_tells_one_of_two_is_known_to_both() {
        let segment = full_segment();
        let (started, is_started) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let (started, is_done) = (started, is_done);
                let failing = || {
                    started.send(()).unwrap();
                    // The other one's call returns within this one, if it is let in.
                    let _ = is_done.recv_timeout(std::time::Duration::from_millis(200));
                    Err(Errno::IO)
                };
                segment.make_durable_by(failing)
            });
            is_started.recv().unwrap();
            let second = segment.make_durable_by(|| Ok(()));
            let _ = done.send(());
            assert_eq!([second, first.join().unwrap()], [Err(Status::Storage); 2]);
        });
    }

    #[test]
    fn a_link_in_the_place_of_a_segment_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let segments = segments(dir.path());
        let letter = dir.path().join("letter.txt");
        std::fs::write(&letter, "dear").unwrap();
        std::os::unix::fs::symlink(&letter, dir.path().join("client-000009.segment")).unwrap();
        assert_eq!(segments.open(9, 8).unwrap_err(), Refusal::Storage);
        assert_eq!(std::fs::read(&letter).unwrap(), b"dear");
    }
}
