//! What the reference web server answers with.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::fileset::{FileId, FileSet, MARKER};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, SERVER};
use hyper::{Request, Response, StatusCode};
use plimsoll_protocol::marker::Marker as _;
use tower::Service;
use tower_http::services::ServeDir;
use tower_http::services::fs::{DefaultServeDirFallback, ServeFileSystemResponseBody};

use super::beneath::Beneath;
use plimsoll_servers::ServerError;

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
        }
    }
}

pub(super) type Body = Either<Full<Bytes>, ServeFileSystemResponseBody>;

const SOFTWARE: HeaderValue =
    HeaderValue::from_static(concat!("plimsoll/", env!("CARGO_PKG_VERSION")));

/// [`WebContent`] made ready to answer.
pub(super) enum Answers {
    Memory { find: Arc<FindBody>, pattern: Bytes },
    Directory(ServeDir<DefaultServeDirFallback, Beneath>),
}

impl Answers {
    pub(super) fn new(content: &WebContent) -> Result<Self, ServerError> {
        match content {
            WebContent::Memory(find) => {
                Ok(Self::Memory { find: Arc::clone(find), pattern: pattern() })
            }
            WebContent::Directory(root) => {
                // Opening it now turns a wrong path into a message instead of a stream of 404s.
                let beneath = Beneath::open(root)
                    .map_err(|source| ServerError::Root { path: root.clone(), source })?;
                Ok(Self::Directory(ServeDir::with_backend("", beneath)))
            }
        }
    }

    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let mut response = match self {
            Self::Directory(files) => files.clone().call(request).await?.map(Either::Right),
            Self::Memory { find, pattern } => {
                let response = from_memory(&request, &**find, pattern);
                read_to_its_end(request.into_body()).await;
                response
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
            let mut found = Response::new(Either::Left(Full::new(body)));
            let kind = if path.ends_with(".json") { "application/json" } else { OCTETS };
            found.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            found
        }
        None => text(StatusCode::NOT_FOUND, "no such file\n"),
    }
}

/// What `/` says.
const ABOUT: &str = "This is the reference web server of Plimsoll.\n\n\
    /bytes/N is a body of N bytes, up to 4 MiB, to a request of any method. To measure it:\n\n  \
    plimsoll run web-url http://HOST:PORT/bytes/1024 --clients 64 --for 10s\n  \
    plimsoll run web-url http://HOST:PORT/bytes/1024 --rate 2000 --for 10s\n  \
    plimsoll run web-url http://HOST:PORT/bytes/10 -d 'id={{uuid}}' --clients 8\n";

/// What a request brings is taken and forgotten. Most bring nothing.
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
    let mut response = Response::new(Either::Left(Full::new(Bytes::from_static(body.as_bytes()))));
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
