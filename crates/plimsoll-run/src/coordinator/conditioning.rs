//! Prepares the server's caches before a load point (`conditioning`). `warm` is left to its
//! protocol; `cold` empties the page cache of this host.

use std::fs::OpenOptions;
use std::io::Write as _;

use plimsoll_model::suite::{Conditioning, Suite};
use plimsoll_protocol::host::Target;

use crate::failure::Failure;

/// The kernel drops clean pages, directory entries and inodes when `3` is written here.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Refuses what is not possible here, before there is any load.
pub(super) fn check(suite: &Suite, targets: &[Target]) -> Result<(), Failure> {
    if suite.conditioning != Conditioning::Cold {
        return Ok(());
    }
    if let Some(elsewhere) = targets.iter().find(|target| !target.is_here) {
        return Err(Failure::unusable(format!(
            "{}: conditioning = \"cold\" empties the page cache of the server's host, and that is \
             not this one; run plimsoll there, or set conditioning=as_found and restart the server \
             before the run",
            elsewhere.name()
        )));
    }
    open().map(drop)
}

/// Runs before a load point, when its data is on the servers.
pub(super) fn before_point(suite: &Suite) -> Result<(), Failure> {
    if suite.conditioning != Conditioning::Cold {
        return Ok(());
    }
    // Pages that are not written back yet cannot be dropped.
    rustix::fs::sync();
    open()?.write_all(b"3\n").map_err(refused)
}

fn open() -> Result<std::fs::File, Failure> {
    OpenOptions::new().write(true).open(DROP_CACHES).map_err(refused)
}

fn refused(error: std::io::Error) -> Failure {
    Failure::unusable(format!(
        "{DROP_CACHES}: {error}; conditioning = \"cold\" empties the page cache, which only root \
         may; run as root, or set conditioning=as_found"
    ))
}
