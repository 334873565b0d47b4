//! From a URL to the root handle of an export: portmapper, MOUNT, FSINFO.

mod error;
mod ports;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use plimsoll_engine::rng::key;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::Bytes;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::net::{ChannelError, Dial, LinkKind, SetupError, SourcePort};
use plimsoll_protocol::percent_decoded;

use super::client::{ClientSeed, RpcClient};
use super::handles::OwnedHandle;
use super::parameters::NfsVersion;
use super::procedure;
use super::procedure::results::Limits;
use super::refusal::{CallError, NfsStatus};
use super::remote::Remote;
use super::wire::flaws::Flaws;
use super::wire::mount::{
    ExportRes, Mount1Res, Mount3Res, MountArgs, MountReply, Procedure, UnmountArgs,
};
use super::wire::rpc::{AuthSys, Credential, Groups, ReplyOutcome, Service};
use super::wire::xdr::{Decode, Name, Path, Words, XdrError, XdrIn};

pub use self::error::{MountError, PortRefusal};
pub use self::ports::{KnownBy, Ports};

/// Transfers of the method's blocks need this much.
pub const TRANSFER_BYTES_MIN: u32 = 8192;

/// Who we say we are (AUTH_SYS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of this host.
    pub machine: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Identity {
    /// As every call carries it.
    pub fn credential(&self) -> Credential {
        Credential::system(&AuthSys {
            stamp: 0,
            machine: Name::from(self.machine.as_str()),
            uid: self.uid,
            gid: self.gid,
            gids: Groups(Words::new(&[])),
        })
    }
}

/// What to mount.
#[derive(Clone, Copy, Debug)]
pub struct MountRequest<'a> {
    /// The server and its export.
    pub target: &'a ResolvedTarget,
    /// Version of NFS the suite speaks.
    pub version: NfsVersion,
    /// Transport when the URL names none.
    pub transport: LinkKind,
    /// Who we say we are.
    pub identity: &'a Identity,
    /// Ports to connect from; where a server refuses any, those below 1024 are tried.
    pub source: SourcePort,
    /// Differs from run to run, so that xids do.
    pub nonce: u64,
}

/// An export that can be used.
pub struct Mounted {
    /// As the user named it, without password.
    pub target: String,
    /// Version of NFS.
    pub version: NfsVersion,
    /// How calls travel.
    pub kind: LinkKind,
    /// Where the services are.
    pub ports: Ports,
    /// Handle of the export's root.
    pub root: OwnedHandle,
    /// What the server can transfer.
    pub limits: Limits,
    /// Ports to connect from.
    pub source: SourcePort,
    /// Sent with every call.
    pub credential: Credential,
    identity: Identity,
    nonce: u64,
    clients_made: AtomicU32,
}

/// What all calls of a mounting share.
pub struct Reach<'a> {
    target: String,
    ip: IpAddr,
    dial: &'a dyn Dial,
    credential: Credential,
    nonce: u64,
    clients_made: AtomicU32,
}

impl Reach<'_> {
    fn client(
        &self,
        service: Service,
        address: SocketAddr,
        kind: LinkKind,
        source: SourcePort,
    ) -> Result<RpcClient, ChannelError> {
        let seed = ClientSeed {
            service,
            credential: self.credential.clone(),
            first_xid: first_xid(self.nonce, &self.clients_made),
            stop: self.dial.stop(),
            log: self.dial.nonconformities(),
        };
        Ok(RpcClient::new(self.dial.dial(address, kind, source)?, kind, seed))
    }

    fn failed(&self, doing: &str, at: SocketAddr) -> impl FnOnce(CallError) -> MountError {
        let place = format!("target {}, {at}", self.target);
        let doing = doing.to_owned();
        move |error| {
            let refused = match &error {
                CallError::Refused(refusal) => {
                    matches!(refusal.outcome, ReplyOutcome::AuthError(_))
                }
                CallError::Status(status) => {
                    matches!(*status, NfsStatus::PERM | NfsStatus::ACCES)
                }
                _ => false,
            };
            MountError::Call(error.unable_to(&doing, place), refused.then_some(PortRefusal))
        }
    }
}

/// Exports of one server have xids of their own: to its memory of replies they are one client.
fn nonce_of(request: &MountRequest<'_>) -> u64 {
    let url = request.target.url.to_string();
    url.bytes().fold(request.nonce, |sum, byte| key(&[sum, u64::from(byte)]))
}

/// Clients begin as far from each other as can be, however many there are, and those of another
/// run elsewhere: 2²⁴ xids lie between the first 256.
fn first_xid(nonce: u64, clients_made: &AtomicU32) -> u32 {
    let client = clients_made.fetch_add(1, Ordering::Relaxed);
    (key(&[nonce]) as u32).wrapping_add(client.reverse_bits())
}

/// Mounts an export; when it is refused, once more from a port below 1024.
pub fn mount(request: &MountRequest<'_>, dial: &dyn Dial) -> Result<Mounted, MountError> {
    let export = ExportUrl::read(&request.target.url, request.version, request.transport)?;
    let reach = Reach {
        target: request.target.url.to_string(),
        ip: request.target.address.ip(),
        dial,
        credential: request.identity.credential(),
        nonce: nonce_of(request),
        clients_made: AtomicU32::new(0),
    };
    let ports = ports::find(&export, request.version, &reach)?;
    match attempt(&export, request, ports, &reach, request.source) {
        Err(error) if error.may_be_the_port() && request.source == SourcePort::Any => {
            attempt(&export, request, ports, &reach, SourcePort::Reserved)
        }
        other => other,
    }
}

fn attempt(
    export: &ExportUrl,
    request: &MountRequest<'_>,
    ports: Ports,
    reach: &Reach<'_>,
    source: SourcePort,
) -> Result<Mounted, MountError> {
    let failed = |doing| reach.failed(doing, ports.nfs);
    let client = reach
        .client(procedure::service(request.version), ports.nfs, export.kind, source)
        .map_err(|error| failed("reach NFS")(error.into()))?;
    let mut remote = Remote::new(client, request.version);
    remote.null().map_err(failed("call NFS"))?;
    let root = mount_root(export, request.version, ports, reach, source)?;
    let limits = remote.limits(&root).map_err(failed("ask for the server's limits (FSINFO)"))?;
    let bytes = limits.read_bytes_max.min(limits.write_bytes_max);
    if bytes < TRANSFER_BYTES_MIN {
        return Err(MountError::Transfers { target: reach.target.clone(), bytes });
    }
    Ok(Mounted {
        target: reach.target.clone(),
        version: request.version,
        kind: export.kind,
        ports,
        root,
        limits,
        source,
        credential: reach.credential.clone(),
        identity: request.identity.clone(),
        nonce: reach.nonce,
        clients_made: AtomicU32::new(reach.clients_made.load(Ordering::Relaxed)),
    })
}

fn mount_root(
    export: &ExportUrl,
    version: NfsVersion,
    ports: Ports,
    reach: &Reach<'_>,
    source: SourcePort,
) -> Result<OwnedHandle, MountError> {
    let service = ports::mount_service(version);
    let failed = |doing| reach.failed(doing, ports.mount);
    let mut client = reach
        .client(service, ports.mount, ports.mount_kind, source)
        .map_err(|error| failed("reach MOUNT")(error.into()))?;
    let path = Path(&export.path);
    let results = client
        .call(Procedure::Mount.number(), &MountArgs { path })
        .map_err(failed("mount the export"))?;
    let (reply, flaws) =
        root_handle(version, &results).map_err(|error| failed("mount the export")(error.into()))?;
    client.note(flaws);
    let status = match reply {
        MountReply::Ok(handle) => {
            // The server's list of mounts is for people; nothing depends on our leaving it.
            let _ = client.call(Procedure::Unmount.number(), &UnmountArgs { path });
            return Ok(handle);
        }
        MountReply::Err(status) => status,
    };
    let exports = client.call(Procedure::Export.number(), &());
    Err(MountError::Export {
        target: reach.target.clone(),
        export: path.to_string(),
        status,
        exports: exports.map(|results| export_names(&results)).unwrap_or_default(),
    })
}

fn root_handle(
    version: NfsVersion,
    results: &[u8],
) -> Result<(MountReply<OwnedHandle>, Flaws), XdrError> {
    let mut input = XdrIn::tolerant(results);
    let reply = match version {
        NfsVersion::V2 => Mount1Res::decode(&mut input)?.map(|ok| ok.handle.into()),
        NfsVersion::V3 => Mount3Res::decode(&mut input)?.map(|ok| ok.handle.into()),
    };
    Ok((reply, input.into_flaws()))
}

fn export_names(results: &[u8]) -> Vec<String> {
    let exports = ExportRes::decode(&mut XdrIn::tolerant(results));
    exports
        .map(|list| list.into_iter().map(|export| export.directory.to_string()).collect())
        .unwrap_or_default()
}

fn transport(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Stream => "TCP",
        LinkKind::Datagram => "UDP",
    }
}

impl Mounted {
    /// A channel to the export. `stop` ends what is under way on it.
    pub fn remote(&self, dial: &dyn Dial, stop: Arc<AtomicBool>) -> Result<Remote, SetupError> {
        let channel = dial
            .dial(self.ports.nfs, self.kind, self.source)
            .map_err(|error| CallError::from(error).unable_to("reach NFS", self.place()))?;
        let seed = ClientSeed {
            service: procedure::service(self.version),
            credential: self.credential.clone(),
            first_xid: first_xid(self.nonce, &self.clients_made),
            stop,
            log: dial.nonconformities(),
        };
        Ok(Remote::new(RpcClient::new(channel, self.kind, seed), self.version))
    }

    /// What carries the calls, as suites say it.
    pub fn transport(&self) -> &'static str {
        match self.kind {
            LinkKind::Stream => "tcp",
            LinkKind::Datagram => "udp",
        }
    }

    /// For messages: the target.
    pub fn place(&self) -> String {
        format!("target {}", self.target)
    }

    /// What was found, for the disclosure.
    pub fn facts(&self) -> Vec<Setting> {
        let Ports { nfs, mount, nfs_known_by, mount_known_by, .. } = self.ports;
        let version = match self.version {
            NfsVersion::V2 => 2,
            NfsVersion::V3 => 3,
        };
        let Identity { uid, gid, .. } = self.identity;
        let read = Bytes(u64::from(self.limits.read_bytes_max));
        let write = Bytes(u64::from(self.limits.write_bytes_max));
        vec![
            Setting::new("NFS", format!("version {version} over {}", transport(self.kind))),
            Setting::new("NFS service", format!("{nfs}, {}", nfs_known_by.as_str())),
            Setting::new("MOUNT service", format!("{mount}, {}", mount_known_by.as_str())),
            Setting::new("identity", format!("AUTH_SYS, uid {uid}, gid {gid}")),
            Setting::new("transfer limits", format!("READ {read}, WRITE {write}")),
            Setting::new(
                "source ports",
                match self.source {
                    SourcePort::Any => "any",
                    SourcePort::Reserved => "below 1024 when permitted",
                },
            ),
        ]
    }
}

/// Keys of the query.
const KEYS: [&str; 3] = ["version", "transport", "mountport"];

/// An export, as the URL and the suite name it:
/// `nfs://host[:port]/export?version=3&transport=tcp&mountport=N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportUrl {
    /// Path of the export, decoded.
    pub path: Vec<u8>,
    /// How calls travel.
    pub kind: LinkKind,
    /// Port of NFS, when given.
    pub port: Option<u16>,
    /// Port of MOUNT, when given.
    pub mount_port: Option<u16>,
}

impl ExportUrl {
    /// Reads a URL. `version` is the suite's, which the URL may repeat but not change; `kind` is
    /// taken when the URL names no transport.
    pub fn read(url: &TargetUrl, version: NfsVersion, kind: LinkKind) -> Result<Self, MountError> {
        let wrong = |key: &str, value: &str, help: String| MountError::Parameter {
            target: url.to_string(),
            parameter: format!("{key}={value}"),
            help,
        };
        for pair in url.query.iter().flat_map(|query| query.split('&')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !KEYS.contains(&key) {
                return Err(wrong(key, value, format!("known are {}", KEYS.join(", "))));
            }
        }
        let number = match version {
            NfsVersion::V2 => "2",
            NfsVersion::V3 => "3",
        };
        if let Some(other) = url.query_value("version").filter(|given| *given != number) {
            let help = format!("this suite speaks version {number}; use suite nfs-v2 or nfs-v3");
            return Err(wrong("version", other, help));
        }
        let kind = match url.query_value("transport") {
            None => kind,
            Some("tcp") => LinkKind::Stream,
            Some("udp") => LinkKind::Datagram,
            Some(other) => return Err(wrong("transport", other, "write tcp or udp".to_owned())),
        };
        let mount_port = match url.query_value("mountport").map(|text| (text, text.parse())) {
            None => None,
            Some((_, Ok(port))) if port > 0 => Some(port),
            Some((text, _)) => {
                let help = "a port is a number from 1 to 65535".to_owned();
                return Err(wrong("mountport", text, help));
            }
        };
        let mut path = percent_decoded(&url.path);
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        Ok(Self { path, kind, port: url.port, mount_port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_no_xids_however_many_there_are() {
        let made = AtomicU32::new(0);
        let apart = |clients: u32| {
            let mut first: Vec<u32> = (0..clients).map(|_| first_xid(7, &made)).collect();
            first.sort_unstable();
            let round = first[0].wrapping_sub(first[first.len() - 1]);
            first.windows(2).map(|pair| pair[1] - pair[0]).chain([round]).min().unwrap()
        };
        assert_eq!(apart(256), 1 << 24);
        made.store(0, Ordering::Relaxed);
        assert_eq!(apart(4096), 1 << 20);
    }

    fn read(text: &str) -> Result<ExportUrl, MountError> {
        ExportUrl::read(&TargetUrl::parse(text).unwrap(), NfsVersion::V3, LinkKind::Stream)
    }

    #[test]
    fn a_url_names_export_transport_and_ports() {
        let plain = read("nfs://host/a%20b%2").unwrap();
        assert_eq!(plain.path, b"/a b%2");
        assert_eq!((plain.kind, plain.port, plain.mount_port), (LinkKind::Stream, None, None));
        assert_eq!(read("nfs://host/a//").unwrap().path, b"/a");
        assert_eq!(read("nfs://host").unwrap().path, b"/");
        let full = read("nfs://host:2049/x?version=3&transport=udp&mountport=635").unwrap();
        assert_eq!(full.kind, LinkKind::Datagram);
        assert_eq!((full.port, full.mount_port), (Some(2049), Some(635)));
    }

    #[test]
    fn what_a_url_cannot_say_is_named_with_the_remedy() {
        for (text, part) in [
            ("nfs://h/x?version=2", "use suite nfs-v2"),
            ("nfs://h/x?transport=rdma", "write tcp or udp"),
            ("nfs://h/x?mountport=0", "from 1 to 65535"),
            ("nfs://h/x?uid=0", "known are version, transport, mountport"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
