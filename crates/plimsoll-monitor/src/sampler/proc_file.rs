//! A file below `/proc` that stays open and is read again from its start.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::frame::{Frame, key};
use crate::root::Root;

/// First size of a buffer; most files fit.
const BUFFER_BYTES: usize = 16 * 1024;
/// No file that is sampled comes near this; one that does is cut.
const BUFFER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Saves the path lookup of an open at every sample, and never follows a reused process id.
#[derive(Debug)]
pub(crate) struct ProcFile(Place);

#[derive(Debug)]
enum Place {
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
            Some(frame) => Place::Frame(frame.clone(), key(file)),
            None => File::open(root.path(file)).map_or(Place::Absent, Place::File),
        })
    }

    /// A file that holds no descriptor between reads.
    pub(crate) fn reopened(root: &Root, file: impl AsRef<Path>) -> Self {
        Self(match root.frame() {
            Some(frame) => Place::Frame(frame.clone(), key(file)),
            None => Place::Path(root.path(file)),
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
            Place::Absent => return None,
            Place::File(file) => file,
            Place::Path(path) => {
                opened = File::open(path).ok()?;
                &opened
            }
            Place::Frame(frame, path) => {
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
    fn a_file_is_read_anew_each_time_and_may_outgrow_the_buffer() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = Root::at(directory.path());
        let path = root.path("proc");
        std::fs::write(&path, "one").unwrap();
        let file = ProcFile::open(&root, "proc");
        let mut buffer = Vec::new();
        assert_eq!(file.read(&mut buffer).unwrap(), "one");
        let long = "x".repeat(3 * BUFFER_BYTES + 1);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), long.as_str());
        std::fs::write(&path, "").unwrap();
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
