//! Is there room, before the first byte.

use plimsoll_model::units::Bytes;

use super::share::Share;
use super::site::Site;
use plimsoll_protocol::net::SetupError;

/// Left free beyond our files: the file system's own needs, and other users of it.
pub(super) const SPARE_BYTES: u64 = 32 * 1024 * 1024;

/// Refuses what would not fit: `missing` bytes of files, and `growth` that the clients themselves
/// will write. Answers whether nothing was to be asked.
pub(super) fn check(
    share: &mut dyn Share,
    site: &Site<'_>,
    missing: Bytes,
    growth: Bytes,
) -> Result<(), SetupError> {
    if missing.0 == 0 && growth.0 == 0 {
        return Ok(());
    }
    let free = share.free_bytes().map_err(site.unable_to("see how much space is free"))?;
    let needed = missing.0.saturating_add(growth.0).saturating_add(SPARE_BYTES);
    if free >= needed {
        return Ok(());
    }
    Err(SetupError::Unusable(format!(
        "{}: the workspaces and what the clients write need {} more, {} are free there; nothing \
         was written; free some space, ask for fewer clients, or scale the workspaces down with \
         --set workload.workspace_mib or --profile quick",
        site.name,
        Bytes(needed),
        Bytes(free)
    )))
}
