//! The root of an export in NFSv4.1: LOOKUPs from the root of the server, and what the server says
//! of itself there.

use std::net::SocketAddr;

use plimsoll_model::disclosure::Setting;
use plimsoll_model::units::{Bytes, Nanos};

use super::{ExportUrl, MountError, Reach};
use crate::handles::OwnedHandle;
use crate::procedure::v4;
use crate::remote::Remote;
use crate::session::{Granted, NfsSite};
use crate::wire::v3::Status3;
use crate::wire::v4::attribute;

/// Handles may expire at any time: `FH4_VOLATILE_ANY`. RFC 8881 §4.2.3
const VOLATILE: u32 = 2;
/// What most servers have, where one does not say.
const LEASE_DEFAULT_S: u32 = 90;

/// Finds the export, and enters into `site` what it has. Answers with its handle, and facts for the
/// disclosure.
pub(super) fn find_root(
    remote: &mut Remote,
    export: &ExportUrl,
    (reach, at): (&Reach<'_>, SocketAddr),
    site: &mut NfsSite,
) -> Result<(OwnedHandle, Vec<Setting>), MountError> {
    let unusable = |reason| MountError::Unusable { target: reach.target.clone(), reason };
    let names: Vec<&[u8]> =
        export.path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    let path = export.path.escape_ascii();
    let export_root = remote
        .ask(
            |to| v4::encode_path(&names, to),
            |reply| {
                let (handle, attributes) = v4::export(reply.results(), names.len())?;
                let handle = OwnedHandle::from(handle);
                let (expiry, lease_s) = (attributes.fh_expire_type, attributes.lease_time_s);
                Ok((handle, attributes.supported, expiry, lease_s))
            },
        )
        .map_err(|error| match error.status() {
            Some(Status3::NOENT) => unusable(format!(
                "the server has no {path}; in NFS version 4.1 a path begins at the root of all \
                 exports (the server's pseudo file system), and may differ from that in version 3: \
                 see the server's configuration"
            )),
            _ => reach.failed(&format!("find the export {path}"), at)(error),
        })?;
    let (root, supported, expiry, lease_s) = export_root;
    if expiry.is_some_and(|expiry| expiry & VOLATILE != 0) {
        return Err(unusable(
            "the handles of this server may expire at any time (fh_expire_type), and a load that \
             looks names up again would measure something else; export a file system whose handles \
             stay"
                .to_owned(),
        ));
    }
    let lease_s = lease_s.filter(|lease_s| *lease_s > 0).unwrap_or(LEASE_DEFAULT_S);
    site.attributes = supported.map_or(attribute::OF_FILES, |it| it.and(attribute::OF_FILES));
    site.session.lease = Nanos::from_secs(u64::from(lease_s));
    let Granted { slots, operations_max, call_bytes_max, reply_bytes_max, back_channel, .. } =
        remote.granted();
    let bytes = |bytes: u32| Bytes(u64::from(bytes));
    let limits = format!(
        "{operations_max} operations a compound, calls of {}, replies of {}; {} slots granted to \
         a session that asked for {}",
        bytes(call_bytes_max),
        bytes(reply_bytes_max),
        slots,
        site.session.slots,
    );
    let back = if back_channel { "granted" } else { "not granted" };
    let facts = vec![
        Setting::new("session limits", limits),
        Setting::new("back channel", back),
        Setting::new("lease", format!("{lease_s} s")),
    ];
    Ok((root, facts))
}
