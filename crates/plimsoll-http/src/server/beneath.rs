//! The files below a directory, and nothing else. The kernel resolves every path at once and
//! refuses what leaves the directory, so a link planted or exchanged meanwhile leads nowhere.

use std::fs::{File, Metadata};
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs;

/// The kernel gives up with EAGAIN when something in the path was renamed meanwhile.
const TRIES_MAX: u32 = 8;

/// A directory whose links are followed only as far as they stay in it.
#[derive(Clone, Debug)]
pub(super) struct Beneath {
    root: Arc<OwnedFd>,
}

impl Beneath {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: Arc::new(open(root, flags, Mode::empty())?) })
    }

    fn look_up(&self, path: &Path, flags: OFlags) -> io::Result<(File, Metadata)> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        let found = loop {
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < TRIES_MAX => tries += 1,
                // Leads outside, or round in circles; sockets and devices without a driver.
                Err(Errno::XDEV | Errno::LOOP | Errno::NXIO) => {
                    return Err(io::ErrorKind::NotFound.into());
                }
                found => break found?,
            }
        };
        let file = File::from(found);
        let metadata = file.metadata()?;
        Ok((file, metadata))
    }

    fn file(&self, path: &Path) -> io::Result<OpenFile> {
        // Looked at first: opening a device may already do something.
        let (_, metadata) = self.look_up(path, OFlags::PATH)?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        // A named pipe put there meanwhile would make its reader wait.
        match self.look_up(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)? {
            (file, metadata) if metadata.is_file() => Ok(OpenFile(file.into())),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match self.look_up(path, OFlags::PATH)? {
            (_, metadata) if metadata.is_file() || metadata.is_dir() => Ok(metadata),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Runs a call that may wait for the disk where it holds nobody up.
fn aside<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Answer<'static, T> {
    Box::pin(async move { tokio::task::spawn_blocking(call).await.map_err(io::Error::other)? })
}

impl fs::Backend for Beneath {
    type File = OpenFile;
    type Metadata = Metadata;
    type OpenFuture = Answer<'static, OpenFile>;
    type MetadataFuture = Answer<'static, Metadata>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        let this = self.clone();
        aside(move || this.file(&path))
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        let this = self.clone();
        aside(move || this.metadata(&path))
    }
}

/// A regular file below the root.
pub(super) struct OpenFile(tokio::fs::File);

impl fs::File for OpenFile {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Answer<'a, Metadata>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        Box::pin(self.0.metadata())
    }
}

impl AsyncRead for OpenFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncSeek for OpenFile {
    fn start_seek(mut self: Pin<&mut Self>, to: io::SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.0).start_seek(to)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.0).poll_complete(context)
    }
}
