//! Where `proc` and `sys` lie: below `/` on this host, below any directory in a test, and in a
//! [`Frame`] that a source fills where the host is another one; and files that are read again and
//! again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where to look for `proc`, `sys` and `etc`.
#[derive(Clone, Debug)]
pub struct Root(Backing);

#[derive(Clone, Debug)]
enum Backing {
    Directory(PathBuf),
    Frame(Frame),
}

impl Default for Root {
    /// The host this process runs on.
    fn default() -> Self {
        Self::in_directory("/")
    }
}

impl Root {
    /// A machine laid out below a directory.
    pub fn in_directory(path: impl Into<PathBuf>) -> Self {
        Self(Backing::Directory(path.into()))
    }

    /// Another host, from its last texts.
    pub(crate) const fn of_frame(frame: Frame) -> Self {
        Self(Backing::Frame(frame))
    }

    /// The texts of another host; `None` where files are read.
    pub(crate) const fn frame(&self) -> Option<&Frame> {
        match &self.0 {
            Backing::Directory(_) => None,
            Backing::Frame(frame) => Some(frame),
        }
    }

    /// It is the host this process runs on, which offers more than texts.
    pub(crate) fn is_this_host(&self) -> bool {
        matches!(&self.0, Backing::Directory(directory) if directory == Path::new("/"))
    }

    /// Path of a file below the root; a leading slash does not lead out of it. No file of this
    /// host has the path of one in a frame.
    pub fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        let file = file.as_ref();
        let directory = match &self.0 {
            Backing::Directory(directory) => directory,
            // The kernel takes no path with a zero byte.
            Backing::Frame(_) => Path::new("\0"),
        };
        directory.join(file.strip_prefix("/").unwrap_or(file))
    }

    /// Content of a file; bytes that are not UTF-8 are replaced.
    pub(crate) fn read(&self, file: impl AsRef<Path>) -> Option<String> {
        if let Some(frame) = self.frame() {
            return frame.text(file);
        }
        let bytes = fs::read(self.path(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Content of a file of one line, trimmed; `None` when it is empty.
    pub(crate) fn line(&self, file: impl AsRef<Path>) -> Option<String> {
        let text = self.read(file)?;
        let line = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// A file that contains one number.
    pub(crate) fn number(&self, file: impl AsRef<Path>) -> Option<u64> {
        self.line(file)?.parse().ok()
    }

    /// Names in a directory, sorted; empty when there is none.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        if let Some(frame) = self.frame() {
            return frame.names(directory);
        }
        let Ok(entries) = fs::read_dir(self.path(directory)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Last part of a symbolic link's destination (`driver -> ../../virtio_net`). Of links, a frame
    /// has those of block devices (`sys/dev/block/254:0`), by what its `diskstats` call them.
    pub(crate) fn link_name(&self, link: impl AsRef<Path>) -> Option<String> {
        if let Some(frame) = self.frame() {
            let numbers = link.as_ref().strip_prefix("sys/dev/block").ok()?.to_str()?;
            let device_number = numbers.split_once(':')?;
            let disks = frame.text("proc/diskstats")?;
            let mut lines = disks.lines().map(str::split_ascii_whitespace);
            return lines.find_map(|mut tokens| {
                let device = (tokens.next()?, tokens.next()?);
                (device == device_number).then(|| tokens.next().map(str::to_owned))?
            });
        }
        Some(fs::read_link(self.path(link)).ok()?.file_name()?.to_string_lossy().into_owned())
    }

    /// Is there such a file or directory.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        if let Some(frame) = self.frame() {
            return frame.has(file);
        }
        self.path(file).exists()
    }
}

/// Path below the root, without a leading slash, and the text of that file.
pub(crate) type Texts = BTreeMap<String, String>;

/// One set of texts, all of one instant, shared between the source that replaces it and the
/// samplers that read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame(Arc<Mutex<Texts>>);

impl Frame {
    /// Takes a whole new set; texts that it lacks are gone.
    pub(crate) fn replace(&self, texts: Texts) {
        let texts = texts.into_iter().map(|(path, text)| (key(path), text)).collect();
        *self.texts() = texts;
    }

    /// The text of a file.
    pub(crate) fn text(&self, file: impl AsRef<Path>) -> Option<String> {
        self.texts().get(&key(file)).cloned()
    }

    /// Copies the text of a file to the front of `buffer`, which grows if need be; its length.
    pub(crate) fn copy(&self, file: &str, buffer: &mut Vec<u8>) -> Option<usize> {
        let texts = self.texts();
        let text = texts.get(file)?.as_bytes();
        if buffer.len() < text.len() {
            buffer.resize(text.len(), 0);
        }
        buffer[..text.len()].copy_from_slice(text);
        Some(text.len())
    }

    /// Names in a directory, sorted.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        let prefix = match key(directory) {
            root if root.is_empty() => root,
            directory => format!("{directory}/"),
        };
        let texts = self.texts();
        let below = texts.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let name = |path: &str| path[prefix.len()..].split('/').next().unwrap_or("").to_owned();
        let mut names: Vec<String> = below.map(|(path, _)| name(path)).collect();
        // Paths are sorted by bytes, and `a-b` comes before `a/b`.
        names.sort();
        names.dedup();
        names
    }

    /// Is there such a file or directory.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        let file = key(file);
        if self.texts().contains_key(&file) {
            return true;
        }
        let prefix = format!("{file}/");
        let texts = self.texts();
        texts.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix))
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        // A whole set is put in at once: it is good even if a reader has panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A path as the map has it.
pub(crate) fn key(path: impl AsRef<Path>) -> String {
    let parts = path.as_ref().components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// First size of a buffer; most files fit.
const BUFFER_BYTES: usize = 16 * 1024;
/// No file that is sampled comes near this; one that does is cut.
const BUFFER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A file below `/proc` that stays open and is read again from its start. Saves the path lookup of
/// an open at every sample, and never follows a reused process id.
#[derive(Debug)]
pub(crate) struct ProcFile(FileBacking);

#[derive(Debug)]
enum FileBacking {
    Absent,
    File(File),
    /// Opened at each read.
    Path(PathBuf),
    /// A text of another host, by its path: each frame has a new one.
    Frame(Frame, String),
}

impl ProcFile {
    /// A file that cannot be opened reads as absent for good; one of a frame may come later.
    pub(crate) fn open(root: &Root, file: impl AsRef<Path>) -> Self {
        Self(match root.frame() {
            Some(frame) => FileBacking::Frame(frame.clone(), key(file)),
            None => File::open(root.path(file)).map_or(FileBacking::Absent, FileBacking::File),
        })
    }

    /// A file without an open descriptor between reads.
    pub(crate) fn reopened(root: &Root, file: impl AsRef<Path>) -> Self {
        Self(match root.frame() {
            Some(frame) => FileBacking::Frame(frame.clone(), key(file)),
            None => FileBacking::Path(root.path(file)),
        })
    }

    /// The whole text as of now; `None` when there is no such file or its process is gone.
    pub(crate) fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<Cow<'a, str>> {
        self.read_pieces(buffer, usize::MAX)
    }

    /// The text of a file that is a line: the kernel hands it over in one piece.
    pub(crate) fn read_line<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<Cow<'a, str>> {
        self.read_pieces(buffer, 1)
    }

    fn read_pieces<'a>(&self, buffer: &'a mut Vec<u8>, mut pieces: usize) -> Option<Cow<'a, str>> {
        let opened;
        let file = match &self.0 {
            FileBacking::Absent => return None,
            FileBacking::File(file) => file,
            FileBacking::Path(path) => {
                opened = File::open(path).ok()?;
                &opened
            }
            FileBacking::Frame(frame, path) => {
                let length = frame.copy(path, buffer)?;
                return Some(String::from_utf8_lossy(&buffer[..length]));
            }
        };
        if buffer.is_empty() {
            buffer.resize(BUFFER_BYTES, 0);
        }
        let mut length = 0;
        while pieces > 0 {
            if length == buffer.len() {
                if length >= BUFFER_BYTES_MAX {
                    break;
                }
                buffer.resize(length * 2, 0);
            }
            match file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(n) => {
                    length += n;
                    pieces -= 1;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(String::from_utf8_lossy(&buffer[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_like_a_directory_and_never_falls_back_on_this_host() {
        let frame = Frame::default();
        let texts = [
            ("proc/stat", "cpu 1\n"),
            ("/sys/block/vda/size", "7\n"),
            ("proc/diskstats", " 254  0 vda 1\n 254 1 vda1 1\n8\n"),
        ];
        frame.replace(Texts::from_iter(texts.map(|(path, text)| (path.into(), text.into()))));
        let root = Root::of_frame(frame.clone());
        assert_eq!(root.read("/proc/stat").as_deref(), Some("cpu 1\n"));
        assert_eq!(root.line("proc/stat").as_deref(), Some("cpu 1"));
        assert_eq!(root.number("sys/block/vda/size"), Some(7));
        assert_eq!(root.names("sys/block"), ["vda"]);
        assert_eq!(root.names("/"), ["proc", "sys"]);
        assert!(root.has("sys/block/vda") && root.has("proc/stat") && !root.has("sys/bl"));
        assert_eq!(root.link_name("sys/dev/block/254:1").as_deref(), Some("vda1"));
        assert_eq!(root.link_name("sys/dev/block/8:0"), None);
        assert_eq!(root.link_name("proc/1/ns/net"), None);
        assert_eq!(root.read("proc/self/stat"), None, "there is one on this host");
        assert!(!root.path("/proc").exists() && !root.path("proc/self/stat").exists());
        frame.replace(Texts::new());
        assert_eq!(root.read("proc/stat"), None, "the set before is gone as a whole");
    }

    #[test]
    fn a_file_is_read_anew_each_time_and_may_outgrow_the_buffer() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Root::in_directory(directory.path());
        let path = root.path("proc");
        fs::write(&path, "one").unwrap();
        let file = ProcFile::open(&root, "proc");
        let mut buffer = Vec::new();
        assert_eq!(file.read(&mut buffer).unwrap(), "one");
        let long = "x".repeat(3 * BUFFER_BYTES + 1);
        fs::write(&path, &long).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), long.as_str());
        fs::write(&path, "").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), "");
        assert_eq!(ProcFile::open(&root, "missing").read(&mut buffer), None);
    }

    #[test]
    fn a_file_of_a_frame_is_that_of_the_last_frame() {
        let frame = Frame::default();
        let root = Root::of_frame(frame.clone());
        let file = ProcFile::open(&root, "/proc/stat");
        let mut buffer = Vec::new();
        assert_eq!(file.read(&mut buffer), None);
        for text in ["one and more", "two", ""] {
            frame.replace([("proc/stat".to_owned(), text.to_owned())].into());
            assert_eq!(file.read(&mut buffer).unwrap(), text);
        }
        frame.replace([].into());
        assert_eq!(file.read(&mut buffer), None);
    }
}
