//! Servers of language models: how they are started and queried before a run, and the figures that
//! a server counts itself, at `/metrics` next to its `/v1`.

mod serve;

use std::time::Duration;

use plimsoll_http::host::fetch::{Page, Server};
use plimsoll_http::wire::reply::Reply;
use plimsoll_model::event::TimeKind;
use plimsoll_model::suite::Suite;
use plimsoll_model::target::TargetUrl;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::host::{
    AskStatus, Calibration, Greeting, HostError, Managed, NeedsFiles, Reference, Registration,
    ServerRequest, Started, Status, Target, own_program,
};
use plimsoll_protocol::net::OnProgress;
use plimsoll_servers::{Builtin, ServerProcess};
use serde_json::Value;

use crate::endpoint::path_of;
use crate::parameters::LlmWorkload;
use crate::server::llama::{self, LlamaRequest};

/// The registration.
pub const REGISTRATION: Registration = Registration {
    managed: &[Managed { name: "llama", start: start_llama }],
    greet,
    status: Some(STATUS),
    connect_to: Some(|suite| suite.workload.parameters::<LlmWorkload>().http.connect_to.as_deref()),
    refuse_user: Some(
        "names and passwords in a URL are not sent; leave them out and write --api-key \
         env:VARIABLE",
    ),
    calibration: &[Calibration {
        name: "llm",
        spoken: None,
        suite: include_str!("calibration.toml"),
        waits: false,
        path: BASE_PATH,
        checked_time: TimeKind::FirstOutput,
        server: |program, cores, _| Ok(Builtin::new("llm", program, cores)),
        proper: None,
    }],
    ..Registration::new(
        &crate::PROTOCOL,
        Reference::new("llm", serve::command, serve::serve, start_reference),
    )
};

/// Where requests go below a server's address.
const BASE_PATH: &str = "v1";

/// It sleeps between chunks, because a core that it kept awake would be named as the limit. It has
/// 16 slots, so that the usual ladder of users fills its batch.
fn start_reference(server_request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let mut server = Builtin::new("llm", own_program()?, server_request.cores)
        .listening_on(server_request.listen_on);
    server.arguments.extend(["--sleep", "--slots", "16"].map(Into::into));
    Ok(started(server.with_work(server_request.work).start()?))
}

fn start_llama(
    server_request: &ServerRequest<'_>,
    _: &mut OnProgress<'_>,
) -> Result<Started, HostError> {
    let request = LlamaRequest::from_environment(server_request.listen_on, server_request.cores);
    Ok(started(llama::start(&request)?))
}

fn started(process: ServerProcess) -> Started {
    let url = format!("{}{BASE_PATH}", process.url());
    Started { process, url, files: None }
}

/// Reaches every server once. Requests here carry no key: the plan repeats them with it, and
/// reports what a server refuses.
fn greet(suite: &Suite, targets: &[Target], _: NeedsFiles) -> Result<Greeting, HostError> {
    let http = &suite.workload.parameters::<LlmWorkload>().http;
    let software = targets.iter().map(|target| {
        let name = target.name();
        let server = Server::new(http, target, &name);
        server.greet()?;
        Ok(software(&server, &path_of(&target.resolved.url, "models")))
    });
    Ok(Greeting { file_set: None, software: software.collect::<Result<_, HostError>>()? })
}

/// The server's software, from the list of its models and its `/version`, or from its `Server`
/// field.
fn software(server: &Server<'_>, models: &str) -> Option<String> {
    let listed = server.get(models).ok()?;
    let text_at = |reply: &Reply, pointer: &str| {
        let json: Value = serde_json::from_slice(&reply.body).ok()?;
        Some(json.pointer(pointer)?.as_str()?.to_owned())
    };
    let owner = text_at(&listed, "/data/0/owned_by");
    // vLLM has it next to the versioned paths.
    let version = models.split("/v1/").next().map(|root| format!("{root}/version"));
    let version = version.and_then(|path| text_at(&server.get(&path).ok()?, "/version"));
    match (owner, version) {
        (Some(owner), Some(version)) => Some(format!("{owner} {version}")),
        (Some(owner), None) => Some(owner),
        (None, _) => listed.software,
    }
}

/// The registration. llama.cpp's server has the page only with a flag.
const STATUS: Status = Status {
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
    let workload = suite.workload.parameters::<LlmWorkload>();
    Page::new(&workload.http, target, &path(&target.url))
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
