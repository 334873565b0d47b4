//! Flags of `plimsoll serve web`, and what they start.

use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, FromArgMatches as _};
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::DEFAULT_SEED;
use plimsoll_protocol::host::arguments::{parse_rate, parse_span_arg};
use plimsoll_protocol::host::{Console, HostError};
use plimsoll_servers::cores;
use plimsoll_servers::delay::{DelayLaw, Work};

use crate::fileset::{self, FileSet};
use crate::replay;
use crate::server::journey::JourneySite;
use crate::server::{TlsSource, WebConfig, WebContent, WebServer};

/// How it is measured.
const WEB_RUNS: [&str; 2] =
    ["web-url URLbytes/1024 --clients 64 --for 10s", "web-url URLbytes/1024 --rate 2000 --for 10s"];

/// Its flags.
pub(super) fn command() -> clap::Command {
    ServeWebArgs::augment_args(clap::Command::new("web").about(
        "The reference web server: HTTP/1.1, HTTP/2 with prior knowledge, or by ALPN with --cert",
    ))
}

/// Serves until it is stopped.
pub(super) fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeWebArgs::from_arg_matches(matches)?;
    // First of all, so that no thread of ours runs elsewhere; serving reports a failure.
    let _ = cores::pin_current_thread(&args.cores);
    let tls = args
        .cert
        .as_ref()
        .zip(args.key.as_ref())
        .map(|(cert, key)| TlsSource::Files { certificate: cert.clone(), key: key.clone() });
    let content = content(&args)?;
    let config = WebConfig { listen: args.listen, content, cores: args.cores.clone(), tls };
    let law = DelayLaw::from_spec(args.calibrated.as_ref(), args.log.as_ref())?;
    let work = Work(args.work.unwrap_or_default());
    let mut server = WebServer::bind(&config)?.with_work(work);
    if let Some(law) = &law {
        server = server.delayed_by(Arc::clone(law));
    }
    let journey = args.journey.as_ref();
    let replayed = args.replay.as_ref().map(|_| "DIR/replay.toml URL".to_owned());
    let users =
        journey.map(|file| format!("web-users URL --journey {} --users 20", file.display()));
    let own_run = users.or(replayed);
    let runs = own_run.as_deref().map_or(WEB_RUNS.to_vec(), |users| vec![users]);
    let stop = console.listens(&server.url(), args.stop_with_stdin, &runs)?;
    server.serve_until(&stop)?;
    law.map_or(Ok(()), |law| law.write_log())?;
    Ok(())
}

fn content(args: &ServeWebArgs) -> Result<WebContent, HostError> {
    if let Some(root) = &args.root {
        return Ok(WebContent::Directory(root.clone()));
    }
    if let Some(file) = &args.journey {
        let journeys = super::read_journey(file)?;
        let lifetime = args.expire.map(|span| Duration::from_nanos(span.0));
        let site = JourneySite::new(journeys, lifetime);
        let site =
            site.map_err(|reason| HostError::wrong(format!("{}: {reason}", file.display())))?;
        return Ok(WebContent::Journey(Arc::new(site)));
    }
    if let Some(path) = &args.replay {
        let unread = |e| HostError::wrong(format!("cannot read {}: {e}", path.display()));
        let mut reader = BufReader::new(File::open(path).map_err(unread)?);
        let replay = replay::file::read(&mut reader, &path.display().to_string());
        return Ok(WebContent::Replay(Arc::new(
            replay.map_err(|e| HostError::wrong(e.to_string()))?,
        )));
    }
    let directories = args.directories.unwrap_or_else(|| fileset::directories_for(args.peak, 1.0));
    Ok(WebContent::file_set(FileSet::new(args.seed, directories)))
}

#[derive(Debug, Args)]
struct ServeWebArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Serve this directory instead of a file set from memory; links that leave it are refused
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Serve the pages of this journey (docs/users.md), and count them at /plimsoll-journey.json
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    journey: Option<PathBuf>,
    /// Answer the requests of this replay (docs/derive.md) with the statuses and sizes of its log
    #[arg(long, value_name = "FILE", conflicts_with_all = ["root", "journey"])]
    replay: Option<PathBuf>,
    /// With --journey: tokens and sessions expire after this long
    #[arg(long, value_name = "SPAN", requires = "journey", value_parser = parse_span_arg)]
    expire: Option<Nanos>,
    /// Size the file set in memory for this highest load, in ops/s
    #[arg(long, value_name = "N", default_value_t = 1_000.0, value_parser = parse_rate, conflicts_with = "root")]
    peak: f64,
    /// Directories of the file set in memory, instead of --peak
    #[arg(long, value_name = "N", conflicts_with_all = ["root", "peak"])]
    directories: Option<u32>,
    /// Seed of the contents
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Certificate chain for https, PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key for https, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Cores to use, one thread each, for example 0,2
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Spend this much extra processor time on each request, for example 50us: a slower server of
    /// known speed
    #[arg(long, value_name = "TIME", value_parser = parse_span_arg)]
    work: Option<Nanos>,
    /// Hold each reply until a queue of known law would have served it, for example
    /// service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", hide = true)]
    calibrated: Option<CalibratedSpec>,
    /// Where it writes what happened to each of those, at its end
    #[arg(long, value_name = "FILE", hide = true, requires = "calibrated")]
    log: Option<PathBuf>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}
