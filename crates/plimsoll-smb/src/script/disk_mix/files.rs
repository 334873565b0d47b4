//! What a client has open, and the files it made.

use crate::op::{Content, HandleNo};
use crate::workspace::{Home, MadeFile, SeedFile};

/// An open file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub file: File,
    pub content: Content,
    /// Where the last read ended.
    pub read_end: Option<u32>,
    /// Where the last write ended.
    pub write_end: Option<u32>,
}

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// One that is always there.
    Seed(Home, SeedFile),
    /// One of the client's own making, by its number.
    Made(u32),
}

/// A file of the client's own making.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub file: MadeFile,
    /// Content has been written from the beginning to here.
    pub filled: u32,
    /// Its size; what lies between has never been written.
    pub bytes: u32,
    pub open: bool,
}

/// A locked range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locked {
    pub handle: HandleNo,
    pub offset: u64,
    pub length: u64,
}

/// What a client has open, and the files it made.
#[derive(Debug)]
pub(super) struct Files {
    handles: Vec<Option<Open>>,
    made: Vec<Made>,
    made_so_far: u32,
    /// Opened first and closed last: whatever is read finds room here.
    pub document: Option<HandleNo>,
    /// The same for files of the shared directory.
    pub shared_document: Option<HandleNo>,
    pub locked: Option<Locked>,
}

impl Files {
    /// Nothing open, nothing made.
    pub(super) fn new(handles_open_max: u32) -> Self {
        Self {
            handles: vec![None; handles_open_max as usize],
            made: Vec::new(),
            made_so_far: 0,
            document: None,
            shared_document: None,
            locked: None,
        }
    }

    /// A free place.
    pub(super) fn free(&self) -> Option<HandleNo> {
        let place = self.handles.iter().position(Option::is_none)?;
        Some(HandleNo(place as u32))
    }

    /// Open files with their handles.
    pub(super) fn open(&self) -> impl Iterator<Item = (HandleNo, &Open)> + Clone {
        let numbered = self.handles.iter().enumerate();
        numbered.filter_map(|(n, open)| Some((HandleNo(n as u32), open.as_ref()?)))
    }

    /// Open files of the client's own, of which it may change data and metadata.
    pub(super) fn own(&self) -> impl Iterator<Item = (HandleNo, &Open)> + Clone {
        self.open().filter(|(_, open)| !open.is_shared())
    }

    /// The file behind a handle.
    pub(super) fn get(&self, handle: HandleNo) -> Option<&Open> {
        self.handles.get(handle.0 as usize)?.as_ref()
    }

    /// The file behind a handle, to change what is known of it.
    pub(super) fn at(&mut self, handle: HandleNo) -> Option<&mut Open> {
        self.handles.get_mut(handle.0 as usize)?.as_mut()
    }

    pub(super) fn is_open(&self, file: File) -> bool {
        self.open().any(|(_, open)| open.file == file)
    }

    /// Files of the client's own making.
    pub(super) fn made(&self) -> &[Made] {
        &self.made
    }

    /// Made files that are not open.
    pub(super) fn made_closed(&self) -> impl Iterator<Item = &Made> + Clone {
        self.made.iter().filter(|made| !made.open)
    }

    pub(super) fn made_open(&self) -> usize {
        self.made.iter().filter(|made| made.open).count()
    }

    pub(super) fn made_mut(&mut self, number: u32) -> Option<&mut Made> {
        self.made.iter_mut().find(|made| made.file.number == number)
    }

    /// A name that was never used.
    pub(super) fn make(&mut self) -> MadeFile {
        let file = MadeFile { number: self.made_so_far, renames: 0 };
        self.made_so_far = self.made_so_far.wrapping_add(1);
        self.made.push(Made { file, filled: 0, bytes: 0, open: false });
        file
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.made.retain(|made| made.file.number != number);
    }

    /// Puts a file that was opened on a free place.
    pub(super) fn put(&mut self, handle: HandleNo, file: File, content: Content) {
        let open = Open { file, content, read_end: None, write_end: None };
        self.handles[handle.0 as usize] = Some(open);
        if let File::Made(number) = file
            && let Some(made) = self.made_mut(number)
        {
            made.open = true;
        }
    }

    /// Takes a file away that was closed.
    pub(super) fn take(&mut self, handle: HandleNo) {
        let Some(open) = self.handles[handle.0 as usize].take() else { return };
        if let File::Made(number) = open.file
            && let Some(made) = self.made_mut(number)
        {
            made.open = false;
        }
        for anchor in [&mut self.document, &mut self.shared_document] {
            if *anchor == Some(handle) {
                *anchor = None;
            }
        }
    }

    /// Size of a made file.
    pub(super) fn size(&self, file: File) -> Option<u32> {
        self.find_made(file).map(|made| made.bytes)
    }

    /// Content that a made file has from its beginning on.
    pub(super) fn filled(&self, file: File) -> Option<u32> {
        self.find_made(file).map(|made| made.filled)
    }

    fn find_made(&self, file: File) -> Option<&Made> {
        let File::Made(number) = file else { return None };
        self.made.iter().find(|made| made.file.number == number)
    }
}

impl Open {
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.file, File::Seed(Home::Shared, _))
    }

    pub(super) fn is_made(&self) -> bool {
        matches!(self.file, File::Made(_))
    }
}
