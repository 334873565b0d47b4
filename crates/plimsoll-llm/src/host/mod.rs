//! Servers of language models: how they are started and what they are asked before a run.

mod metrics;
mod serve;

use plimsoll_http::host::fetch::Server;
use plimsoll_http::wire::reply::Reply;
use plimsoll_model::event::TimeKind;
use plimsoll_model::suite::Suite;
use plimsoll_protocol::host::{
    Calibration, Greeting, HostError, Managed, NeedsFiles, Reference, Registration, ServerWish,
    Started, Target, any_room, any_source, own_program,
};
use plimsoll_protocol::net::OnProgress;
use plimsoll_servers::{Builtin, ServerProcess};
use serde_json::Value;

use crate::endpoint::path_of;
use crate::parameters::LlmWorkload;
use crate::server::llama::{self, LlamaRequest};

/// The registration.
pub const REGISTRATION: Registration = Registration {
    protocol: &crate::PROTOCOL,
    reference: Reference {
        verb: "llm",
        command: serve::command,
        serve: serve::serve,
        start: start_reference,
        has_threads: false,
    },
    managed: &[Managed { name: "llama", start: start_llama }],
    servers_practice: &[],
    greet,
    room: any_room,
    sources: any_source,
    directory: None,
    status: Some(metrics::STATUS),
    connect_to: Some(|suite| suite.workload.of::<LlmWorkload>().http.connect_to.as_deref()),
    refuse_user: Some(
        "names and passwords in a URL are not sent; leave them out and write --api-key \
         env:VARIABLE",
    ),
    calibration: &[Calibration {
        name: "llm",
        suite: include_str!("calibration.toml"),
        waits: false,
        path: BASE_PATH,
        judged: TimeKind::FirstOutput,
        server: |program, cores, _| Ok(Builtin::new("llm", program, cores)),
        proper: None,
    }],
};

/// Where requests go below a server's address.
const BASE_PATH: &str = "v1";

/// It sleeps between chunks, because a core that it kept awake would be named as the limit. It has 16
/// slots, so that the usual ladder of users fills its batch.
fn start_reference(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let mut server = Builtin::new("llm", own_program()?, wish.cores).listening_on(wish.listen_on);
    server.arguments.extend(["--sleep", "--slots", "16"].map(Into::into));
    Ok(started(server.with_work(wish.work).start()?))
}

fn start_llama(wish: &ServerWish<'_>, _: &mut OnProgress<'_>) -> Result<Started, HostError> {
    let request = LlamaRequest::from_environment(wish.listen_on, wish.cores);
    Ok(started(llama::start(&request)?))
}

fn started(process: ServerProcess) -> Started {
    let url = format!("{}{BASE_PATH}", process.url());
    Started { process, url, files: None }
}

/// Reaches every server once. Nothing asked here carries a key: the plan asks again with it, and
/// says what a server refuses.
fn greet(suite: &Suite, targets: &[Target], _: NeedsFiles) -> Result<Greeting, HostError> {
    let http = &suite.workload.of::<LlmWorkload>().http;
    let software = targets.iter().map(|target| {
        let name = target.name();
        let server = Server::of(http, target, &name);
        server.greet()?;
        Ok(software(&server, &path_of(&target.resolved.url, "models")))
    });
    Ok(Greeting { file_set: None, software: software.collect::<Result<_, HostError>>()? })
}

/// What serves, as the list of its models and its `/version` say it, or its `Server` field.
fn software(server: &Server<'_>, models: &str) -> Option<String> {
    let listed = server.get(models).ok()?;
    let text_at = |reply: &Reply, place: &str| {
        let said: Value = serde_json::from_slice(&reply.body).ok()?;
        Some(said.pointer(place)?.as_str()?.to_owned())
    };
    let owner = text_at(&listed, "/data/0/owned_by");
    // vLLM has it beside the versioned paths.
    let version = models.split("/v1/").next().map(|root| format!("{root}/version"));
    let version = version.and_then(|path| text_at(&server.get(&path).ok()?, "/version"));
    match (owner, version) {
        (Some(owner), Some(version)) => Some(format!("{owner} {version}")),
        (Some(owner), None) => Some(owner),
        (None, _) => listed.software,
    }
}
