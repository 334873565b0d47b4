//! What the reference web server answers with.
//!
//! It has access to the files below a directory, and nothing else. The kernel resolves every path
//! atomically and refuses one that leaves the directory, so a link planted or exchanged meanwhile
//! leads nowhere.

use std::convert::Infallible;
use std::fs::{File, Metadata};
use std::future::Future;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, SERVER};
use hyper::{Method, Request, Response, StatusCode};
use plimsoll_protocol::marker::Marker as _;
use plimsoll_servers::ServerError;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower::Service;
use tower_http::services::ServeDir;
use tower_http::services::fs::{self, DefaultServeDirFallback, ServeFileSystemResponseBody};

use super::journey::JourneySite;
use super::padded::Padded;
use crate::fileset::{FileId, FileSet, MARKER};
use crate::replay::Replay;

/// Largest body of `/bytes/N`.
pub const BYTES_MAX: usize = 4 << 20;

/// Gives the body of a path (with its leading slash, as received), if there is one. Called for
/// every request, so it must not block.
pub type FindBody = dyn Fn(&str) -> Option<Bytes> + Send + Sync;

/// What the reference web server answers with.
#[derive(Clone)]
pub enum WebContent {
    /// Bodies from memory; also `/bytes/N`, a body of N bytes up to [`BYTES_MAX`].
    Memory(Arc<FindBody>),
    /// The regular files below a directory; links are followed as long as they stay in it.
    Directory(PathBuf),
    /// The pages of journeys.
    Journey(Arc<JourneySite>),
    /// What a server had answered, by its log.
    Replay(Arc<Replay>),
}

impl WebContent {
    /// Nothing but `/bytes/N`.
    pub fn only_bytes() -> Self {
        Self::Memory(Arc::new(|_| None))
    }

    /// The method's file set with its description, and `/bytes/N`. Bodies are not copied.
    pub fn file_set(set: FileSet) -> Self {
        let description = Bytes::from(set.marker().to_json());
        Self::Memory(Arc::new(move |path| match set.resolve(path) {
            Some(id) => Some(Bytes::from_owner(OneFile { set: set.clone(), id })),
            None if path.strip_prefix('/') == Some(MARKER) => Some(description.clone()),
            None => None,
        }))
    }
}

/// Keeps the file set alive for as long as a reply refers to it.
struct OneFile {
    set: FileSet,
    id: FileId,
}

impl AsRef<[u8]> for OneFile {
    fn as_ref(&self) -> &[u8] {
        self.set.content(self.id)
    }
}

impl fmt::Debug for WebContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(_) => f.write_str("Memory"),
            Self::Directory(root) => f.debug_tuple("Directory").field(root).finish(),
            Self::Journey(site) => f.debug_tuple("Journey").field(site).finish(),
            Self::Replay(_) => f.write_str("Replay"),
        }
    }
}

pub(super) type Body = Either<Padded, ServeFileSystemResponseBody>;

const SOFTWARE: HeaderValue =
    HeaderValue::from_static(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));

/// [`WebContent`] made ready to answer.
pub(super) enum Answers {
    Memory { find: Arc<FindBody>, pattern: Bytes },
    Directory(ServeDir<DefaultServeDirFallback, ConfinedDirectory>),
    Journey(Arc<JourneySite>),
    Replay(Arc<Replay>),
}

impl Answers {
    pub(super) fn new(content: &WebContent) -> Result<Self, ServerError> {
        match content {
            WebContent::Memory(find) => {
                Ok(Self::Memory { find: Arc::clone(find), pattern: pattern() })
            }
            WebContent::Directory(root) => {
                // Opening it now turns a wrong path into a message instead of a stream of 404s.
                let directory = ConfinedDirectory::open(root)
                    .map_err(|source| ServerError::Root { path: root.clone(), source })?;
                Ok(Self::Directory(ServeDir::with_backend("", directory)))
            }
            WebContent::Journey(site) => Ok(Self::Journey(Arc::clone(site))),
            WebContent::Replay(replay) => Ok(Self::Replay(Arc::clone(replay))),
        }
    }

    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let mut response = match self {
            Self::Directory(files) => files.clone().call(request).await?.map(Either::Right),
            Self::Journey(site) => {
                let is_head = request.method() == Method::HEAD;
                let response = site.answer(request).await.map(Either::Left);
                if is_head { without_body(response) } else { response }
            }
            Self::Replay(replay) => {
                let response = recorded(&request, replay);
                let is_head = request.method() == Method::HEAD;
                read_to_its_end(request.into_body()).await;
                if is_head { without_body(response) } else { response }
            }
            Self::Memory { find, pattern } => {
                let response = from_memory(&request, &**find, pattern);
                let is_head = request.method() == Method::HEAD;
                read_to_its_end(request.into_body()).await;
                if is_head { without_body(response) } else { response }
            }
        };
        response.headers_mut().insert(SERVER, SOFTWARE);
        Ok(response)
    }
}

fn from_memory(request: &Request<Incoming>, find: &FindBody, pattern: &Bytes) -> Response<Body> {
    let path = request.uri().path();
    if path == "/" {
        return text(StatusCode::OK, ABOUT);
    }
    match find(path).or_else(|| bytes_of(path, pattern)) {
        Some(body) => {
            let mut response = Response::new(Either::Left(body.into()));
            let kind = if path.ends_with(".json") { "application/json" } else { OCTETS };
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            response
        }
        None => text(StatusCode::NOT_FOUND, "no such file\n"),
    }
}

/// The reply that a log has; its size alone is that of the original.
fn recorded(request: &Request<Incoming>, replay: &Replay) -> Response<Body> {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let Some(its) = replay.find(request.method().as_str(), target) else {
        return text(StatusCode::NOT_FOUND, "no line of the replay has this path\n");
    };
    let status = StatusCode::from_u16(its.next_status()).unwrap_or_default();
    let bytes = if status == StatusCode::NO_CONTENT { 0 } else { its.bytes };
    let mut response = Response::new(Either::Left(Padded::to_size(Bytes::new(), bytes)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OCTETS));
    response
}

/// The reply to HEAD. Over HTTP/2 nothing removes a body from it.
fn without_body(response: Response<Body>) -> Response<Body> {
    let length = response.body().size_hint().exact().map(HeaderValue::from);
    let mut response = response.map(|_| Either::Left(Padded::default()));
    response.headers_mut().extend(length.map(|length| (CONTENT_LENGTH, length)));
    response
}

/// The text at `/`.
const ABOUT: &str = "This is the reference web server of Plimsoll.\n\n\
    /bytes/N is a body of N bytes, up to 4 MiB, to a request of any method. To measure it:\n\n  \
    plimsoll run web-url http://HOST:PORT/bytes/1024 --clients 64 --for 10s\n  \
    plimsoll run web-url http://HOST:PORT/bytes/1024 --rate 2000 --for 10s\n  \
    plimsoll run web-url http://HOST:PORT/bytes/10 -d 'id={{uuid}}' --clients 8\n";

/// Reads and discards the body of a request. Most have none.
async fn read_to_its_end(mut body: Incoming) {
    while !body.is_end_stream() {
        match body.frame().await {
            Some(Ok(_)) => {}
            // The connection is gone, and with it the reply.
            Some(Err(_)) | None => return,
        }
    }
}

const OCTETS: &str = "application/octet-stream";

fn text(status: StatusCode, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Either::Left(Bytes::from_static(body.as_bytes()).into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

/// `/bytes/N`.
fn bytes_of(path: &str, pattern: &Bytes) -> Option<Bytes> {
    let count: usize = path.strip_prefix("/bytes/")?.parse().ok()?;
    (count <= pattern.len()).then(|| pattern.slice(..count))
}

fn pattern() -> Bytes {
    const LINE: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n";
    LINE.iter().copied().cycle().take(BYTES_MAX).collect::<Vec<u8>>().into()
}

/// The kernel gives up with EAGAIN when something in the path was renamed meanwhile.
const TRIES_MAX: u32 = 8;

/// A directory whose links are followed only as far as they stay in it.
#[derive(Clone, Debug)]
pub(super) struct ConfinedDirectory {
    root: Arc<OwnedFd>,
}

impl ConfinedDirectory {
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: Arc::new(open(root, flags, Mode::empty())?) })
    }

    fn look_up(&self, path: &Path, flags: OFlags) -> io::Result<(File, Metadata)> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        let descriptor = loop {
            match openat2(&self.root, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < TRIES_MAX => tries += 1,
                // Leads outside, or round in circles; sockets and devices without a driver.
                Err(Errno::XDEV | Errno::LOOP | Errno::NXIO) => {
                    return Err(io::ErrorKind::NotFound.into());
                }
                opened => break opened?,
            }
        };
        let file = File::from(descriptor);
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

/// Runs a call that may wait for the disk on a thread where it delays nothing else.
fn aside<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Answer<'static, T> {
    Box::pin(async move { tokio::task::spawn_blocking(call).await.map_err(io::Error::other)? })
}

impl fs::Backend for ConfinedDirectory {
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
