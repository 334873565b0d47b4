//! Removing a directory with all below it: list, remove what is listed, list again, and when
//! nothing is listed any more remove the directory.

use super::super::wire::create::attributes;
use super::super::wire::status;

/// Commands of one removal; more is no desktop's work directory, or a server that invents entries.
pub(super) const TASKS_MAX: u32 = 200_000;
/// Directories below each other.
const DEPTH_MAX: usize = 64;
/// Path in bytes of UTF-8.
const PATH_BYTES_MAX: usize = 8_192;

/// A removal under way.
#[derive(Debug)]
pub(super) struct Deltree {
    /// The directory that is being removed and those it lies in, as lengths of `path`.
    depth: Vec<usize>,
    path: String,
    /// Names in the directory, of the listing that came last.
    entries: Vec<Entry>,
    task: Task,
    tasks: u32,
}

#[derive(Debug)]
struct Entry {
    name: String,
    kind: EntryKind,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file, or what merely points somewhere: entering it would lead out of the directory.
    File,
    /// A directory.
    Directory,
}

impl EntryKind {
    /// From a file's attributes.
    pub(crate) fn from_attributes(attributes: u32) -> Self {
        let is = |attribute| attributes & attribute != 0;
        match is(attributes::DIRECTORY) && !is(attributes::REPARSE_POINT) {
            true => Self::Directory,
            false => Self::File,
        }
    }
}

/// An entry's name, checked; `None`: `.` or `..`. A removed name must be in the directory that was
/// listed, and a name with a separator would lead out of it.
pub(crate) fn name_of_entry(name: &str) -> Result<Option<&str>, BadName> {
    match name {
        "." | ".." => Ok(None),
        "" => Err(BadName),
        name if name.contains(['\\', '/', '\0']) => Err(BadName),
        name => Ok(Some(name)),
    }
}

/// What is requested of the server at [`Deltree::path`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The first part of a listing.
    List,
    /// To remove it.
    Remove(EntryKind),
}

/// What follows from a task's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next task.
    Go,
    /// The whole has this status.
    Done(u32),
}

/// A name that no directory can have, from a server that aims at another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadName;

impl Deltree {
    /// Removes `path`.
    pub(super) fn new(path: &str) -> Self {
        Self {
            depth: vec![path.len()],
            path: path.to_owned(),
            entries: Vec::new(),
            task: Task::List,
            tasks: 1,
        }
    }

    /// What is to be done now.
    pub(super) fn task(&self) -> Task {
        self.task
    }

    /// What the task is about.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The listing has this entry.
    pub(super) fn add_entry(&mut self, name: &str, kind: EntryKind) -> Result<(), BadName> {
        if let Some(name) = name_of_entry(name)? {
            self.entries.push(Entry { name: name.to_owned(), kind });
        }
        Ok(())
    }

    /// The task ended with `status`.
    pub(super) fn ended(&mut self, status: u32) -> Next {
        self.tasks += 1;
        let is_gone = matches!(
            status,
            status::OBJECT_NAME_NOT_FOUND | status::OBJECT_PATH_NOT_FOUND | status::NO_SUCH_FILE
        );
        match self.task {
            Task::List if status == status::SUCCESS && !self.entries.is_empty() => self.go_on(),
            Task::List
                if matches!(status, status::SUCCESS | status::NO_MORE_FILES)
                    || status == status::NO_SUCH_FILE =>
            {
                self.remove_directory()
            }
            Task::List | Task::Remove(EntryKind::Directory) if is_gone => self.leave(),
            Task::Remove(EntryKind::Directory) if status == status::SUCCESS => self.leave(),
            Task::Remove(EntryKind::File) if is_gone || status == status::SUCCESS => {
                self.back_to_directory();
                self.go_on()
            }
            Task::List | Task::Remove(_) => Next::Done(status),
        }
    }

    /// The next entry, or another listing.
    fn go_on(&mut self) -> Next {
        if self.tasks > TASKS_MAX {
            return Next::Done(status::INSUFFICIENT_RESOURCES);
        }
        let Some(Entry { name, kind }) = self.entries.pop() else {
            self.task = Task::List;
            return Next::Go;
        };
        self.path.push('\\');
        self.path.push_str(&name);
        if self.path.len() > PATH_BYTES_MAX || self.depth.len() >= DEPTH_MAX {
            return Next::Done(status::NAME_TOO_LONG);
        }
        match kind {
            EntryKind::File => self.task = Task::Remove(EntryKind::File),
            EntryKind::Directory => {
                // What else is here is listed again afterwards.
                self.entries.clear();
                self.depth.push(self.path.len());
                self.task = Task::List;
            }
        }
        Next::Go
    }

    fn remove_directory(&mut self) -> Next {
        self.task = Task::Remove(EntryKind::Directory);
        Next::Go
    }

    /// The directory is gone.
    fn leave(&mut self) -> Next {
        self.depth.pop();
        if self.depth.is_empty() {
            return Next::Done(status::SUCCESS);
        }
        self.back_to_directory();
        self.go_on()
    }

    fn back_to_directory(&mut self) {
        self.path.truncate(self.depth.last().copied().unwrap_or(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Removes `top` of a tree given by its paths; directories end in a backslash.
    fn remove(tree: &mut Vec<&str>, top: &str, at_most: usize) -> (u32, usize) {
        let mut deltree = Deltree::new(top);
        for tasks in 1.. {
            assert!(tasks < 1_000, "it never ends");
            let path = deltree.path().to_owned();
            let status = match deltree.task() {
                Task::List => {
                    let inside = format!("{path}\\");
                    for name in [".", ".."] {
                        deltree.add_entry(name, EntryKind::Directory).unwrap();
                    }
                    let names = tree.iter().filter_map(|entry| entry.strip_prefix(&*inside));
                    let names = names.filter(|name| {
                        !name.is_empty() && !name.trim_end_matches('\\').contains('\\')
                    });
                    for name in names.take(at_most) {
                        let kind = match name.ends_with('\\') {
                            true => EntryKind::Directory,
                            false => EntryKind::File,
                        };
                        deltree.add_entry(name.trim_end_matches('\\'), kind).unwrap();
                    }
                    match tree.contains(&&*inside) {
                        true => status::SUCCESS,
                        false => status::OBJECT_NAME_NOT_FOUND,
                    }
                }
                Task::Remove(kind) => {
                    let name = match kind {
                        EntryKind::File => path,
                        EntryKind::Directory => path + "\\",
                    };
                    let before = tree.len();
                    let is_empty = tree.iter().filter(|entry| entry.starts_with(&name)).count();
                    assert_eq!(is_empty, 1, "{name} is empty when it is removed");
                    tree.retain(|entry| *entry != name);
                    assert_eq!(tree.len(), before - 1);
                    status::SUCCESS
                }
            };
            if let Next::Done(status) = deltree.ended(status) {
                return (status, tasks);
            }
        }
        unreachable!("the loop has no end")
    }

    #[test]
    fn a_tree_goes_leaves_first_however_short_the_listings_are() {
        for at_most in 1..5 {
            let mut tree =
                vec!["a\\", "a\\b\\", "a\\b\\x", "a\\b\\y", "a\\c\\", "a\\c\\d\\", "a\\z", "o\\"];
            let (status, _) = remove(&mut tree, "a", at_most);
            assert_eq!((status, &tree[..]), (status::SUCCESS, &["o\\"][..]));
        }
    }

    #[test]
    fn what_is_not_there_needs_no_removal() {
        assert_eq!(remove(&mut vec!["o\\"], "a", 9), (status::SUCCESS, 1));
    }

    #[test]
    fn a_refusal_ends_it_and_bad_names_are_refused() {
        let mut deltree = Deltree::new("a");
        assert_eq!(deltree.ended(status::ACCESS_DENIED), Next::Done(status::ACCESS_DENIED));
        for name in ["", "..\\x", "x\\y", "/etc", "a\0"] {
            assert_eq!(deltree.add_entry(name, EntryKind::File), Err(BadName));
        }
    }

    #[test]
    fn a_server_that_invents_entries_is_not_followed_for_ever() {
        let mut deltree = Deltree::new("a");
        for _ in 0..=TASKS_MAX {
            if deltree.task() == Task::List {
                deltree.add_entry("x", EntryKind::File).unwrap();
            }
            if let Next::Done(status) = deltree.ended(status::SUCCESS) {
                return assert_eq!(status, status::INSUFFICIENT_RESOURCES);
            }
        }
        panic!("it goes on");
    }
}
