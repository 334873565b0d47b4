//! A server as requests address it: paths below `/v1`, and the requests to it before any load.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_http::h2::windows::{H2Settings, PeerSettings};
use plimsoll_http::look::Look;
use plimsoll_http::parameters::HttpWorkload;
use plimsoll_http::site::{Site, SiteFrame, Version};
use plimsoll_http::tls::TlsSite;
use plimsoll_http::transport;
use plimsoll_http::wire::request::{Method, RequestText};
use plimsoll_http::wire::template::Template;
use plimsoll_model::outcome::OpStatus;
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::net::{Dial, SetupError};
use plimsoll_protocol::{PlanError, ResolvedTarget};

use super::learn::Asks;
use super::parameters::Endpoint;
use super::server_reply::{ServerReply, has_done};

/// What a target's path is given where it names no version.
const VERSION: &str = "/v1";
const JSON: &str = "Content-Type: application/json";

/// A request without its body.
fn post(path: &str) -> RequestText {
    let headers = vec![JSON.to_owned()];
    RequestText { headers, ..RequestText::plain(Method::POST, path) }
}

/// Path of `below` on a target: `http://host`, `http://host/v1` and the endpoint's own URL all lead
/// to it.
pub(crate) fn path_of(url: &TargetUrl, below: &str) -> String {
    let path = url.path.trim_end_matches('/');
    let whole = [Endpoint::Chat, Endpoint::Completions].map(Endpoint::path);
    let base = whole.iter().find_map(|end| path.strip_suffix(end)?.strip_suffix('/'));
    let base = base.unwrap_or(path);
    let last = base.rsplit('/').next().unwrap_or_default();
    let is_version =
        last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let version = if is_version || base.len() < path.len() { "" } else { VERSION };
    let query = url.query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
    format!("{base}{version}/{below}{query}")
}

/// The requests of a load to a target.
pub(crate) fn site(
    http: &HttpWorkload,
    url: &TargetUrl,
    endpoint: Endpoint,
    h2: Option<H2Settings>,
) -> Result<Site, PlanError> {
    let path = path_of(url, endpoint.path());
    let (frame, text) = (frame(http, url, h2)?, post(&path));
    frame.check_fields(std::iter::once(&text))?;
    Ok(Site::with_bodies(frame, &text, &path))
}

fn frame<'a>(
    http: &'a HttpWorkload,
    url: &TargetUrl,
    h2: Option<H2Settings>,
) -> Result<SiteFrame<'a>, PlanError> {
    let version = if h2.is_some() { Version::Http2 } else { Version::Http1 };
    transport::frame(http, url, version)
}

/// A target before any load.
pub(crate) struct Server<'a> {
    pub(crate) http: &'a HttpWorkload,
    pub(crate) target: &'a ResolvedTarget,
    pub(crate) tls: Option<Rc<TlsSite>>,
    pub(crate) endpoint: Endpoint,
    pub(crate) timeout: Duration,
    pub(crate) dial: &'a dyn Dial,
    /// Of HTTP/2, where that is spoken.
    pub(crate) h2: Option<H2Settings>,
    /// The server's own settings then, once it has answered.
    pub(crate) peer: Cell<Option<PeerSettings>>,
}

impl Server<'_> {
    fn ask(&self, text: &RequestText, shown: &str) -> Result<ServerReply, SetupError> {
        let wrong = |error: PlanError| SetupError::Wrong(error.to_string());
        let frame = frame(self.http, &self.target.url, self.h2).map_err(wrong)?;
        let look = Look {
            site: Arc::new(Site::with_urls(frame, std::iter::once((text, shown)))),
            target: self.target,
            tls: self.tls.clone(),
            method: text.method,
            key: 0,
            timeout: self.timeout,
            h2: self.h2,
            is_complete: has_done,
        };
        let answer = look.ask(self.dial)?;
        if matches!(answer.status, OpStatus::Failed(_))
            && let Some(why) = look.misfit(&answer, self.dial)
        {
            return Err(look.unusable(why));
        }
        self.peer.set(answer.peer.or(self.peer.get()));
        Ok(ServerReply::from(answer))
    }
}

impl Asks for Server<'_> {
    fn models(&self) -> Result<ServerReply, SetupError> {
        let path = path_of(&self.target.url, "models");
        self.ask(&RequestText::plain(Method::GET, &path), &path)
    }

    fn post(&self, body: &[u8]) -> Result<ServerReply, SetupError> {
        let path = path_of(&self.target.url, self.endpoint.path());
        self.ask(&RequestText { body: Template::fixed(body), ..post(&path) }, &path)
    }

    fn unusable(&self, why: String) -> SetupError {
        SetupError::Unusable(format!("{}: {why}", self.target.url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_may_name_the_host_the_version_or_the_whole_endpoint() {
        for (target, path) in [
            ("http://h:8000", "/v1/chat/completions"),
            ("http://h:8000/", "/v1/chat/completions"),
            ("http://h/v1", "/v1/chat/completions"),
            ("https://h/v1/", "/v1/chat/completions"),
            ("http://h/api/v3", "/api/v3/chat/completions"),
            ("http://h/proxy", "/proxy/v1/chat/completions"),
            ("http://h/v1/chat/completions", "/v1/chat/completions"),
            ("http://h/v1/completions", "/v1/chat/completions"),
            (
                "http://h/openai/deployments/d/chat/completions?api-version=1",
                "/openai/deployments/d/chat/completions?api-version=1",
            ),
        ] {
            let url = TargetUrl::parse(target).unwrap();
            assert_eq!(path_of(&url, Endpoint::Chat.path()), path, "{target}");
        }
    }
}
