//! One object in memory.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::entries::{Entries, EntryIs};
use crate::server::store::{
    Attributes, Caller, Change, Fault, Kind, MODE_BITS_KEPT, SetTime, Settings, Time,
};
use plimsoll_servers::memory::{Budget, Data};

/// File system number of everything in memory; any number will do.
const FILE_SYSTEM: u64 = 0x506c_696d;
/// Names an object may have.
const LINKS_MAX: u32 = 32_000;
/// Permission bits when the client names none.
const MODE_DEFAULT: u32 = 0o644;

/// An object behind its lock.
#[derive(Debug)]
pub(super) struct Node(RwLock<State>);

impl Node {
    pub(super) fn new(state: State) -> Self {
        Self(RwLock::new(state))
    }

    /// A panic inside a lock is a bug of ours that has been reported; state stays consistent
    /// enough to answer with, because every change is made after all checks.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attributes and content of an object.
#[derive(Debug)]
pub(super) struct State {
    pub(super) file_id: u64,
    pub(super) links: u32,
    pub(super) body: Body,
    /// Verifier of the exclusive CREATE that made it.
    pub(super) exclusive: Option<[u8; 8]>,
    mode: u32,
    uid: u32,
    gid: u32,
    accessed: Time,
    modified: Time,
    changed: Time,
}

#[derive(Debug)]
pub(super) enum Body {
    File(Data),
    Directory(Entries),
    Link(Box<[u8]>),
    Special(Kind, (u32, u32)),
}

impl State {
    pub(super) fn new(file_id: u64, body: Body, caller: Caller) -> Self {
        let now = Time::now();
        Self {
            file_id,
            links: 1,
            body,
            exclusive: None,
            mode: MODE_DEFAULT,
            uid: caller.uid,
            gid: caller.gid,
            accessed: now,
            modified: now,
            changed: now,
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match &self.body {
            Body::File(_) => Kind::File,
            Body::Directory(_) => Kind::Directory,
            Body::Link(_) => Kind::Link,
            Body::Special(kind, _) => *kind,
        }
    }

    pub(super) fn entry_is(&self) -> EntryIs {
        match &self.body {
            Body::Directory(_) => EntryIs::Directory,
            _ => EntryIs::Other,
        }
    }

    pub(super) fn attributes(&self) -> Attributes {
        let (size, used) = match &self.body {
            Body::File(data) => (data.size(), data.charged()),
            Body::Directory(entries) => (entries.size(), 0),
            Body::Link(text) => (text.len() as u64, text.len() as u64),
            Body::Special(..) => (0, 0),
        };
        Attributes {
            kind: self.kind(),
            mode: self.mode,
            links: match &self.body {
                Body::Directory(entries) if self.links > 0 => entries.links(),
                _ => self.links,
            },
            uid: self.uid,
            gid: self.gid,
            size,
            used,
            device: if let Body::Special(_, device) = self.body { device } else { (0, 0) },
            file_system: FILE_SYSTEM,
            file_id: self.file_id,
            accessed: self.accessed,
            modified: self.modified,
            changed: self.changed,
        }
    }

    /// [`Fault::Stale`] once the last name is gone, even for those who found it before.
    pub(super) fn alive(&self) -> Result<(), Fault> {
        if self.links == 0 { Err(Fault::Stale) } else { Ok(()) }
    }

    pub(super) fn entries(&self) -> Result<&Entries, Fault> {
        self.alive()?;
        match &self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Fault::NotDirectory),
        }
    }

    pub(super) fn entries_mut(&mut self) -> Result<&mut Entries, Fault> {
        self.alive()?;
        match &mut self.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Fault::NotDirectory),
        }
    }

    pub(super) fn data(&self) -> Result<&Data, Fault> {
        self.alive()?;
        match &self.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(Fault::IsDirectory),
            _ => Err(Fault::Invalid),
        }
    }

    pub(super) fn data_mut(&mut self) -> Result<&mut Data, Fault> {
        self.alive()?;
        match &mut self.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(Fault::IsDirectory),
            _ => Err(Fault::Invalid),
        }
    }

    /// Runs `change` and says what it did to the attributes.
    pub(super) fn watched(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<Change, Fault> {
        self.alive()?;
        let before = self.attributes();
        change(self)?;
        let before = Some((before.size, before.modified, before.changed));
        Ok(Change { before, after: Some(self.attributes()) })
    }

    pub(super) fn set(&mut self, to: &Settings, budget: &Budget) -> Result<(), Fault> {
        let now = Time::now();
        if let Some(size) = to.size {
            self.data_mut()?.resize(size, budget)?;
            self.modified = now;
        }
        self.mode = to.mode.map_or(self.mode, |mode| mode & MODE_BITS_KEPT);
        self.uid = to.uid.unwrap_or(self.uid);
        self.gid = to.gid.unwrap_or(self.gid);
        for (time, wish) in [(&mut self.accessed, to.accessed), (&mut self.modified, to.modified)] {
            match wish {
                SetTime::Keep => {}
                SetTime::Now => *time = now,
                SetTime::To(wish) => *time = wish,
            }
        }
        self.changed = now;
        Ok(())
    }

    /// One name more or less.
    pub(super) fn add_link(&mut self) -> Result<(), Fault> {
        if self.links >= LINKS_MAX {
            return Err(Fault::TooManyLinks);
        }
        self.links += 1;
        self.changed = Time::now();
        Ok(())
    }

    pub(super) fn drop_link(&mut self) {
        self.links -= 1;
        self.changed = Time::now();
    }

    /// Content was changed now.
    pub(super) fn touch(&mut self) {
        self.modified = Time::now();
        self.changed = self.modified;
    }
}
