//! Ctrl-C and SIGTERM: the first asks for a clean end, the second ends at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::{Exit, Failure};

/// Whether the user wants the run to end.
#[derive(Clone, Debug)]
pub(crate) struct Signals(Arc<AtomicBool>);

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the first signal finds the flag down and only raises it.
            let exit = i32::from(Exit::Interrupted as u8);
            signal_hook::flag::register_conditional_shutdown(signal, exit, Arc::clone(&asked))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&asked)))
                .map_err(|e| Failure::unusable(format!("cannot listen for Ctrl-C: {e}")))?;
        }
        Ok(Self(asked))
    }

    /// Nobody asks for the end.
    pub(crate) fn unheard() -> Self {
        Self(Arc::default())
    }

    /// Asks for a clean end once standard input has ended: whoever started this program is gone.
    pub(crate) fn ask_when_stdin_ends(&self) -> Result<(), Failure> {
        let asked = Arc::clone(&self.0);
        let wait = move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            asked.store(true, Ordering::Relaxed);
        };
        thread::Builder::new()
            .name("plimsoll-stdin".into())
            .spawn(wait)
            .map(drop)
            .map_err(|e| Failure::unusable(format!("cannot start a thread: {e}")))
    }

    /// Goes up when somebody asks.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
