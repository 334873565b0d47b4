//! NFS servers. They are asked everything when the run is planned, and hold whatever the run
//! writes to them, so that nothing is left to greet here.

mod serve;

use plimsoll_protocol::host::{
    Calibration, HostError, Managed, Reference, Registration, ServerWish, Started, any_room,
    any_source, greet_nobody, own_program,
};
use plimsoll_servers::Builtin;

use crate::server::ganesha::{self, GaneshaRequest};

/// The registration.
pub const REGISTRATION: Registration = Registration {
    protocol: &crate::PROTOCOL,
    reference: Reference {
        verb: "nfs",
        command: serve::command,
        serve: serve::serve,
        start: start_reference,
        has_threads: false,
    },
    managed: &[Managed { name: "ganesha", start: |wish, _| start_ganesha(wish) }],
    greet: greet_nobody,
    room: any_room,
    sources: any_source,
    directory: None,
    status: None,
    connect_to: None,
    refuse_user: Some("NFS knows users by number; leave the name out, this program's own are sent"),
    // GETATTR over TCP.
    calibration: &[Calibration {
        name: "nfs",
        suite: include_str!("calibration.toml"),
        waits: false,
        path: "",
        server: |program, cores, _| Ok(Builtin::new("nfs", program, cores)),
        proper: None,
    }],
};

fn start_reference(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("nfs", own_program()?, wish.cores);
    Ok(Started::at_its_url(server.with_work(wish.work).start()?))
}

fn start_ganesha(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let request = GaneshaRequest { cores: wish.cores.to_vec(), ..GaneshaRequest::default() };
    Ok(Started::at_its_url(ganesha::start(&request)?))
}
