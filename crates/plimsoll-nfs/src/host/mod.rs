//! NFS servers, and the flags of `plimsoll serve nfs`. Servers are queried when the run is planned
//! and store whatever the run writes, so nothing is left to greet here.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches as _};
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::event::TimeKind;
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_protocol::host::arguments::{parse_size, parse_span_arg};
use plimsoll_protocol::host::{
    Calibration, Console, HostError, Managed, Reference, Registration, ServerRequest, Started,
    own_program,
};
use plimsoll_servers::delay::{DelayLaw, Work};
use plimsoll_servers::{Builtin, cores, raise_descriptor_limit};

use super::server::ganesha::{self, GaneshaRequest};
use super::server::{FewerSlots, Nfs4Config, NfsConfig, NfsServer};

/// The registration.
pub const REGISTRATION: Registration = Registration {
    managed: &[Managed { name: "ganesha", start: |request, _| start_ganesha(request) }],
    refuse_user: Some("NFS knows users by number; leave the name out, this program's own are sent"),
    calibration: &[
        calibration("nfs", |program, cores, _| Ok(Builtin::new("nfs", program, cores))),
        calibration("nfs-v4.1", |program, cores, _| {
            let arguments = ["--version", "4.1"].map(Into::into).into();
            Ok(Builtin { arguments, ..Builtin::new("nfs", program, cores) })
        }),
    ],
    ..Registration::new(&crate::PROTOCOL, Reference::new("nfs", command, serve, start_reference))
};

/// GETATTR over TCP.
const fn calibration(
    name: &'static str,
    server: fn(PathBuf, &[u32], &Path) -> Result<Builtin, HostError>,
) -> Calibration {
    Calibration {
        name,
        spoken: None,
        suite: include_str!("calibration.toml"),
        waits: false,
        path: "",
        checked_time: TimeKind::Response,
        server,
        proper: None,
    }
}

fn start_reference(request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let server = Builtin::new("nfs", own_program()?, request.cores).listening_on(request.listen_on);
    Ok(Started::at_its_url(server.with_work(request.work).start()?))
}

fn start_ganesha(requested: &ServerRequest<'_>) -> Result<Started, HostError> {
    let (cores, listen_on) = (requested.cores.to_vec(), Some(requested.listen_on));
    let request = GaneshaRequest { cores, listen_on, ..GaneshaRequest::default() };
    Ok(Started::at_its_url(ganesha::start(&request)?))
}

/// Its flags.
fn command() -> clap::Command {
    ServeNfsArgs::augment_args(clap::Command::new("nfs").about(
        "The reference NFS server, versions 2 and 3 over TCP and UDP and 4.1 over TCP, with its \
         files in memory; no authentication: any client has full access",
    ))
}

/// Serves until it is stopped.
fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeNfsArgs::from_arg_matches(matches)?;
    // First, so that every thread of ours is pinned; serving reports a failure.
    let _ = cores::pin_current_thread(&args.cores);
    raise_descriptor_limit();
    let law = DelayLaw::from_spec(args.calibrated.as_ref(), args.log.as_ref())?;
    let v4 = args.v4.config();
    let config = NfsConfig {
        listen: args.listen,
        memory_bytes_max: args.memory_max.0,
        portmapper: args.portmapper,
        cores: args.cores,
    };
    let work = Work(args.work.unwrap_or_default());
    let mut server =
        NfsServer::bind(&config)?.with_work(work).with_version(args.version).with_v4(v4);
    if let Some(law) = &law {
        server = server.delayed_by(Arc::clone(law));
    }
    let stop = console.listens(
        &server.url(),
        args.stop_with_stdin,
        &[match args.version {
            Some(2) => "nfs-v2 URL --peak auto --profile quick",
            Some(4) => "nfs-v4.1 URL --peak auto --profile quick",
            _ => "nfs-v3 URL --peak auto --profile quick",
        }],
    )?;
    server.serve_until(&stop)?;
    law.map_or(Ok(()), |law| law.write_log())?;
    Ok(())
}

#[derive(Debug, Args)]
struct ServeNfsArgs {
    /// Address to listen on, TCP and UDP; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:2049")]
    listen: SocketAddr,
    /// Most memory that files and their names may take
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = parse_size)]
    memory_max: Bytes,
    /// Answer as a portmapper too, normally on port 111
    #[arg(long, value_name = "ADDR")]
    portmapper: Option<SocketAddr>,
    /// Cores to use, for example 0,2; one UDP thread each
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Serve only this version of NFS
    #[arg(long, value_name = "VERSION", value_parser = served_version())]
    version: Option<u32>,
    #[command(flatten)]
    v4: Nfs4Args,
    /// Spend this much additional processor time on each call, for example 50us: a slower server of
    /// known speed
    #[arg(long, value_name = "TIME", value_parser = parse_span_arg)]
    work: Option<Nanos>,
    /// Hold each reply to GETATTR until a queue of known law would have served it, for example
    /// service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", hide = true)]
    calibrated: Option<CalibratedSpec>,
    /// File for its log of those replies, written at its end
    #[arg(long, value_name = "FILE", hide = true, requires = "calibrated")]
    log: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

/// Versions by the names that suites and URLs give them, as the number in calls.
fn served_version() -> impl TypedValueParser<Value = u32> {
    PossibleValuesParser::new(["2", "3", "4.1"]).map(|name| match name.as_str() {
        "2" => 2,
        "3" => 3,
        _ => 4,
    })
}

// How version 4.1 behaves, for tests of clients. A doc comment would be the help of the whole.
#[derive(Debug, Args)]
struct Nfs4Args {
    /// Most slots of a session
    #[arg(long, value_name = "SLOTS", hide = true)]
    slots: Option<u32>,
    /// Seconds after which an idle client is forgotten
    #[arg(long, value_name = "SECONDS", hide = true)]
    lease: Option<u32>,
    /// Delegate files to clients that want it
    #[arg(long, hide = true)]
    delegations: bool,
    /// Ask the clients in the middle of their sessions to use only this many slots
    #[arg(long, value_name = "SLOTS", hide = true, requires = "fewer_slots_after")]
    fewer_slots: Option<u32>,
    /// From this compound of a session
    #[arg(long, value_name = "COMPOUNDS", hide = true, requires = "fewer_slots")]
    fewer_slots_after: Option<u64>,
}

impl Nfs4Args {
    fn config(&self) -> Nfs4Config {
        let default = Nfs4Config::default();
        let fewer_slots = self.fewer_slots.zip(self.fewer_slots_after);
        Nfs4Config {
            slots_max: self.slots.unwrap_or(default.slots_max),
            lease_s: self.lease.unwrap_or(default.lease_s),
            delegations: self.delegations,
            fewer_slots: fewer_slots
                .map(|(slots, after_compounds)| FewerSlots { slots, after_compounds }),
        }
    }
}
