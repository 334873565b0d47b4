//! What a reply has brought, and why it is no good one.

use std::borrow::Cow;
use std::fmt;
use std::io::Read as _;

use flate2::read::GzDecoder;
use plimsoll_model::outcome::ErrorClass;

use super::PageRequest;
use super::take::TakeSource;
use super::user::User;
use crate::reader::CAPTURE_BYTES_MAX;

/// Redirects of one request, as browsers allow.
pub(super) const REDIRECTS_MAX: u32 = 20;

/// What a reply has brought so far.
#[derive(Debug, Default)]
pub(crate) struct ReplyParts {
    pub(super) location: Option<Vec<u8>>,
    pub(super) encoding: BodyEncoding,
    pub(super) body: Vec<u8>,
    /// Values of header fields and cookies that are taken, with the indexes of their variables.
    pub(super) taken: Vec<(u16, Vec<u8>)>,
    pub(super) has_too_many_cookies: bool,
}

/// How the body is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    #[default]
    Identity,
    Gzip,
    Other,
}

/// Why a reply is no good one; as text, what follows its status.
#[derive(Debug)]
pub(super) enum Refusal {
    Status,
    Redirects,
    Elsewhere,
    Cookies,
    Encoding,
    Content(String),
    NotTaken(TakeSource),
}

impl Refusal {
    pub(super) const fn class(&self, status: u16) -> ErrorClass {
        match self {
            Self::Status => ErrorClass::Status(status as u32),
            Self::Redirects | Self::Elsewhere => ErrorClass::Redirect,
            Self::Cookies | Self::Encoding => ErrorClass::Malformed,
            Self::Content(_) => ErrorClass::Content,
            Self::NotTaken(_) => ErrorClass::NotTaken,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status => Ok(()),
            Self::Redirects => write!(f, ", more than {REDIRECTS_MAX} redirects"),
            Self::Elsewhere => f.write_str(
                ", a redirect to another server or to no URL; load goes only to the targets given",
            ),
            Self::Cookies => f.write_str(", more cookies than a browser keeps"),
            Self::Encoding => f.write_str(", a body that cannot be decoded; only gzip is"),
            Self::Content(text) => write!(f, ", no {text:?} in its body"),
            Self::NotTaken(source) => write!(f, ", no {source} in it"),
        }
    }
}

pub(super) const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The body of a reply is needed.
pub(crate) fn reads_body(request: &PageRequest) -> bool {
    request.content.is_some() || request.takes.iter().any(|take| take.from.reads_body())
}

impl ReplyParts {
    /// The body as it was before its encoding; `None` if that cannot be undone.
    pub(super) fn decoded(&self) -> Option<Cow<'_, [u8]>> {
        match self.encoding {
            BodyEncoding::Identity => Some(Cow::Borrowed(&self.body)),
            BodyEncoding::Gzip => {
                let mut body = Vec::new();
                let mut decoder = GzDecoder::new(&self.body[..]).take(CAPTURE_BYTES_MAX as u64);
                decoder.read_to_end(&mut body).ok().map(|_| Cow::Owned(body))
            }
            BodyEncoding::Other => None,
        }
    }

    pub(super) fn take_values(
        &self,
        request: &PageRequest,
        user: &mut User,
        fetch: usize,
    ) -> Result<(), Refusal> {
        let body = match reads_body(request) {
            true => self.decoded().ok_or(Refusal::Encoding)?,
            false => Cow::Borrowed(&[][..]),
        };
        if let Some(text) = &request.content
            && memchr::memmem::find(&body, text.as_bytes()).is_none()
        {
            return Err(Refusal::Content(text.clone()));
        }
        for take in &request.takes {
            let value = match take.from.reads_body() {
                true => take.from.value_in(&body),
                false => {
                    // The last reply first, then those of the redirects before it.
                    let before = user.fetch(fetch).set_by_redirects.iter().rev();
                    let mut all = self.taken.iter().chain(before);
                    let of_header = all.find(|(variable, _)| *variable == take.variable);
                    of_header.map(|(_, value)| Cow::Owned(value.clone()))
                }
            };
            let value = value.ok_or_else(|| Refusal::NotTaken(take.from.clone()))?;
            user.keep(take.variable, &value);
        }
        Ok(())
    }
}
