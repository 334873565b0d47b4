//! `plimsoll serve`: the reference servers.

use plimsoll_protocol::host::{Console, HostError};
use plimsoll_servers::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::{protocols, terminal};

/// Serves until Ctrl-C.
pub(crate) fn perform(args: &ServeArgs) -> Result<Exit, Failure> {
    let reference = protocols::reference(&args.verb)
        .ok_or_else(|| Failure::wrong(format!("there is no server {:?}", args.verb)))?;
    let console = Console { print: terminal::print, note: terminal::note, stop: stop_asked_for };
    (reference.serve)(&args.flags, &console)?;
    Ok(Exit::Valid)
}

/// Asked for by a signal, or by the end of standard input.
fn stop_asked_for(with_stdin: bool) -> Result<Stop, HostError> {
    let stop = Stop::new();
    if with_stdin {
        stop.request_when_stdin_ends();
    }
    stop_on_signals(stop.clone())?;
    Ok(stop)
}

fn stop_on_signals(stop: Stop) -> Result<(), HostError> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|e| HostError::unusable(format!("cannot listen for Ctrl-C: {e}")))?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            stop.request();
        }
    });
    Ok(())
}
