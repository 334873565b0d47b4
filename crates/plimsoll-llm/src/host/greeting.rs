//! Is the server there, does TLS work, what is it?

use plimsoll_http::host::fetch::Server;
use plimsoll_http::wire::reply::Reply;
use plimsoll_model::suite::Suite;
use plimsoll_protocol::host::{Greeting, HostError, NeedsFiles, Target};
use serde_json::Value;

use crate::endpoint::path_of;
use crate::parameters::LlmWorkload;

/// Reaches every server once. Nothing asked here carries a key: the plan asks again with it, and
/// says what a server refuses.
pub(super) fn greet(
    suite: &Suite,
    targets: &[Target],
    _: NeedsFiles,
) -> Result<Greeting, HostError> {
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
