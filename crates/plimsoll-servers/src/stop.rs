//! How a running server is asked to stop.

use std::io::Read;
use std::sync::Arc;

use tokio::sync::watch;

/// A request to stop, shared by whoever may ask and whoever must obey. Clones are one request.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks. Asking again changes nothing.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody has asked.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Asks once standard input ends: a process whose parent holds the other end of that pipe
    /// stops with its parent, however the parent ends.
    pub fn request_when_stdin_ends(&self) {
        let stop = self.clone();
        std::thread::spawn(move || {
            let mut unread = [0; 256];
            let mut stdin = std::io::stdin().lock();
            while matches!(stdin.read(&mut unread), Ok(1..)) {}
            stop.request();
        });
    }

    /// Waits until it is requested.
    pub async fn requested(&self) {
        let mut requests = self.0.subscribe();
        // An error would mean that the sender is gone, and `self` holds it.
        let _ = requests.wait_for(|asked| *asked).await;
    }
}
