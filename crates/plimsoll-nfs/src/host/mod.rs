//! NFS servers, and the flags of `plimsoll serve nfs`. Servers are queried when the run is planned
//! and store whatever the run writes, so nothing is left to greet here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

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
use super::server::{NfsConfig, NfsServer};

/// The registration.
pub const REGISTRATION: Registration = Registration {
    managed: &[Managed { name: "ganesha", start: |request, _| start_ganesha(request) }],
    refuse_user: Some("NFS knows users by number; leave the name out, this program's own are sent"),
    // GETATTR over TCP.
    calibration: &[Calibration {
        name: "nfs",
        spoken: None,
        suite: include_str!("calibration.toml"),
        waits: false,
        path: "",
        checked_time: TimeKind::Response,
        server: |program, cores, _| Ok(Builtin::new("nfs", program, cores)),
        proper: None,
    }],
    ..Registration::new(&crate::PROTOCOL, Reference::new("nfs", command, serve, start_reference))
};

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
        "The reference NFS server, versions 2 and 3 over TCP and UDP, with its files in memory; \
         no authentication: any client has full access",
    ))
}

/// Serves until it is stopped.
fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeNfsArgs::from_arg_matches(matches)?;
    // First, so that every thread of ours is pinned; serving reports a failure.
    let _ = cores::pin_current_thread(&args.cores);
    raise_descriptor_limit();
    let law = DelayLaw::from_spec(args.calibrated.as_ref(), args.log.as_ref())?;
    let config = NfsConfig {
        listen: args.listen,
        memory_bytes_max: args.memory_max.0,
        portmapper: args.portmapper,
        cores: args.cores,
    };
    let work = Work(args.work.unwrap_or_default());
    let mut server = NfsServer::bind(&config)?.with_work(work);
    if let Some(law) = &law {
        server = server.delayed_by(Arc::clone(law));
    }
    let stop = console.listens(
        &server.url(),
        args.stop_with_stdin,
        &["nfs-v3 URL --peak auto --profile quick"],
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
