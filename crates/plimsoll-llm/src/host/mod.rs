//! Servers of language models: how they are started and what they are asked before a run.

mod greeting;
mod metrics;
mod serve;

use plimsoll_model::event::TimeKind;
use plimsoll_protocol::host::{
    Calibration, HostError, Managed, Reference, Registration, ServerWish, Started, any_room,
    any_source, own_program,
};
use plimsoll_protocol::net::OnProgress;
use plimsoll_servers::{Builtin, ServerProcess};

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
    greet: greeting::greet,
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

fn start_reference(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("llm", own_program()?, wish.cores).listening_on(wish.listen_on);
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
