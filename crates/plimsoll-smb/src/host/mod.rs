//! SMB servers. They are queried when the run is planned and store whatever the run writes, so
//! nothing is left to greet here.
//!
//! Servers of ours let one user in, with a password made for the run, or guests if the suite asks
//! for that: guests can neither sign nor encrypt.

mod serve;

use std::net::IpAddr;

use plimsoll_model::event::TimeKind;
use plimsoll_model::suite::Suite;
use plimsoll_protocol::host::{
    Calibration, HostError, Managed, Reference, Registration, ServerRequest, Started, Target,
    local_sources, own_program,
};
use plimsoll_servers::{Builtin, Login, ServerProcess};

use crate::parameters::{Pattern, SmbWorkload};
use crate::server::samba::{self, SambaRequest};

/// Who logs on to servers of ours.
const USER: &str = "plimsoll";

/// The registration.
pub const REGISTRATION: Registration = Registration {
    managed: &[Managed { name: "samba", start: |request, _| start_samba(request) }],
    sources,
    // READs of one file.
    calibration: &[Calibration {
        name: "smb",
        spoken: None,
        suite: include_str!("calibration.toml"),
        waits: true,
        path: "",
        checked_time: TimeKind::Response,
        server: |program, cores, _| Ok(Builtin::new("smb", program, cores)),
        proper: None,
    }],
    ..Registration::new(
        &crate::PROTOCOL,
        Reference::new("smb", serve::command, serve::serve, start_reference),
    )
};

fn start_reference(request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("smb", own_program()?, request.cores).listening_on(request.listen_on);
    Ok(started(Builtin { login: login(request.suite)?, ..server }.with_work(request.work).start()?))
}

fn start_samba(request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let (cores, login, listen_on) =
        (request.cores.to_vec(), login(request.suite)?, Some(request.listen_on));
    Ok(started(samba::start(&SambaRequest { cores, login, listen_on, ..SambaRequest::default() })?))
}

/// Who is let in; `None`: guests.
fn login(suite: &Suite) -> Result<Option<Login>, HostError> {
    match suite.workload.parameters::<SmbWorkload>().guest {
        true => Ok(None),
        false => Ok(Some(Login::with_new_password(USER)?)),
    }
}

fn started(process: ServerProcess) -> Started {
    let url = process.url_with_password();
    Started { process, url, files: None }
}

/// A storm of logons makes thousands of connections a second. Each rests for a minute after its
/// end, and with half of an address's ports at rest the system looks for a free one for
/// milliseconds within the call that connects: the generator would be late.
fn sources(suite: &Suite, targets: &[Target]) -> Vec<IpAddr> {
    let logons = suite.workload.parameters::<SmbWorkload>().pattern == Pattern::Logons;
    if logons { local_sources(targets) } else { Vec::new() }
}
