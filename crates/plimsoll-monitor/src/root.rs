//! Where `proc` and `sys` lie: below `/` on this host, below any directory in a test, and in a
//! frame that a source fills where the host is another one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::frame::Frame;

/// Where to look for `proc`, `sys` and `etc`.
#[derive(Clone, Debug)]
pub struct Root(Place);

#[derive(Clone, Debug)]
enum Place {
    Directory(PathBuf),
    Frame(Frame),
}

impl Default for Root {
    /// The host this process runs on.
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// A machine laid out below a directory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(Place::Directory(path.into()))
    }

    /// Another host, as the last texts of it say.
    pub(crate) const fn of_frame(frame: Frame) -> Self {
        Self(Place::Frame(frame))
    }

    /// The texts of another host; `None` where files are read.
    pub(crate) const fn frame(&self) -> Option<&Frame> {
        match &self.0 {
            Place::Directory(_) => None,
            Place::Frame(frame) => Some(frame),
        }
    }

    /// It is the host this process runs on, which can be asked for more than texts.
    pub(crate) fn is_this_host(&self) -> bool {
        matches!(&self.0, Place::Directory(directory) if directory == Path::new("/"))
    }

    /// Path of a file below the root; a leading slash does not lead out of it. No file of this
    /// host has the path of one in a frame.
    pub fn path(&self, file: impl AsRef<Path>) -> PathBuf {
        let file = file.as_ref();
        let directory = match &self.0 {
            Place::Directory(directory) => directory,
            // The kernel takes no path with a zero byte.
            Place::Frame(_) => Path::new("\0"),
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

    /// A file that holds one number.
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
            let wanted = numbers.split_once(':')?;
            let disks = frame.text("proc/diskstats")?;
            let mut lines = disks.lines().map(str::split_ascii_whitespace);
            return lines.find_map(|mut words| {
                let device = (words.next()?, words.next()?);
                (device == wanted).then(|| words.next().map(str::to_owned))?
            });
        }
        let target = fs::read_link(self.path(link)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Is there such a file or directory.
    pub(crate) fn has(&self, file: impl AsRef<Path>) -> bool {
        if let Some(frame) = self.frame() {
            return frame.has(file);
        }
        self.path(file).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Texts;

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
}
