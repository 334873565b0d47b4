//! Changes of names, one at a time.

use super::nodes::{Body, Entries, EntryIs, State};
use super::{
    Caller, Created, Creation, FileAttributes, FileKind, LINK_BYTES_MAX, NAME_BYTES_MAX, New,
    NodePath, OBJECT_CHARGE, Object, RemovalKind, SetAttributes, Status3, Store, WccData,
};
use plimsoll_servers::memory::Data;

const DIRECTORY_MODE: u32 = 0o755;
const LINK_MODE: u32 = 0o777;

impl Store {
    /// CREATE, MKDIR, SYMLINK, MKNOD.
    pub fn create(
        &self,
        path: NodePath<'_>,
        new: New<'_>,
        to: &SetAttributes,
        caller: Caller,
    ) -> Result<Created, Status3> {
        new_name(path.name)?;
        if matches!(new, New::Link(text) if text.len() > LINK_BYTES_MAX) {
            return Err(Status3::NAMETOOLONG);
        }
        let _names = self.names();
        let directory = self.nodes.get(path.directory)?;
        let mut state = directory.write();
        if let Some(object) = state.entries()?.find(path.name) {
            let how = if let New::File(how) = new { Some(how) } else { None };
            return self.take_existing(&state, object, how, to);
        }
        let text_bytes = if let New::Link(text) = new { text.len() } else { 0 };
        let charge = OBJECT_CHARGE + (path.name.len() + text_bytes) as u64;
        self.budget.take(charge)?;
        let made = self.make(path.directory, new, to, caller);
        let (object, attributes) = made.inspect_err(|_| self.budget.give_back(charge))?;
        let is = match new {
            New::Directory => EntryIs::Directory,
            _ => EntryIs::Other,
        };
        let directory = state.watched(|state| {
            state.entries_mut()?.insert(path.name, object, is)?;
            state.touch();
            Ok(())
        })?;
        Ok(Created { object, attributes, directory })
    }

    /// REMOVE and RMDIR.
    pub fn remove(&self, path: NodePath<'_>, removal: RemovalKind) -> Result<WccData, Status3> {
        plain_name(path.name)?;
        let _names = self.names();
        let directory = self.nodes.get(path.directory)?;
        let mut directory = directory.write();
        let object = directory.entries()?.find(path.name).ok_or(Status3::NOENT)?;
        let node = self.nodes.get(object)?;
        let mut child = node.write();
        match (removal, &child.body) {
            (RemovalKind::File, Body::Directory(_)) => return Err(Status3::ISDIR),
            (RemovalKind::Directory, Body::Directory(entries)) if !entries.is_empty() => {
                return Err(Status3::NOTEMPTY);
            }
            (RemovalKind::File, _) | (RemovalKind::Directory, Body::Directory(_)) => {}
            (RemovalKind::Directory, _) => return Err(Status3::NOTDIR),
        }
        let is = child.entry_is();
        directory.watched(|directory| {
            directory.entries_mut()?.remove(path.name, is);
            self.unlink(path.name, object, &mut child);
            directory.touch();
            Ok(())
        })
    }

    /// RENAME; the changes of the two directories.
    pub fn rename(
        &self,
        from: NodePath<'_>,
        to: NodePath<'_>,
    ) -> Result<(WccData, WccData), Status3> {
        plain_name(from.name)?;
        new_name(to.name)?;
        let _names = self.names();
        let source = self.nodes.get(from.directory)?;
        let target = self.nodes.get(to.directory)?;
        let moved = source.read().entries()?.find(from.name).ok_or(Status3::NOENT)?;
        let moved_node = self.nodes.get(moved)?;
        let is = moved_node.read().entry_is();
        if is == EntryIs::Directory && self.is_within(to.directory, moved)? {
            return Err(Status3::INVAL);
        }
        if target.read().entries()?.find(to.name) == Some(moved) {
            return Ok((WccData::NONE, WccData::NONE));
        }
        let charge = to.name.len() as u64;
        self.budget.take(charge)?;
        // Nobody else changes names meanwhile, so one lock after the other will do.
        let into = target.write().watched(|target| {
            self.replace(target, to.name, is)?;
            target.entries_mut()?.insert(to.name, moved, is)?;
            target.touch();
            Ok(())
        });
        let into = into.inspect_err(|_| self.budget.give_back(charge))?;
        let out_of = source.write().watched(|source| {
            source.entries_mut()?.remove(from.name, is);
            self.budget.give_back(from.name.len() as u64);
            source.touch();
            Ok(())
        })?;
        if let Body::Directory(entries) = &mut moved_node.write().body {
            entries.parent = to.directory;
        }
        if from.directory == to.directory {
            let both = WccData { before: into.before, after: out_of.after };
            return Ok((both, both));
        }
        Ok((out_of, into))
    }

    /// LINK; attributes of the object, and the change of the directory.
    pub fn link(
        &self,
        object: Object,
        path: NodePath<'_>,
    ) -> Result<(FileAttributes, WccData), Status3> {
        new_name(path.name)?;
        let _names = self.names();
        let node = self.nodes.get(object)?;
        if node.read().kind() == FileKind::Directory {
            return Err(Status3::INVAL);
        }
        let directory = self.nodes.get(path.directory)?;
        let mut directory = directory.write();
        let change = directory.watched(|directory| {
            if directory.entries()?.find(path.name).is_some() {
                return Err(Status3::EXIST);
            }
            self.budget.take(path.name.len() as u64)?;
            let mut linked = node.write();
            let added = linked.alive().and_then(|()| linked.add_link());
            added.inspect_err(|_| self.budget.give_back(path.name.len() as u64))?;
            directory.entries_mut()?.insert(path.name, object, EntryIs::Other)?;
            directory.touch();
            Ok(())
        })?;
        let attributes = node.read().attributes();
        Ok((attributes, change))
    }

    /// Takes a name away from `child`; frees it with the last one.
    fn unlink(&self, name: &[u8], object: Object, child: &mut State) {
        self.budget.give_back(name.len() as u64);
        child.drop_link();
        if child.links > 0 {
            return;
        }
        let content = match &child.body {
            Body::File(data) => data.charged(),
            Body::Link(text) => text.len() as u64,
            Body::Directory(_) | Body::Special(..) => 0,
        };
        self.budget.give_back(OBJECT_CHARGE + content);
        self.nodes.remove(object);
    }

    /// What CREATE does with a name that exists.
    fn take_existing(
        &self,
        directory: &State,
        object: Object,
        how: Option<Creation>,
        to: &SetAttributes,
    ) -> Result<Created, Status3> {
        let node = self.nodes.get(object)?;
        let mut state = node.write();
        let is_file = state.kind() == FileKind::Regular;
        match how {
            Some(Creation::Unchecked) if is_file => {
                let only_size = SetAttributes { size: to.size, ..SetAttributes::default() };
                if to.size.is_some() {
                    state.set(&only_size, &self.budget)?;
                }
            }
            Some(Creation::Exclusive(v)) if is_file && state.exclusive == Some(v) => {}
            _ => return Err(Status3::EXIST),
        }
        let after = Some(directory.attributes());
        let directory = WccData { before: None, after };
        Ok(Created { object, attributes: state.attributes(), directory })
    }

    fn make(
        &self,
        parent: Object,
        new: New<'_>,
        to: &SetAttributes,
        caller: Caller,
    ) -> Result<(Object, FileAttributes), Status3> {
        let (body, default_mode) = match new {
            New::File(_) => (Body::File(Data::default()), None),
            New::Directory => (Body::Directory(Entries::new(parent)), Some(DIRECTORY_MODE)),
            New::Link(text) => (Body::Link(text.into()), Some(LINK_MODE)),
            New::Special(kind, device) => (Body::Special(kind, device), None),
        };
        let mut state = State::new(0, body, caller);
        if let New::File(Creation::Exclusive(verifier)) = new {
            state.exclusive = Some(verifier);
        }
        let size = to.size.filter(|_| matches!(new, New::File(_)));
        state.set(&SetAttributes { mode: to.mode.or(default_mode), size, ..*to }, &self.budget)?;
        let mut attributes = state.attributes();
        let object = self.nodes.add(|object| {
            state.file_id = object.id;
            state
        });
        attributes.fileid = object.id;
        Ok((object, attributes))
    }

    /// Whether `directory` is `above` or lies below it. Only with the namespace locked.
    fn is_within(&self, directory: Object, above: Object) -> Result<bool, Status3> {
        let mut at = directory;
        loop {
            if at == above {
                return Ok(true);
            }
            if at == self.root {
                return Ok(false);
            }
            at = self.nodes.get(at)?.read().entries()?.parent;
        }
    }

    /// Makes room at the target of a rename.
    fn replace(&self, target: &mut State, name: &[u8], moved: EntryIs) -> Result<(), Status3> {
        let Some(object) = target.entries()?.find(name) else { return Ok(()) };
        let node = self.nodes.get(object)?;
        let mut old = node.write();
        match (moved, &old.body) {
            (EntryIs::Directory, Body::Directory(entries)) if entries.is_empty() => {}
            (EntryIs::Directory, Body::Directory(_)) => return Err(Status3::NOTEMPTY),
            (EntryIs::Directory, _) | (EntryIs::Other, Body::Directory(_)) => {
                return Err(Status3::EXIST);
            }
            (EntryIs::Other, _) => {}
        }
        target.entries_mut()?.remove(name, moved);
        self.unlink(name, object, &mut old);
        Ok(())
    }
}

/// Whether `name` can be that of an entry: one component that goes nowhere else.
pub(super) fn plain_name(name: &[u8]) -> Result<(), Status3> {
    match name {
        b"" | b"." | b".." => Err(Status3::INVAL),
        _ if name.len() > NAME_BYTES_MAX => Err(Status3::NAMETOOLONG),
        _ if name.iter().any(|byte| matches!(byte, b'/' | 0)) => Err(Status3::ACCES),
        _ => Ok(()),
    }
}

/// The same for names that are to be made: `.` and `..` exist everywhere.
fn new_name(name: &[u8]) -> Result<(), Status3> {
    match name {
        b"." | b".." => Err(Status3::EXIST),
        _ => plain_name(name),
    }
}
