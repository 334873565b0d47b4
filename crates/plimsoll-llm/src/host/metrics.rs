//! The figures that a server counts itself, at `/metrics` beside its `/v1`.

use std::time::Duration;

use plimsoll_http::host::page::Page;
use plimsoll_model::suite::Suite;
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::host::{AskStatus, Status};

use crate::parameters::LlmWorkload;

/// The registration. llama.cpp's server has the page only if told so.
pub(super) const STATUS: Status = Status {
    of: |suite, target| Some(Box::new(Metrics(page(suite, target)?))),
    unknown: "how many requests are in its batch and wait, and how full its KV cache is, since its \
              /metrics has no figures that are known here (llama.cpp: start it with --metrics)",
};

struct Metrics(Page);

impl AskStatus for Metrics {
    fn ask(&mut self, wait: Duration) -> Option<String> {
        self.0.get(wait)
    }
}

fn page(suite: &Suite, target: &ResolvedTarget) -> Option<Page> {
    let workload = suite.workload.of::<LlmWorkload>();
    Page::of(&workload.http, target, &path(&target.url))
}

/// What a target's path has before its version belongs to a proxy, which has the page there.
fn path(url: &TargetUrl) -> String {
    let is_version = |part: &str| {
        let digits = part.strip_prefix('v').filter(|rest| !rest.is_empty());
        digits.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let parts = url.path.split('/').filter(|part| !part.is_empty());
    let before = parts.take_while(|part| !is_version(part));
    before.map(|part| format!("/{part}")).collect::<String>() + "/metrics"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lies_beside_the_version() {
        for (target, expected) in [
            ("http://h:8000", "/metrics"),
            ("http://h:8000/v1", "/metrics"),
            ("https://h/v1/chat/completions", "/metrics"),
            ("http://h/proxy/v1/", "/proxy/metrics"),
            ("http://h/proxy", "/proxy/metrics"),
        ] {
            assert_eq!(path(&TargetUrl::parse(target).unwrap()), expected, "{target}");
        }
    }
}
