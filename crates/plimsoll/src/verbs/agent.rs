//! `plimsoll agent`, which a launcher starts.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_fleet::agent::AgentEnd;
use plimsoll_fleet::launcher::allow::Allowance;
use plimsoll_run::agent::{greeting, serve};
use plimsoll_run::text_file;

use crate::exit::{Exit, Failure};
use crate::interrupts;

/// `plimsoll agent`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AgentServeArgs {
    /// File of what controllers may request: targets, rates, cores
    #[arg(long, value_name = "FILE")]
    pub allow: Option<PathBuf>,
}

/// Serves the controller at the other end of standard input and output.
pub(crate) fn perform(args: &AgentServeArgs) -> Result<Exit, Failure> {
    let allowed = args.allow.as_deref().map(read_allowed).transpose()?.unwrap_or_default();
    let signals = interrupts::listen()?;
    let streams = (io::stdin(), io::stdout());
    match serve(greeting(&signals), allowed, &signals, streams)? {
        AgentEnd::Goodbye => Ok(Exit::Valid),
        AgentEnd::InputEnded if signals.is_stop_requested() => Ok(Exit::Interrupted),
        end => Err(Failure::unusable(end.to_string())),
    }
}

fn read_allowed(path: &Path) -> Result<Allowance, Failure> {
    let wrong = |why: String| Failure::wrong(format!("--allow {}: {why}", path.display()));
    let text = text_file::read(path).map_err(|e| wrong(e.to_string()))?;
    Allowance::parse(&text, &addresses).map_err(|e| wrong(e.to_string()))
}

/// Addresses of a host name in the file.
fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}
