//! The portmapper: reports where MOUNT and NFS listen. Nothing can be registered from outside.

use crate::wire::portmap::{DumpRes, Mapping, PORT, PROGRAM, Procedure, TCP, UDP, VERSION};
use crate::wire::rpc::ReplyOutcome;
use crate::wire::{Encode as _, mount};

use super::{CallContext, MOUNT_VERSIONS, NFS, NFS_VERSIONS};

/// What the portmapper tells.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// Port of NFS and MOUNT, the same for TCP and UDP.
    pub port: u16,
}

impl Registered {
    fn mappings(self) -> Vec<Mapping> {
        let ours = [(NFS, NFS_VERSIONS), (mount::PROGRAM, MOUNT_VERSIONS)];
        let mut all: Vec<Mapping> = ours
            .iter()
            .flat_map(|(program, versions)| versions.map(|version| (*program, version)))
            .flat_map(|(program, version)| [TCP, UDP].map(|p| (program, version, p, self.port)))
            .chain([TCP, UDP].map(|protocol| (PROGRAM, VERSION, protocol, PORT)))
            .map(|(program, version, protocol, port)| Mapping {
                program,
                version,
                protocol,
                port: port.into(),
            })
            .collect();
        all.sort_by_key(|mapping| mapping.program);
        all
    }
}

pub(super) fn answer(
    registered: &Registered,
    context: &CallContext<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ReplyOutcome> {
    let procedure = Procedure::from_number(context.procedure);
    match procedure.ok_or(ReplyOutcome::ProcedureUnavailable)? {
        Procedure::Null => context.arguments::<()>()?,
        Procedure::GetPort => {
            let requested: Mapping = context.arguments()?;
            let same =
                |m: &Mapping| (m.program, m.protocol) == (requested.program, requested.protocol);
            let matching: Vec<Mapping> = registered.mappings().into_iter().filter(same).collect();
            // RFC 1833 §3: a port of another version is better than none.
            let exact = matching.iter().find(|mapping| mapping.version == requested.version);
            exact.or(matching.first()).map_or(0, |mapping| mapping.port).encode(out);
        }
        Procedure::Dump => {
            context.arguments::<()>()?;
            DumpRes::new(&registered.mappings()).encode(out);
        }
        // Refused, as RFC 1833 §3 allows: false.
        Procedure::Set | Procedure::Unset => {
            context.arguments::<Mapping>()?;
            false.encode(out);
        }
        Procedure::CallIt => return Err(ReplyOutcome::ProcedureUnavailable),
    }
    Ok(())
}
