//! Application servers. They are asked everything when the run is planned, and hold whatever the
//! run writes to them, so that nothing is left to greet here.

mod serve;
mod status;

use plimsoll_protocol::host::{
    Calibration, HostError, ProperCalibration, Reference, Registration, ServerWish, Started,
    any_room, any_source, greet_nobody, own_program,
};
use plimsoll_servers::Builtin;

use crate::script::shared_seed;
use status::StatusClient;

/// The registration.
pub const REGISTRATION: Registration = Registration {
    protocol: &crate::PROTOCOL,
    reference: Reference {
        verb: "app",
        command: serve::command,
        serve: serve::serve,
        start: start_reference,
        has_threads: true,
    },
    managed: &[],
    greet: greet_nobody,
    room: any_room,
    sources: any_source,
    directory: None,
    status: Some(|target| Box::new(StatusClient::at(target.address))),
    connect_to: None,
    refuse_user: None,
    calibration: &[Calibration {
        name: "app",
        suite: include_str!("calibration.toml"),
        waits: false,
        path: "",
        server: |program, cores, _| Ok(builtin(program, cores)),
        proper: Some(ProperCalibration {
            key: shared_seed,
            closed_suite: include_str!("calibration_closed.toml"),
        }),
    }],
};

fn start_reference(wish: &ServerWish<'_>) -> Result<Started, HostError> {
    let mut server = builtin(own_program()?, wish.cores);
    let threads = wish.threads.map(|count| ["--threads".into(), count.to_string().into()]);
    server.arguments = threads.into_iter().flatten().collect();
    Ok(Started::at_its_url(server.with_work(wish.work).start()?))
}

/// The reference server, `serve app` of `program`, with its data in a directory of its own below
/// `TMPDIR`. The number of its service threads does not follow from its cores.
pub fn builtin(program: std::path::PathBuf, cores: &[u32]) -> Builtin {
    Builtin { scratch: Some("plimsoll-segments-"), ..Builtin::new("app", program, cores) }
}
