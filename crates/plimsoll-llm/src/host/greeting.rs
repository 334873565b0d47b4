//! Is the server there, does TLS work, what is it?

use plimsoll_http::host::fetch::Server;
use plimsoll_http::parameters::HttpWorkload;
use plimsoll_model::suite::Suite;
use plimsoll_protocol::host::{Greeting, HostError, NeedsFiles, Target};
use serde_json::Value;

/// Reaches every server once. Requests here carry no key: a server that wants one says so, and the
/// plan asks again with it.
pub(super) fn greet(_: &Suite, targets: &[Target], _: NeedsFiles) -> Result<Greeting, HostError> {
    let workload = HttpWorkload::default();
    let software = targets.iter().map(|target| {
        let name = target.name();
        let server = Server::of(&workload, target, &name);
        server.greet()?;
        Ok(software(&server, &target.resolved.url.path))
    });
    Ok(Greeting { file_set: None, software: software.collect::<Result<_, HostError>>()? })
}

/// What serves, as its list of models and its `/version` say it, or its `Server` field.
fn software(server: &Server<'_>, base: &str) -> Option<String> {
    let base = base.trim_end_matches('/');
    let models = server.get(&format!("{base}/models")).ok()?;
    let owner = serde_json::from_slice(&models.body)
        .ok()
        .and_then(|list: Value| Some(list.pointer("/data/0/owned_by")?.as_str()?.to_owned()));
    let root = base.strip_suffix("/v1").unwrap_or(base);
    let version = server.get(&format!("{root}/version")).ok().and_then(|reply| {
        let said: Value = serde_json::from_slice(&reply.body).ok()?;
        Some(said.get("version")?.as_str()?.to_owned())
    });
    match (owner, version) {
        (Some(owner), Some(version)) => Some(format!("{owner} {version}")),
        (Some(owner), None) => Some(owner),
        (None, _) => models.software,
    }
}
