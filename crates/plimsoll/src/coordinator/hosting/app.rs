//! Application servers. They are asked everything when the run is planned, and hold whatever the
//! run writes to them, so that nothing is left to greet here.

use std::net::IpAddr;

use plimsoll_model::suite::Suite;
use plimsoll_model::target::TargetSpec;
use plimsoll_servers::BuiltinApp;

use super::super::servers::{ServerWish, Target, of_process};
use super::{Greeting, HostSide, any_room, own_program};
use crate::exit::Failure;
use crate::terminal::Live;

/// The registration.
pub const SIDE: HostSide =
    HostSide { protocol: "app", start_builtin, start_managed, greet, room: any_room, sources };

fn start_builtin(spec: &TargetSpec, wish: &ServerWish<'_>) -> Result<Target, Failure> {
    let program = own_program()?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let threads = wish.threads.map(|count| ["--threads".into(), count.to_string().into()]);
    let arguments = threads.into_iter().flatten().collect();
    let server = BuiltinApp { program, arguments, cores: wish.cores.to_vec(), version };
    let process = server.start()?;
    let url = process.url();
    of_process(spec, process, &url, None)
}

fn start_managed(
    _spec: &TargetSpec,
    name: &str,
    _wish: &ServerWish<'_>,
    _live: &mut Live,
) -> Result<Target, Failure> {
    Err(Failure::wrong(format!(
        "managed:{name}: no server of the transaction protocol can be managed; write builtin:, or \
         start a server (plimsoll serve app) and give its URL, app://HOST[:PORT]"
    )))
}

fn greet(_: &Suite, targets: &[Target], _: &ServerWish<'_>) -> Result<Greeting, Failure> {
    Ok(Greeting { file_set: None, software: vec![None; targets.len()] })
}

fn sources(_: &Suite, _: &[Target]) -> Vec<IpAddr> {
    Vec::new()
}
