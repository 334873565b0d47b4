//! Which ports a server's services listen on.

use std::net::{IpAddr, SocketAddr};

use super::{ExportUrl, MountError, Reach, transport};
use crate::parameters::NfsVersion;
use crate::procedure;
use crate::refusal::{CallError, program_name};
use crate::wire::rpc::Service;
use crate::wire::{mount, portmap};
use plimsoll_protocol::net::{LinkKind, SourcePort};

/// Where the services are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// NFS.
    pub nfs: SocketAddr,
    /// Who knew its port.
    pub nfs_resolved_by: ResolvedBy,
    /// MOUNT, which NFSv4.1 does without.
    pub mount: Option<MountPort>,
}

/// Where MOUNT is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountPort {
    /// Its address.
    pub address: SocketAddr,
    /// How to call it.
    pub kind: LinkKind,
    /// Who knew its port.
    pub resolved_by: ResolvedBy,
}

/// Who knew a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolvedBy {
    /// The URL.
    Url,
    /// The portmapper.
    Portmapper,
    /// Nobody: it is the port registered for NFS.
    Default,
    /// Nobody: MOUNT answered at the port of NFS.
    Trial,
}

impl ResolvedBy {
    /// For messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Url => "as the URL says",
            Self::Portmapper => "from the portmapper",
            Self::Default => "the registered port of NFS",
            Self::Trial => "found at the port of NFS",
        }
    }
}

/// The port of a server of NFSv4.1, which needs no portmapper. RFC 8881 §2.9.3
pub(super) fn of_v4(export: &ExportUrl, ip: IpAddr) -> Ports {
    let (port, nfs_resolved_by) = match export.port {
        Some(port) => (port, ResolvedBy::Url),
        None => (NFS_PORT, ResolvedBy::Default),
    };
    Ports { nfs: SocketAddr::new(ip, port), nfs_resolved_by, mount: None }
}

/// The registered port of NFS. RFC 8881 §2.9.3
const NFS_PORT: u16 = 2049;

/// The service that mounts for NFS of `version`.
pub(super) fn mount_service(version: NfsVersion) -> Service {
    let version = match version {
        NfsVersion::V2 => mount::VERSION_1,
        NfsVersion::V3 | NfsVersion::V4_1 => mount::VERSION_3,
    };
    Service { program: mount::PROGRAM, version }
}

/// Finds both ports; queries the portmapper for those that the URL does not give.
pub(super) fn find(
    export: &ExportUrl,
    version: NfsVersion,
    reach: &Reach<'_>,
) -> Result<Ports, MountError> {
    let ip = reach.ip;
    let (nfs, nfs_resolved_by) = match export.port {
        Some(port) => (port, ResolvedBy::Url),
        None => (registered_nfs(export, version, reach)?, ResolvedBy::Portmapper),
    };
    let ports = |port, kind, resolved_by| Ports {
        nfs: SocketAddr::new(ip, nfs),
        nfs_resolved_by,
        mount: Some(MountPort { address: SocketAddr::new(ip, port), kind, resolved_by }),
    };
    if let Some(port) = export.mount_port {
        return Ok(ports(port, export.kind, ResolvedBy::Url));
    }
    let service = mount_service(version);
    let registration = match registered(service, export.kind, reach) {
        Ok(None) => registered(service, other(export.kind), reach)
            .map(|port| port.map(|port| (port, other(export.kind)))),
        answer => answer.map(|port| port.map(|port| (port, export.kind))),
    };
    match registration {
        Ok(Some((port, kind))) => Ok(ports(port, kind, ResolvedBy::Portmapper)),
        // A server without a portmapper often serves everything at one port.
        _ if serves_mount(nfs, export.kind, version, reach) => {
            Ok(ports(nfs, export.kind, ResolvedBy::Trial))
        }
        Ok(None) => Err(not_registered(service, export.kind, reach)),
        Err(source) => Err(MountError::NoMountPort {
            target: reach.target.clone(),
            portmapper: portmapper(ip),
            nfs,
            source,
        }),
    }
}

fn registered_nfs(
    export: &ExportUrl,
    version: NfsVersion,
    reach: &Reach<'_>,
) -> Result<u16, MountError> {
    let service = procedure::service(version);
    match registered(service, export.kind, reach) {
        Ok(Some(port)) => Ok(port),
        Ok(None) => Err(not_registered(service, export.kind, reach)),
        Err(source) => Err(MountError::NoPortmapper {
            target: reach.target.clone(),
            portmapper: portmapper(reach.ip),
            source,
        }),
    }
}

fn not_registered(service: Service, kind: LinkKind, reach: &Reach<'_>) -> MountError {
    MountError::NotRegistered {
        target: reach.target.clone(),
        program: program_name(service.program),
        version: service.version,
        transport: transport(kind),
    }
}

fn portmapper(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, portmap::PORT)
}

fn other(kind: LinkKind) -> LinkKind {
    match kind {
        LinkKind::Stream => LinkKind::Datagram,
        LinkKind::Datagram => LinkKind::Stream,
    }
}

/// GETPORT, RFC 1833 §3.2. Sent over TCP, where an absent portmapper is noticed at once.
fn registered(
    service: Service,
    kind: LinkKind,
    reach: &Reach<'_>,
) -> Result<Option<u16>, CallError> {
    let protocol = match kind {
        LinkKind::Stream => portmap::TCP,
        LinkKind::Datagram => portmap::UDP,
    };
    let mapper = Service { program: portmap::PROGRAM, version: portmap::VERSION };
    let at = portmapper(reach.ip);
    let mut client = reach.client(mapper, at, LinkKind::Stream, SourcePort::Any)?;
    let Service { program, version } = service;
    let mapping = portmap::Mapping { program, version, protocol, port: 0 };
    let get_port = portmap::Procedure::GetPort.number();
    let port: u32 = client.call_procedure(get_port, &mapping, |reply| reply.decode())?;
    Ok(u16::try_from(port).ok().filter(|port| *port > 0))
}

fn serves_mount(port: u16, kind: LinkKind, version: NfsVersion, reach: &Reach<'_>) -> bool {
    let (service, address) = (mount_service(version), SocketAddr::new(reach.ip, port));
    let null = mount::Procedure::Null.number();
    reach
        .client(service, address, kind, SourcePort::Any)
        .is_ok_and(|mut client| client.call_procedure(null, &(), |_| Ok(())).is_ok())
}
