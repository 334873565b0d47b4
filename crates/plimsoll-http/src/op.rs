//! One request and what is done with its reply, as script and session see it.

use plimsoll_model::outcome::OpKind;

use super::fileset::FileId;
use super::wire::request::Method;

/// One request and what is done with its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpOp {
    /// How it counts in the statistics.
    pub kind: OpKind,
    /// What is asked for.
    pub request: Request,
    /// How; must be the method the site wrote into the request.
    pub method: Method,
    /// Compare the body with the file set.
    pub verify: bool,
    /// Draws the random parts of the request.
    pub key: u64,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A file of the file set.
    File(FileId),
    /// Index in the list of URLs.
    Url(u32),
}
