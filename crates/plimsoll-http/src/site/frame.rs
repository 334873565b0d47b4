//! What the requests to a server have in common.

use crate::error::HttpPlanError;
use crate::h2::request::{Encoded, encode, foreign_field};
use crate::parameters::{Connections, Statuses};
use crate::wire::request::{Frame, RequestText};

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2.
    Http2,
}

/// What the sites of a workload have in common, and how this one is called.
#[derive(Clone, Debug)]
pub struct SiteFrame<'a> {
    /// Scheme, host and port, for messages.
    pub base: String,
    /// Value of `Host`.
    pub host: String,
    /// Further fields.
    pub headers: &'a [String],
    /// Kept or made anew.
    pub connections: Connections,
    /// Good statuses.
    pub expected: Statuses,
    /// What is spoken.
    pub version: Version,
}

impl SiteFrame<'_> {
    /// Refuses a header field that this version of HTTP does not have.
    pub fn check_fields<'t>(
        &self,
        mut texts: impl Iterator<Item = &'t RequestText>,
    ) -> Result<(), HttpPlanError> {
        if self.version == Version::Http1 {
            return Ok(());
        }
        let foreign = texts.find_map(|text| foreign_field(self.frame(), text));
        foreign.map_or(Ok(()), |name| Err(HttpPlanError::ForeignField(name)))
    }

    /// The requests as HTTP/2 has them, where that is spoken.
    pub(super) fn encoded<'t>(
        &self,
        texts: impl Iterator<Item = &'t RequestText> + Clone,
    ) -> Option<Encoded> {
        let scheme = self.base.split_once(':').map_or("http", |(scheme, _)| scheme);
        match self.version {
            Version::Http1 => None,
            Version::Http2 => Some(encode(self.frame(), scheme, texts)),
        }
    }

    /// What its requests share.
    pub(super) fn frame(&self) -> Frame<'_> {
        let close = self.connections == Connections::PerRequest;
        Frame { host: &self.host, headers: self.headers, close }
    }
}
