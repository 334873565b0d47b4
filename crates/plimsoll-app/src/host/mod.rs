//! Application servers, and the flags of `plimsoll serve app`. They are queried when the run is
//! planned and need no preparation before it, so nothing is left to greet here.

mod status;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, FromArgMatches as _};
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::event::TimeKind;
use plimsoll_model::units::{Bytes, Nanos};
use plimsoll_protocol::host::arguments::{parse_size, parse_span_arg};
use plimsoll_protocol::host::{
    Calibration, Console, HostError, ProperCalibration, Reference, Registration, ServerRequest,
    Started, Status, own_program,
};
use plimsoll_servers::delay::Work;
use plimsoll_servers::{Builtin, cores, raise_descriptor_limit};

use self::status::StatusClient;
use super::script::shared_seed;
use super::server::calibrated::{CalibratedConfig, CalibratedServer};
use super::server::{AppConfig, AppServer, Durability, SegmentsRoot, THREADS_MAX, Troubles};

/// The registration.
pub const REGISTRATION: Registration = Registration {
    status: Some(Status {
        of: |_, target| Some(Box::new(StatusClient::new(target.address))),
        unknown: "how busy the server's threads are and how long its queue is, since it answers no \
                  status request",
    }),
    calibration: &[Calibration {
        name: "app",
        spoken: None,
        suite: include_str!("calibration.toml"),
        waits: false,
        path: "",
        checked_time: TimeKind::Response,
        server: |program, cores, _| Ok(builtin(program, cores)),
        proper: Some(ProperCalibration {
            key: shared_seed,
            closed_suite: include_str!("calibration_closed.toml"),
        }),
    }],
    ..Registration::new(
        &crate::PROTOCOL,
        Reference { has_threads: true, ..Reference::new("app", command, serve, start_reference) },
    )
};

fn start_reference(request: &ServerRequest<'_>) -> Result<Started, HostError> {
    let mut server = builtin(own_program()?, request.cores).listening_on(request.listen_on);
    let threads = request.threads.map(|count| ["--threads".into(), count.to_string().into()]);
    server.arguments = threads.into_iter().flatten().collect();
    Ok(Started::at_its_url(server.with_work(request.work).start()?))
}

/// The reference server, `serve app` of `program`, with its data in a directory of its own below
/// `TMPDIR`. The number of its service threads does not follow from its cores.
pub fn builtin(program: PathBuf, cores: &[u32]) -> Builtin {
    Builtin { scratch: Some("plimsoll-segments-"), ..Builtin::new("app", program, cores) }
}

/// Its flags.
fn command() -> clap::Command {
    ServeAppArgs::augment_args(
        clap::Command::new("app")
            .about("The reference server of application transactions, and the calibrated one"),
    )
}

/// Serves until it is stopped.
fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeAppArgs::from_arg_matches(matches)?;
    // First of all, so that no thread of ours runs elsewhere; serving reports a failure.
    let _ = cores::pin_current_thread(&args.cores);
    raise_descriptor_limit();
    let listens = |url: &str| {
        console.listens(url, args.stop_with_stdin, &["transactions URL --profile quick"])
    };
    if let Some(spec) = args.calibrated.clone() {
        let (listen, log, cores) = (args.listen, args.log.clone(), args.cores.clone());
        let server = CalibratedServer::bind(&CalibratedConfig { listen, spec, log, cores })?;
        let stop = listens(&server.url())?;
        return Ok(server.serve_until(&stop)?);
    }
    let server = AppServer::bind(&config(&args, console))?;
    let stop = listens(&server.url())?;
    if let Some(url) = server.metrics_url() {
        (console.print)(&format!("metrics at {url}"));
    }
    Ok(server.serve_until(&stop)?)
}

fn config(args: &ServeAppArgs, console: &Console) -> AppConfig {
    AppConfig {
        root: match (&args.root, &args.temporary_root) {
            (Some(root), _) => SegmentsRoot::Kept(root.clone()),
            (None, Some(root)) => SegmentsRoot::TemporaryAt(root.clone()),
            (None, None) => SegmentsRoot::Temporary,
        },
        threads: args.threads,
        durability: args.durability,
        segment_bytes_max: args.segment_max.0,
        connections_max: args.connections_max.get(),
        request_timeout: Duration::from_nanos(args.request_timeout.0),
        memory_bytes: args.memory.map(|limit| limit.0),
        metrics: args.metrics,
        cores: args.cores.clone(),
        work: Work(args.work.unwrap_or_default()),
        troubles: Troubles::new(console.note),
        ..AppConfig::new(args.listen)
    }
}

#[derive(Debug, Args)]
struct ServeAppArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7415")]
    listen: SocketAddr,
    /// Keep the clients' data segments in this directory, new, empty or used so before [default: a
    /// temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Service threads, shared by all connections [default: 47 and one per processor]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroU32>,
    /// What a write waits for before it is answered
    #[arg(long, value_enum, default_value_t = Durability::None, value_name = "HOW")]
    durability: Durability,
    /// Largest data segment of a client
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    segment_max: Bytes,
    /// Most connections at a time, one more than clients for a run; more are refused
    #[arg(long, value_name = "N", default_value = "8192")]
    connections_max: NonZeroU32,
    /// End a connection whose request is not complete, or whose reply is not taken, after so long
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_span_arg)]
    request_timeout: Nanos,
    /// Limit the memory of the server, its part of the page cache included; needs root
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<Bytes>,
    /// Serve metrics in Prometheus' format at http://ADDR/metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Do no work: answer after service times drawn from a known law, as a queue with several
    /// servers, for example service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["root", "threads", "durability", "segment_max", "connections_max", "request_timeout", "memory", "metrics"])]
    calibrated: Option<CalibratedSpec>,
    /// Where a calibrated server writes what happened to each request, at its end
    #[arg(long, value_name = "FILE", requires = "calibrated")]
    log: Option<PathBuf>,
    /// Cores to use, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Spend this much extra processor time on each transaction, for example 50us: a slower server
    /// of known speed
    #[arg(long, value_name = "TIME", value_parser = parse_span_arg, conflicts_with = "calibrated")]
    work: Option<Nanos>,
    /// Keep the segments in this new or empty directory and remove it at the end
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "root")]
    temporary_root: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

fn parse_threads(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse::<NonZeroU32>().ok().filter(|threads| threads.get() <= THREADS_MAX);
    number.ok_or_else(|| format!("write a number of threads from 1 to {THREADS_MAX}"))
}
