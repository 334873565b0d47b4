//! SMB servers. They are asked everything when the run is planned, and hold whatever the run
//! writes to them, so that nothing is left to greet here.
//!
//! Servers of ours let one user in, with a password made for the run, or guests if the suite asks
//! for that: guests can neither sign nor encrypt.

mod serve;

use std::net::IpAddr;

use plimsoll_model::event::TimeKind;
use plimsoll_model::suite::Suite;
use plimsoll_protocol::host::{
    Calibration, HostError, Managed, Reference, Registration, ServerWish, Started, Target,
    any_room, greet_nobody, local_sources, own_program,
};
use plimsoll_servers::{Builtin, Login, ServerProcess};

use crate::parameters::{Pattern, SmbWorkload};
use crate::server::samba::{self, SambaRequest};

/// Who logs on to servers of ours.
const USER: &str = "plimsoll";

/// The registration.
pub const REGISTRATION: Registration = Registration {
    protocol: &crate::PROTOCOL,
    reference: Reference {
        verb: "smb",
        command: serve::command,
        serve: serve::serve,
        start: start_reference,
        has_threads: false,
    },
    managed: &[Managed { name: "samba", start: |wish, _| start_samba(wish) }],
    servers_practice: &[],
    greet: greet_nobody,
    room: any_room,
    sources,
    directory: None,
    status: None,
    connect_to: None,
    refuse_user: None,
    // READs of one file.
    calibration: &[Calibration {
        name: "smb",
        suite: include_str!("calibration.toml"),
        waits: true,
        path: "",
        judged: TimeKind::Response,
        server: |program, cores, _| Ok(Builtin::new("smb", program, cores)),
        proper: None,
    }],
};

fn start_reference(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("smb", own_program()?, wish.cores).listening_on(wish.listen_on);
    Ok(started(Builtin { login: login(wish.suite)?, ..server }.with_work(wish.work).start()?))
}

fn start_samba(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let (cores, login, listen_on) = (wish.cores.to_vec(), login(wish.suite)?, Some(wish.listen_on));
    Ok(started(samba::start(&SambaRequest { cores, login, listen_on, ..SambaRequest::default() })?))
}

/// Who is let in; `None`: guests.
fn login(suite: &Suite) -> Result<Option<Login>, HostError> {
    match suite.workload.of::<SmbWorkload>().guest {
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
    let logons = suite.workload.of::<SmbWorkload>().pattern == Pattern::Logons;
    if logons { local_sources(targets) } else { Vec::new() }
}
