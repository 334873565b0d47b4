//! Passing bytes on between a client and a server, with a word in what happens to them.

pub mod tcp;
pub mod udp;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// A panic in another thread is reported there; here the value is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
