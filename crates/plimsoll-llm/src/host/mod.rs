//! Servers of language models: how they are started and what they are asked before a run.

mod greeting;
mod serve;

use plimsoll_protocol::host::{
    HostError, Reference, Registration, ServerWish, Started, any_room, any_source, own_program,
};
use plimsoll_servers::Builtin;

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
    managed: &[],
    servers_practice: &[],
    greet: greeting::greet,
    room: any_room,
    sources: any_source,
    directory: None,
    status: None,
    connect_to: None,
    refuse_user: Some(
        "names and passwords in a URL are not sent; leave them out and write --api-key \
         env:VARIABLE",
    ),
    calibration: &[],
};

/// Where requests go below a server's address.
const BASE_PATH: &str = "v1";

fn start_reference(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("llm", own_program()?, wish.cores).listening_on(wish.listen_on);
    let process = server.with_work(wish.work).start()?;
    let url = format!("{}{BASE_PATH}", process.url());
    Ok(Started { process, url, files: None })
}
