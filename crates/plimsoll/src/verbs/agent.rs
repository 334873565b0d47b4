//! `plimsoll agent`, which a launcher starts.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use plimsoll_fleet::agent::AgentEnd;
use plimsoll_fleet::launcher::allow::Allowance;

use crate::agent::{greeting, serve};
use crate::cli::AgentServeArgs;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;

/// Serves the controller at the other end of standard input and output.
pub(crate) fn perform(args: &AgentServeArgs) -> Result<Exit, Failure> {
    let allowed = args.allow.as_deref().map(read_allowed).transpose()?.unwrap_or_default();
    let signals = Signals::listen()?;
    match serve(greeting(&signals), allowed, &signals)? {
        AgentEnd::Goodbye => Ok(Exit::Valid),
        AgentEnd::InputEnded if signals.is_asked() => Ok(Exit::Interrupted),
        end => Err(Failure::unusable(end.to_string())),
    }
}

fn read_allowed(path: &Path) -> Result<Allowance, Failure> {
    let wrong = |why: String| Failure::wrong(format!("--allow {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    Allowance::parse(&text, &addresses).map_err(|e| wrong(e.to_string()))
}

/// Addresses of a name in the file.
fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}
