//! Ctrl-C and SIGTERM: the first requests a clean end, the second ends at once.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;

use plimsoll_run::Signals;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{Exit, Failure};

/// Listens for both from now on.
pub(crate) fn listen() -> Result<Signals, Failure> {
    let signals = Signals::unheard();
    for signal in [SIGINT, SIGTERM] {
        // Order matters: the first signal sees the flag unset and only sets it.
        let exit = i32::from(Exit::Interrupted as u8);
        signal_hook::flag::register_conditional_shutdown(signal, exit, signals.flag())
            .and_then(|_| signal_hook::flag::register(signal, signals.flag()))
            .map_err(|e| Failure::unusable(format!("cannot listen for Ctrl-C: {e}")))?;
    }
    Ok(signals)
}

/// Requests a clean end when standard input ends: the program that started this one is gone.
pub(crate) fn ask_when_stdin_ends(signals: &Signals) -> Result<(), Failure> {
    let stop_requested = signals.flag();
    let wait = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop_requested.store(true, Ordering::Relaxed);
    };
    thread::Builder::new()
        .name("plimsoll-stdin".into())
        .spawn(wait)
        .map(drop)
        .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))
}
