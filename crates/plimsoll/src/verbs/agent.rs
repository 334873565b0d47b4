//! `plimsoll agent`, which a launcher starts, and `plimsoll agents`.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

use plimsoll_fleet::agent::AgentEnd;
use plimsoll_fleet::launcher::allow::Allowance;

use crate::agent::{greeting, serve};
use crate::cli::{AgentServeArgs, AgentsCheckArgs, AgentsVerb};
use crate::exit::{Exit, Failure};
use crate::fleet::Fleet;
use crate::signals::Signals;
use crate::terminal::{self, Live};

/// Serves the controller at the other end of standard input and output.
pub(crate) fn perform(args: &AgentServeArgs) -> Result<Exit, Failure> {
    let allowed = args.allow.as_deref().map(read_allowed).transpose()?;
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

/// Tries agents without any load.
pub(crate) fn perform_agents(verb: &AgentsVerb) -> Result<Exit, Failure> {
    match verb {
        AgentsVerb::Check(args) => check(args),
    }
}

/// Starts each agent and prints what is known of it.
fn check(args: &AgentsCheckArgs) -> Result<Exit, Failure> {
    let signals = Signals::listen()?;
    let mut live = Live::new(args.progress);
    let fleet = Fleet::launch(&args.asked(), None, (&signals, &mut live))?;
    drop(live);
    for (_, member) in fleet.living() {
        let Some(greeting) = &member.greeting else { continue };
        let clock = member
            .clock
            .map_or_else(String::new, |clock| format!(", clock within {}", clock.bound));
        let files = greeting.open_files_max.map_or("any number of".to_owned(), |n| n.to_string());
        let ports = if greeting.reserves_ports { "" } else { ", no ports below 1024" };
        terminal::print(&format!(
            "{}: plimsoll {} on {}, {}, cores {}, {files} open files{ports}{clock}\n",
            member.spec.name,
            greeting.version,
            greeting.host,
            greeting.system,
            plimsoll_servers::cores::list(&greeting.cores),
        ));
    }
    Ok(Exit::Valid)
}
