//! SMB servers. They are asked everything when the run is planned, and hold whatever the run
//! writes to them, so that nothing is left to greet here.
//!
//! Servers of ours let one user in, with a password made for the run, or guests if the suite asks
//! for that: guests can neither sign nor encrypt.

use std::net::IpAddr;

use plimsoll_model::suite::Suite;
use plimsoll_model::target::TargetSpec;
use plimsoll_protocols::smb::parameters::Pattern;
use plimsoll_servers::managed::{self, SmbRequest};
use plimsoll_servers::{BuiltinSmb, Login, ServerProcess};

use super::super::servers::{ServerWish, Target, of_process};
use super::{Greeting, HostSide, any_room, local_sources, own_program};
use crate::exit::Failure;
use crate::terminal::Live;

/// Who logs on to servers of ours.
const USER: &str = "plimsoll";

/// The registration.
pub const SIDE: HostSide =
    HostSide { protocol: "smb", start_builtin, start_managed, greet, room: any_room, sources };

fn start_builtin(spec: &TargetSpec, wish: &ServerWish<'_>) -> Result<Target, Failure> {
    let server = BuiltinSmb {
        program: own_program()?,
        arguments: Vec::new(),
        cores: wish.cores.to_vec(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        login: login(wish.suite)?,
    };
    target(spec, server.start()?)
}

fn start_managed(
    spec: &TargetSpec,
    name: &str,
    wish: &ServerWish<'_>,
    _live: &mut Live,
) -> Result<Target, Failure> {
    let (cores, login) = (wish.cores.to_vec(), login(wish.suite)?);
    let request = SmbRequest { cores, login, ..SmbRequest::default() };
    target(spec, managed::start_smb(name, &request)?)
}

/// Who is let in; `None`: guests.
fn login(suite: &Suite) -> Result<Option<Login>, Failure> {
    let guest = suite.workload.get("guest").and_then(|value| value.as_bool());
    match guest.unwrap_or_default() {
        true => Ok(None),
        false => Ok(Some(Login::with_new_password(USER)?)),
    }
}

fn target(spec: &TargetSpec, process: ServerProcess) -> Result<Target, Failure> {
    let url = process.url_with_password();
    of_process(spec, process, &url, None)
}

fn greet(_: &Suite, targets: &[Target], _: &ServerWish<'_>) -> Result<Greeting, Failure> {
    Ok(Greeting { file_set: None, software: vec![None; targets.len()] })
}

/// A storm of logons makes thousands of connections a second. Each rests for a minute after its
/// end, and with half of an address's ports at rest the system looks for a free one for
/// milliseconds within the call that connects: the generator would be late.
fn sources(suite: &Suite, targets: &[Target]) -> Vec<IpAddr> {
    let pattern = suite.workload.get("pattern").cloned();
    let logons = pattern.and_then(|value| value.try_into().ok()) == Some(Pattern::Logons);
    if logons { local_sources(targets) } else { Vec::new() }
}
