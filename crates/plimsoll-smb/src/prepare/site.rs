//! One share of a run, and our directory on it.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::share::{Share, ShareError};
use plimsoll_protocol::net::SetupError;

/// A share and how to reach it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    /// As the user named it, for messages.
    pub name: &'a str,
    /// Goes up when the user wants everything to end.
    pub stop: &'a Arc<AtomicBool>,
    /// Opens a connection, which ends what it does soon after the flag is raised.
    pub open: OpenShare<'a>,
}

/// Opens a connection to a share.
pub(super) type OpenShare<'a> =
    &'a (dyn Fn(&Arc<AtomicBool>) -> Result<Box<dyn Share>, SetupError> + Sync);

impl Site<'_> {
    /// A connection that ends when the user says so.
    pub(super) fn connection(&self) -> Result<Box<dyn Share>, SetupError> {
        (self.open)(self.stop)
    }

    /// Says what could not be done here.
    pub(super) fn unable_to(&self, doing: impl Display) -> impl FnOnce(ShareError) -> SetupError {
        move |error| error.unable_to(doing, self.name)
    }
}
