//! One server as the clients address it: its requests ready as bytes, and what a good reply is.

mod frame;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{Io, Link};
use plimsoll_model::outcome::OpKind;
use plimsoll_model::units::Nanos;

use super::fileset::{FileId, FileSet};
use super::h2::request::{Encoded, EncoderTable};
use super::parameters::{Connections, Statuses};
use super::spare_links::SpareLinks;
use super::wire::request::{Frame, Method, RequestText, head, request};
use super::wire::template::{NoVariables, Template, Variables};

pub use self::frame::{SiteFrame, Version};

/// Where the digits of a file's path go.
const FILE_ZERO: FileId = FileId { directory: 0, class: 0, k: 0 };

/// One server, shared by all workers.
#[derive(Debug)]
pub struct Site {
    /// Scheme, host and port, for messages.
    base: String,
    /// Kept or made anew.
    pub(super) connections: Connections,
    /// Good statuses.
    pub(super) expected: Statuses,
    requests: Requests,
    /// Their header blocks, where the version is 2: one of each URL, or that of all files.
    blocks: Option<Blocks>,
}

/// Requests as HTTP/2 has them.
#[derive(Debug)]
struct Blocks {
    encoded: Encoded,
    /// Where the digits of a file's path begin in its block.
    digits_at: usize,
}

impl From<Encoded> for Blocks {
    fn from(encoded: Encoded) -> Self {
        Self { encoded, digits_at: 0 }
    }
}

#[derive(Debug)]
enum Requests {
    /// One request with the digits of the path left open.
    Files { template: Vec<u8>, path_at: usize, prefix: String, set: FileSet },
    /// Every request as bytes.
    Urls(Vec<UrlRequest>),
}

#[derive(Debug)]
struct UrlRequest {
    /// As written, for messages.
    shown: String,
    text: UrlText,
}

#[derive(Debug)]
enum UrlText {
    /// The same for every op.
    Fixed { bytes: Vec<u8>, body_bytes: u64 },
    /// Made for each op: the body by its template, or else by [`Bodies`].
    Made { head: Template, body: Option<Template> },
}

/// Values of the variables in requests. Each user has their own.
pub trait RequestVariables: fmt::Debug {
    /// Draws the random parts of the request of this op.
    fn key(&self, op: &HttpOp) -> u64;
    /// Appends the value that a variable has for this op.
    fn write(&self, op: &HttpOp, number: u16, into: &mut Vec<u8>);
}

#[derive(Debug)]
struct VariablesOfOp<'a> {
    variables: &'a dyn RequestVariables,
    op: &'a HttpOp,
}

impl Variables for VariablesOfOp<'_> {
    fn write(&self, number: u16, into: &mut Vec<u8>) {
        self.variables.write(self.op, number, into);
    }
}

/// Writes the bodies of requests that no template can draw.
pub trait Bodies: fmt::Debug {
    /// Appends the body of the request of that [`HttpOp::key`].
    fn write(&self, key: u64, out: &mut Vec<u8>);
}

impl UrlText {
    fn new(frame: Frame<'_>, text: &RequestText) -> Self {
        let (head, body) = (head(frame, text), text.body.clone());
        if !head.is_fixed() || !body.is_fixed() {
            return Self::Made { head, body: Some(body) };
        }
        let (mut bytes, mut body_text) = (Vec::new(), Vec::new());
        body.write(0, 0, &mut body_text);
        head.write(0, body_text.len(), &mut bytes);
        bytes.extend_from_slice(&body_text);
        Self::Fixed { bytes, body_bytes: body_text.len() as u64 }
    }
}

impl Site {
    /// A server with `set` below `prefix`, a path that ends with a slash.
    pub fn with_files(frame: SiteFrame<'_>, method: Method, prefix: &str, set: FileSet) -> Self {
        let digits = FILE_ZERO.to_string();
        let path = format!("{prefix}{digits}");
        let template = request(frame.frame(), method, &path);
        let text = RequestText::plain(method, &path);
        let blocks = frame.encoded(std::iter::once(&text)).map(|encoded| {
            let head = encoded.heads.first();
            let digits_at = head.map_or(0, |head| head.start_bytes() - digits.len());
            Blocks { encoded, digits_at }
        });
        // The path follows method, space and prefix on the first line.
        let path_at = method.as_str().len() + 1 + prefix.len();
        let requests = Requests::Files { template, path_at, prefix: prefix.to_owned(), set };
        Self::new(frame, requests, blocks)
    }

    /// A server with these URLs. Each comes with its name in messages.
    pub fn with_urls<'t>(
        frame: SiteFrame<'_>,
        urls: impl Iterator<Item = (&'t RequestText, &'t str)> + Clone,
    ) -> Self {
        let blocks = frame.encoded(urls.clone().map(|(text, _)| text)).map(Blocks::from);
        let build = |(text, shown): (&RequestText, &str)| UrlRequest {
            shown: shown.to_owned(),
            text: UrlText::new(frame.frame(), text),
        };
        let requests = Requests::Urls(urls.map(build).collect());
        Self::new(frame, requests, blocks)
    }

    /// A server with one URL, and a body of [`Bodies`] in each request.
    pub fn with_bodies(frame: SiteFrame<'_>, text: &RequestText, shown: &str) -> Self {
        let blocks = frame.encoded(std::iter::once(text)).map(Blocks::from);
        let text = UrlText::Made { head: head(frame.frame(), text), body: None };
        let requests = Requests::Urls(vec![UrlRequest { shown: shown.to_owned(), text }]);
        Self::new(frame, requests, blocks)
    }

    fn new(frame: SiteFrame<'_>, requests: Requests, blocks: Option<Blocks>) -> Self {
        Self {
            base: frame.base,
            connections: frame.connections,
            expected: frame.expected,
            requests,
            blocks,
        }
    }

    /// URL of an op, for messages.
    pub(super) fn url(&self, request: Request) -> impl fmt::Display {
        ShownUrl { site: self, request }
    }

    /// What the reply's body must be, if it is known.
    pub(super) fn content(&self, request: Request) -> Option<&[u8]> {
        match (&self.requests, request) {
            (Requests::Files { set, .. }, Request::File(id)) => Some(set.content(id)),
            _ => None,
        }
    }

    /// How long the body must be, if it is known.
    pub(super) fn expected_bytes(&self, request: Request) -> Option<u64> {
        match (&self.requests, request) {
            (Requests::Files { .. }, Request::File(id)) => Some(id.bytes()),
            _ => None,
        }
    }
}

struct ShownUrl<'a> {
    site: &'a Site,
    request: Request,
}

impl fmt::Display for ShownUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.site.base)?;
        match (&self.site.requests, self.request) {
            (Requests::Files { prefix, .. }, Request::File(id)) => write!(f, "{prefix}{id}"),
            (Requests::Urls(urls), Request::Url(index)) => match urls.get(index as usize) {
                Some(url) => f.write_str(&url.shown),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// A site as the clients of one worker use it: with a request being written, and what was learnt.
#[derive(Debug)]
pub struct WorkerSite {
    pub(super) site: Arc<Site>,
    /// The template with the digits of the last request, or the last request that was drawn.
    scratch: RefCell<Vec<u8>>,
    /// Its body.
    body: RefCell<Vec<u8>>,
    /// Length of the last reply per URL; zero when unknown.
    lengths: Vec<Cell<u64>>,
    bodies: Option<Rc<dyn Bodies>>,
    variables: Option<Rc<dyn RequestVariables>>,
    /// Connections in a row that ended under the second request although they were to be kept.
    unkept_in_a_row: Cell<u32>,
    /// Bodies in a row that stayed open after the reply was over.
    open_in_a_row: Cell<u32>,
    /// Connections in a row that the server did not close in time, although that was its part.
    left_open_in_a_row: Cell<u32>,
    /// Room for those that wait for it.
    pub(super) spare_links: SpareLinks,
}

/// How long to wait for the end of a body once the reply is complete: its connection is reused only
/// after it. Servers send it at once, busy ones some milliseconds later.
pub const REST_WAIT: Nanos = Nanos::from_millis(20);

/// After this many bodies in a row that stayed open, only the end of one in `OPEN_WAITED_FOR` is.
const OPEN_IN_A_ROW_MAX: u32 = 3;
const OPEN_WAITED_FOR: u32 = 64;

/// A server that ends this many connections in a row under the second request keeps none, whatever
/// its replies announce.
const UNKEPT_IN_A_ROW_MAX: u32 = 3;
/// A server that leaves this many connections in a row open after their last reply leaves the
/// closing to its clients.
const LEFT_OPEN_IN_A_ROW_MAX: u32 = 3;

impl WorkerSite {
    /// A worker's view of `site`.
    pub fn new(site: Arc<Site>) -> Rc<Self> {
        Self::made(site, None, None)
    }

    /// The same of a site whose requests have these variables.
    pub(crate) fn with_variables(site: Arc<Site>, variables: Rc<dyn RequestVariables>) -> Rc<Self> {
        Self::made(site, None, Some(variables))
    }

    /// The same of a site whose bodies these are.
    pub fn with_bodies(site: Arc<Site>, bodies: Rc<dyn Bodies>) -> Rc<Self> {
        Self::made(site, Some(bodies), None)
    }

    fn made(
        site: Arc<Site>,
        bodies: Option<Rc<dyn Bodies>>,
        variables: Option<Rc<dyn RequestVariables>>,
    ) -> Rc<Self> {
        let (scratch, urls) = match &site.requests {
            Requests::Files { template, .. } => (template.clone(), 0),
            Requests::Urls(urls) => (Vec::new(), urls.len()),
        };
        Rc::new(Self {
            site,
            scratch: scratch.into(),
            body: RefCell::default(),
            lengths: vec![Cell::new(0); urls],
            bodies,
            variables,
            unkept_in_a_row: Cell::new(0),
            open_in_a_row: Cell::new(0),
            left_open_in_a_row: Cell::new(0),
            spare_links: SpareLinks::default(),
        })
    }

    /// Whether a connection is used again after a reply that announces to keep it.
    pub(super) fn keeps_connections(&self) -> bool {
        match self.site.connections {
            Connections::PerRequest => false,
            Connections::KeepAlive => self.unkept_in_a_row.get() < UNKEPT_IN_A_ROW_MAX,
            Connections::Held => true,
        }
    }

    /// Whether requests ask the server to keep their connection.
    pub(super) fn asks_to_keep(&self) -> bool {
        self.site.connections != Connections::PerRequest
    }

    /// A connection has carried a second reply.
    pub(super) fn kept(&self) {
        self.unkept_in_a_row.set(0);
    }

    /// A connection that was to be kept has ended under its next request.
    pub(super) fn unkept(&self) {
        self.unkept_in_a_row.set(self.unkept_in_a_row.get().saturating_add(1));
    }

    /// How long to wait for the end of a body when its reply is complete.
    pub(super) fn rest_wait(&self) -> Nanos {
        let open = self.open_in_a_row.get();
        let waits = open < OPEN_IN_A_ROW_MAX || open.is_multiple_of(OPEN_WAITED_FOR);
        if waits { REST_WAIT } else { Nanos::ZERO }
    }

    /// A body ended with the reply, or soon after it was over.
    pub(super) fn ended(&self) {
        self.open_in_a_row.set(0);
    }

    /// A body stayed open.
    pub(super) fn stayed_open(&self) {
        self.open_in_a_row.set(self.open_in_a_row.get().wrapping_add(1));
    }

    /// The server has not closed a connection for as long as a client can wait.
    pub(super) fn left_open(&self) {
        self.left_open_in_a_row.set(self.left_open_in_a_row.get().saturating_add(1));
    }

    /// It has closed one.
    pub(super) fn has_closed(&self) {
        if !self.leaves_open() {
            self.left_open_in_a_row.set(0);
        }
    }

    /// The server leaves the closing to its clients.
    pub(super) fn leaves_open(&self) -> bool {
        self.left_open_in_a_row.get() >= LEFT_OPEN_IN_A_ROW_MAX
    }

    /// Sends the request of `op` in one call, without allocation. Answers with the bytes of its
    /// body.
    pub(super) fn send(&self, op: &HttpOp, link: Link, io: &mut impl Io) -> u64 {
        match (&self.site.requests, op.request) {
            (Requests::Files { path_at, .. }, Request::File(id)) => {
                let mut bytes = self.scratch.borrow_mut();
                write_digits(&mut bytes[*path_at..], id);
                io.send(link, &bytes);
                0
            }
            (Requests::Urls(urls), Request::Url(index)) => match &urls[index as usize].text {
                UrlText::Fixed { bytes, body_bytes } => {
                    io.send(link, bytes);
                    *body_bytes
                }
                UrlText::Made { head, body } => {
                    let (mut text, mut made) = (self.scratch.borrow_mut(), self.body.borrow_mut());
                    text.clear();
                    self.make_body(op, body.as_ref(), &mut made);
                    let body_bytes = made.len();
                    self.draw(op, |key, variables| {
                        head.write_with(key, body_bytes, variables, &mut text);
                    });
                    text.extend_from_slice(&made);
                    io.send(link, &text);
                    made.len() as u64
                }
            },
            _ => unreachable!("a workload makes sites and ops of one sort"),
        }
    }

    /// Makes the body of the request of `op`, by its template if it has one.
    fn make_body(&self, op: &HttpOp, template: Option<&Template>, body: &mut Vec<u8>) {
        body.clear();
        match (template, &self.bodies) {
            (Some(template), _) => self.draw(op, |key, variables| {
                template.write_with(key.wrapping_add(1), 0, variables, body);
            }),
            (None, Some(bodies)) => bodies.write(op.key, body),
            (None, None) => {}
        }
    }

    /// Writes what the request of `op` draws.
    fn draw<T>(&self, op: &HttpOp, write: impl FnOnce(u64, &dyn Variables) -> T) -> T {
        match &self.variables {
            None => write(op.key, &NoVariables),
            Some(variables) => {
                write(variables.key(op), &VariablesOfOp { variables: &**variables, op })
            }
        }
    }

    /// Appends the header block of the request of `op`, whose body has this length. Only of a site
    /// of [`Version::Http2`].
    pub(super) fn write_block(
        &self,
        op: &HttpOp,
        body_bytes: usize,
        table: &mut EncoderTable,
        out: &mut Vec<u8>,
    ) {
        let Some(Blocks { encoded, digits_at }) = &self.site.blocks else { return };
        let (index, id) = match op.request {
            Request::File(id) => (0, Some(id)),
            Request::Url(index) => (index as usize, None),
        };
        let mut path = self.scratch.borrow_mut();
        let shared = (&encoded.shared, table);
        let start = self.draw(op, |key, variables| {
            encoded.heads[index].write((key, body_bytes, variables), shared, &mut path, out)
        });
        if let Some(id) = id {
            write_digits(&mut out[start + digits_at..], id);
        }
    }

    /// The body of the request of `op`, made anew where it is not always the same.
    pub(super) fn with_body<T>(&self, op: &HttpOp, take: impl FnOnce(&[u8]) -> T) -> T {
        let Requests::Urls(urls) = &self.site.requests else { return take(&[]) };
        let Request::Url(index) = op.request else { return take(&[]) };
        match &urls[index as usize].text {
            UrlText::Fixed { bytes, body_bytes } => {
                take(&bytes[bytes.len() - *body_bytes as usize..])
            }
            UrlText::Made { body, .. } => {
                let mut made = self.body.borrow_mut();
                self.make_body(op, body.as_ref(), &mut made);
                take(&made)
            }
        }
    }

    /// Length the body will probably have; zero when nothing is known.
    pub(super) fn likely_bytes(&self, request: Request) -> u64 {
        match request {
            Request::File(id) => id.bytes(),
            Request::Url(index) => self.lengths[index as usize].get(),
        }
    }

    /// Remembers the length a reply announced.
    pub(super) fn learn_bytes(&self, request: Request, announced: Option<u64>) {
        if let Request::Url(index) = request {
            self.lengths[index as usize].set(announced.unwrap_or(0));
        }
    }
}

/// Writes the digits into `dir00000/class0_0`.
fn write_digits(path: &mut [u8], id: FileId) {
    let mut rest = id.directory;
    for digit in path[3..8].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    path[14] = b'0' + id.class;
    path[16] = b'0' + id.k;
}

/// One request and what is done with its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpOp {
    /// How it counts in the statistics.
    pub kind: OpKind,
    /// The request.
    pub request: Request,
    /// How; must be the method the site wrote into the request.
    pub method: Method,
    /// Compare the body with the file set.
    pub verify: bool,
    /// Draws the random parts of the request.
    pub key: u64,
}

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A file of the file set.
    File(FileId),
    /// Index in the list of URLs.
    Url(u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_written_in_place_give_the_path_of_the_file() {
        for (directory, class, k) in [(0, 0, 1), (12, 1, 5), (99_999, 3, 9)] {
            let id = FileId { directory, class, k };
            let mut path = FILE_ZERO.to_string().into_bytes();
            write_digits(&mut path, id);
            assert_eq!(String::from_utf8(path).unwrap(), id.to_string());
        }
    }
}
