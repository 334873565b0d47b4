//! Changes of names and attributes below a directory.

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    chownat, fchmod, ftruncate, futimens, linkat, mkdirat, mknodat, renameat, symlinkat, unlinkat,
    utimensat,
};

use super::places::{Found, Open, Purpose};
use super::status::{self, Status, fault};
use super::{DirectoryStore, after};
use crate::server::store::{
    Created, Creation, Doomed, FileAttributes, FileKind, LINK_BYTES_MAX, MODE_BITS_KEPT, New,
    Object, Place, SetAttributes, SetTime, Status3, TimeSpec3, WccData, new_name, plain_name,
};

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

impl DirectoryStore {
    pub(super) fn set_attributes(&self, object: Object, to: &SetAttributes) -> Result<(), Status3> {
        if let Some(size) = to.size {
            let file = self.places.file(object, Purpose::Write)?;
            let size = i64::try_from(size).map_err(|_| Status3::FBIG)?;
            ftruncate(&file, size.cast_unsigned()).map_err(fault)?;
        }
        let found = self.places.status(object)?;
        if let Some(mode) = to.mode.map(|mode| mode & MODE_BITS_KEPT)
            && mode != found.attributes.mode
        {
            self.set_mode(object, &found, mode)?;
        }
        if to.uid.is_some_and(|uid| uid != found.attributes.uid)
            || to.gid.is_some_and(|gid| gid != found.attributes.gid)
        {
            let (uid, gid) = (to.uid.map(Uid::from_raw), to.gid.map(Gid::from_raw));
            self.at(object, |directory, name, flags| chownat(directory, name, uid, gid, flags))?;
        }
        if (to.atime, to.mtime) != (SetTime::Keep, SetTime::Keep) {
            let times = timestamps(to.atime, to.mtime);
            self.at(object, |directory, name, flags| utimensat(directory, name, &times, flags))?;
        }
        self.flush_attributes(object, &found)
    }

    /// By descriptor: there is no call that changes the mode of a name without following it.
    fn set_mode(&self, object: Object, found: &Status, mode: u32) -> Result<(), Status3> {
        let open = match found.attributes.kind {
            FileKind::Regular => self.places.file(object, Purpose::Read)?,
            FileKind::Directory => self.places.directory(object)?,
            // Links have no mode worth having.
            FileKind::Symlink => return Ok(()),
            _ => return Err(Status3::NOTSUPP),
        };
        fchmod(&open, Mode::from_raw_mode(mode)).map_err(fault)
    }

    fn flush_attributes(&self, object: Object, found: &Status) -> Result<(), Status3> {
        match found.attributes.kind {
            FileKind::Regular => {
                let file = self.places.file(object, Purpose::Read)?;
                self.flush_names(&file)
            }
            FileKind::Directory => self.flush_names(&*self.places.directory(object)?),
            _ => Ok(()),
        }
    }

    /// Runs a call that takes a directory and a name on an object.
    fn at(
        &self,
        object: Object,
        call: impl FnOnce(&Open, &[u8], AtFlags) -> rustix::io::Result<()>,
    ) -> Result<(), Status3> {
        if object.id == self.places.root_id() {
            let root = self.places.directory(object)?;
            return call(&root, b".", AtFlags::empty()).map_err(fault);
        }
        let found = self.places.find(object)?;
        call(&found.directory, &found.name, AtFlags::SYMLINK_NOFOLLOW).map_err(fault)
    }

    pub(super) fn create_at(
        &self,
        place: Place<'_>,
        new: New<'_>,
        to: &SetAttributes,
    ) -> Result<Created, Status3> {
        new_name(place.name)?;
        let directory = self.places.directory(place.directory)?;
        self.listings.forget(place.directory.id);
        let mode = to.mode.map(|mode| mode & MODE_BITS_KEPT);
        match new {
            New::File(how) => match self.create_file(place, &directory, mode) {
                Ok(()) => self.mark_exclusive(place, how)?,
                Err(Status3::EXIST) => return self.take_existing(place, &directory, how, to),
                Err(fault) => return Err(fault),
            },
            New::Directory => {
                let mode = Mode::from_raw_mode(mode.unwrap_or(DIRECTORY_MODE));
                mkdirat(&directory, place.name, mode).map_err(fault)?;
            }
            New::Link([]) => return Err(Status3::INVAL),
            New::Link(text) if text.len() > LINK_BYTES_MAX => return Err(Status3::NAMETOOLONG),
            New::Link(text) => symlinkat(text, &directory, place.name).map_err(fault)?,
            New::Special(kind, _) => {
                let kind = match kind {
                    FileKind::Fifo => FileType::Fifo,
                    FileKind::Socket => FileType::Socket,
                    // A device of this host in a client's hands would be a way out.
                    _ => return Err(Status3::NOTSUPP),
                };
                let mode = Mode::from_raw_mode(mode.unwrap_or(FILE_MODE));
                mknodat(&directory, place.name, kind, mode, 0).map_err(fault)?;
            }
        }
        // The mask of this process took bits of the mode away, and the rest is not set yet.
        let settings = match new {
            New::File(Creation::Exclusive(_)) => SetAttributes::default(),
            New::File(_) => *to,
            New::Directory => {
                // It takes the set-gid bit over from the directory it is made in.
                let made = status::of_name(&directory, place.name)?.attributes.mode;
                SetAttributes { mode: Some(mode.unwrap_or(made)), ..*to }
            }
            New::Link(_) | New::Special(..) => SetAttributes { mode: None, size: None, ..*to },
        };
        self.created(place, &directory, &settings)
    }

    fn create_file(
        &self,
        place: Place<'_>,
        directory: &Open,
        mode: Option<u32>,
    ) -> Result<(), Status3> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::from_raw_mode(mode.unwrap_or(FILE_MODE));
        let file = self.places.open_at(directory, place.name, flags, mode)?;
        let found = status::of_descriptor(&file)?;
        self.places.keep(file, &found, Purpose::Write);
        Ok(())
    }

    /// RFC 1813 §3.3.8 lets the verifier be kept in the times until the client sets them.
    fn mark_exclusive(&self, place: Place<'_>, how: Creation) -> Result<(), Status3> {
        let Creation::Exclusive(verifier) = how else { return Ok(()) };
        let (object, _) = super::Store::lookup(self, place)?;
        let file = self.places.file(object, Purpose::Write)?;
        let (atime, mtime) = times_of(verifier);
        let times = timestamps(SetTime::To(atime), SetTime::To(mtime));
        futimens(&file, &times).map_err(fault)
    }

    fn take_existing(
        &self,
        place: Place<'_>,
        directory: &Open,
        how: Creation,
        to: &SetAttributes,
    ) -> Result<Created, Status3> {
        let found = status::of_name(directory, place.name)?;
        if found.attributes.kind != FileKind::Regular {
            return Err(Status3::EXIST);
        }
        match how {
            Creation::Unchecked => {}
            Creation::Exclusive(verifier)
                if (found.attributes.atime, found.attributes.mtime) == times_of(verifier) => {}
            Creation::Exclusive(_) | Creation::Guarded => return Err(Status3::EXIST),
        }
        let size = to.size.filter(|_| how == Creation::Unchecked);
        self.created(place, directory, &SetAttributes { size, ..SetAttributes::default() })
    }

    /// Sets attributes of what now stands at a name, and answers with it.
    fn created(
        &self,
        place: Place<'_>,
        directory: &Open,
        settings: &SetAttributes,
    ) -> Result<Created, Status3> {
        let (object, mut attributes) = super::Store::lookup(self, place)?;
        let size_differs = settings.size.is_some_and(|size| size != attributes.size);
        let mode_differs =
            settings.mode.is_some_and(|mode| mode & MODE_BITS_KEPT != attributes.mode);
        let rest = SetAttributes { size: None, mode: None, ..*settings };
        if size_differs || mode_differs || rest != SetAttributes::default() {
            let size = settings.size.filter(|_| size_differs);
            self.set_attributes(object, &SetAttributes { size, ..*settings })?;
            attributes = super::Store::attributes(self, object)?;
        }
        self.flush_names(directory)?;
        let directory = after(status::of_descriptor(directory)?.attributes);
        Ok(Created { object, attributes, directory })
    }

    pub(super) fn remove_at(&self, place: Place<'_>, doomed: Doomed) -> Result<WccData, Status3> {
        plain_name(place.name)?;
        let directory = self.places.directory(place.directory)?;
        self.listings.forget(place.directory.id);
        let found = status::of_name(&directory, place.name)?;
        let flags = match doomed {
            Doomed::File => AtFlags::empty(),
            Doomed::Directory => AtFlags::REMOVEDIR,
        };
        unlinkat(&directory, place.name, flags).map_err(fault)?;
        self.places.lost_name(&found, place.directory.id, place.name);
        self.flush_names(&directory)?;
        Ok(after(status::of_descriptor(&directory)?.attributes))
    }

    pub(super) fn rename_at(
        &self,
        from: Place<'_>,
        to: Place<'_>,
    ) -> Result<(WccData, WccData), Status3> {
        plain_name(from.name)?;
        new_name(to.name)?;
        let source = self.places.directory(from.directory)?;
        let target = self.places.directory(to.directory)?;
        self.listings.forget(from.directory.id);
        self.listings.forget(to.directory.id);
        let moved = status::of_name(&source, from.name)?;
        let replaced = status::of_name(&target, to.name).ok();
        match renameat(&source, from.name, &target, to.name).map_err(fault) {
            // The system's words for a target of the wrong kind; RFC 1813 §3.3.14 has others.
            Err(Status3::ISDIR | Status3::NOTDIR) => return Err(Status3::EXIST),
            renamed => renamed?,
        }
        if let Some(replaced) = replaced.filter(|replaced| replaced.id() != moved.id()) {
            self.places.lost_name(&replaced, to.directory.id, to.name);
        }
        self.places.saw(&moved, to.directory.id, to.name.into())?;
        self.flush_names(&source)?;
        self.flush_names(&target)?;
        let state = |open: &Open| status::of_descriptor(open).map(|s| after(s.attributes));
        Ok((state(&source)?, state(&target)?))
    }

    pub(super) fn link_at(
        &self,
        object: Object,
        place: Place<'_>,
    ) -> Result<(FileAttributes, WccData), Status3> {
        new_name(place.name)?;
        let directory = self.places.directory(place.directory)?;
        if object.id == self.places.root_id() {
            return Err(Status3::INVAL);
        }
        let Found { directory: source, name, status: found } = self.places.find(object)?;
        if found.is_directory() {
            return Err(Status3::INVAL);
        }
        self.listings.forget(place.directory.id);
        linkat(&source, &*name, &directory, place.name, AtFlags::empty()).map_err(fault)?;
        // The handle knows the old name's directory; the new name is found through the cache.
        self.places.saw(&found, place.directory.id, place.name.into())?;
        self.flush_names(&directory)?;
        let attributes = super::Store::attributes(self, object)?;
        Ok((attributes, after(status::of_descriptor(&directory)?.attributes)))
    }
}

fn timestamps(atime: SetTime, mtime: SetTime) -> Timestamps {
    let stamp = |wish| match wish {
        SetTime::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        SetTime::ServerTime => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        SetTime::To(time) => {
            Timespec { tv_sec: time.seconds.into(), tv_nsec: time.nanoseconds.into() }
        }
    };
    Timestamps { last_access: stamp(atime), last_modification: stamp(mtime) }
}

/// Times that stand for a verifier: 31 bits of each half, which every file system can keep.
fn times_of(verifier: [u8; 8]) -> (TimeSpec3, TimeSpec3) {
    let (words, _) = verifier.as_chunks::<4>();
    let time = |word: [u8; 4]| TimeSpec3 { seconds: u32::from_be_bytes(word) >> 1, nanoseconds: 0 };
    (time(words[0]), time(words[1]))
}
