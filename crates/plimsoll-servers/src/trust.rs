//! Whose a file is: what others can write is neither run nor shown.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

/// Bits of a mode that let others write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Root, or the user this program runs as.
pub(crate) fn is_root_or_us(user: u32) -> bool {
    user == 0 || user == rustix::process::geteuid().as_raw()
}

/// Whether only root and this user can have written it.
pub(crate) fn is_written_by_us_alone(metadata: &Metadata) -> bool {
    is_root_or_us(metadata.uid()) && metadata.mode() & WRITABLE_BY_OTHERS == 0
}
