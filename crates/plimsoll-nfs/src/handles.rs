//! A server's handles of the objects in the file set.

use std::fmt;

use super::op::{Accessed, DirNo, LinkNo};
use super::wire::{v2, v3, v4};

/// Longest handle, that of NFSv4.1 (RFC 8881 §3.1); NFSv3's have up to 64 bytes, NFSv2's 32.
pub const HANDLE_BYTES_MAX: usize = v4::HANDLE_BYTES_MAX as usize;

/// A file handle that outlives the reply it came in: no allocation, cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnedHandle {
    bytes_used: u8,
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl OwnedHandle {
    /// `None` when longer than any handle may be.
    #[inline]
    pub fn new(handle: &[u8]) -> Option<Self> {
        let mut bytes = [0; HANDLE_BYTES_MAX];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(Self { bytes_used: u8::try_from(handle.len()).ok()?, bytes })
    }

    /// A handle that names nothing.
    pub(crate) const NONE: Self = Self { bytes_used: 0, bytes: [0; HANDLE_BYTES_MAX] };

    /// A handle that names nothing: as long, with every bit inverted.
    pub(crate) fn inverted(mut self) -> Self {
        self.bytes.iter_mut().for_each(|byte| *byte = !*byte);
        self
    }

    /// With the length of NFSv2's handles.
    #[inline]
    pub(crate) fn padded(&self) -> [u8; v2::HANDLE_BYTES] {
        *self.bytes.first_chunk().expect("NFSv2's handles are the shorter ones")
    }

    /// As the server gave it.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.bytes_used)).unwrap_or_default()
    }
}

/// A handle that names nothing.
impl Default for OwnedHandle {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<v2::Handle2> for OwnedHandle {
    #[inline]
    fn from(handle: v2::Handle2) -> Self {
        Self::new(&handle.0).expect("NFSv2's handles are the shorter ones")
    }
}

impl From<HandleBytes<'_>> for OwnedHandle {
    #[inline]
    fn from(handle: HandleBytes<'_>) -> Self {
        Self::new(handle.0).expect("no longer one is decoded")
    }
}

impl fmt::Debug for OwnedHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnedHandle(")?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// A handle as it lies in a message, no longer than the version permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandleBytes<'m>(pub(crate) &'m [u8]);

impl<'m> From<v3::Handle<'m>> for HandleBytes<'m> {
    #[inline]
    fn from(handle: v3::Handle<'m>) -> Self {
        Self(handle.bytes())
    }
}

impl<'m> From<v4::Handle4<'m>> for HandleBytes<'m> {
    #[inline]
    fn from(handle: v4::Handle4<'m>) -> Self {
        Self(handle.0)
    }
}

/// Handles of a prepared file set on one server, by the numbers of [`super::fileset`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handles {
    /// The set's own directory; FSSTAT asks about it.
    pub root: OwnedHandle,
    /// By [`DirNo`].
    pub dirs: Vec<OwnedHandle>,
    /// By [`Accessed`].
    pub files: Vec<OwnedHandle>,
    /// By [`LinkNo`].
    pub links: Vec<OwnedHandle>,
}

impl Handles {
    /// Those of a directory with nothing in it.
    pub(crate) fn below(root: OwnedHandle) -> Self {
        Self { root, dirs: Vec::new(), files: Vec::new(), links: Vec::new() }
    }

    /// Handle of an accessed file, when the set holds it.
    pub fn file(&self, file: Accessed) -> Option<&OwnedHandle> {
        self.files.get(index(file.0))
    }

    /// Handle of a directory, when the set holds it.
    pub fn dir(&self, dir: DirNo) -> Option<&OwnedHandle> {
        self.dirs.get(index(dir.0))
    }

    /// Handle of a symbolic link, when the set holds it.
    pub fn link(&self, link: LinkNo) -> Option<&OwnedHandle> {
        self.links.get(index(link.0))
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_as_the_server_gave_it_and_none_is_too_long() {
        for length in [0, 1, 32, HANDLE_BYTES_MAX] {
            let given: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            assert_eq!(OwnedHandle::new(&given).unwrap().as_bytes(), given);
        }
        assert_eq!(OwnedHandle::new(&[0; HANDLE_BYTES_MAX + 1]), None);
        assert_eq!(format!("{:?}", OwnedHandle::new(&[1, 255]).unwrap()), "OwnedHandle(01ff)");
    }
}
