//! From a URL to the root handle of an export: portmapper, MOUNT, FSINFO; in NFSv4.1 a session and
//! LOOKUPs from the server's root.

mod error;
mod ports;
mod v4;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use plimsoll_engine::rng::key;
use plimsoll_model::disclosure::Setting;
use plimsoll_model::target::TargetUrl;
use plimsoll_model::units::Bytes;
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::net::{Caller, Dial, LinkKind, SetupError, SourcePort};
use plimsoll_protocol::percent_decoded;

use super::fileset::Content;
use super::handles::{HandleBytes, Handles, OwnedHandle};
use super::parameters::NfsVersion;
use super::procedure;
use super::procedure::results::Limits;
use super::refusal::CallError;
use super::remote::Remote;
use super::session::{NfsSite, SessionRequest};
use super::wire::mount::{ExportRes, Mount1Res, Mount3Res, Procedure};
use super::wire::rpc::{AuthSys, Credential, ReplyOutcome, Service};
use super::wire::v3::Status3;
use super::wire::v4::attribute;
use super::wire::xdr::{Name, Path, U32List};

pub use self::error::{MountError, PortRefusal};
pub use self::ports::{MountPort, Ports, ResolvedBy};

/// Transfers of the method's blocks need this much.
pub const TRANSFER_BYTES_MIN: u32 = 8192;

/// Who we say we are, as every call carries it (AUTH_SYS).
fn credential(caller: &Caller) -> Credential {
    Credential::system(&AuthSys {
        stamp: 0,
        machine: Name::from(caller.host.as_str()),
        uid: caller.uid,
        gid: caller.gid,
        gids: U32List::Values(&[]),
    })
}

/// What to mount.
#[derive(Clone, Copy, Debug)]
pub struct MountRequest<'a> {
    /// The server and its export.
    pub target: &'a ResolvedTarget,
    /// Version of NFS the suite speaks; the URL may have version 4.1 in place of 3.
    pub version: NfsVersion,
    /// Transport when the URL names none.
    pub transport: LinkKind,
    /// Who we say we are. Its number differs from run to run, so that xids do.
    pub caller: &'a Caller,
    /// Ports to connect from; where a server refuses any, those below 1024 are tried.
    pub source: SourcePort,
}

/// An export that can be used.
pub struct Mounted {
    /// As the user named it, without password.
    pub target: String,
    /// How NFS is called there; without files.
    pub site: NfsSite,
    /// Where the services are.
    pub ports: Ports,
    /// Handle of the export's root.
    pub root: OwnedHandle,
    /// What the server can transfer.
    pub limits: Limits,
    /// Ports to connect from.
    pub source: SourcePort,
    /// Further facts about it, for the disclosure.
    pub(crate) further: Vec<Setting>,
    caller: Caller,
    nonce: u64,
    clients_made: AtomicU32,
}

/// What all calls of a mounting share.
pub struct Reach<'a> {
    target: String,
    ip: IpAddr,
    dial: &'a dyn Dial,
    site: NfsSite,
    nonce: u64,
    clients_made: AtomicU32,
}

impl Reach<'_> {
    fn client(
        &self,
        service: Service,
        address: SocketAddr,
        link: LinkKind,
        source: SourcePort,
    ) -> Result<Remote, CallError> {
        let site = NfsSite { link, ..self.site.clone() };
        let first_xid = first_xid(self.nonce, &self.clients_made);
        let service = (service, address, source);
        Ok(Remote::open(site, service, first_xid, self.dial, self.dial.stop())?)
    }

    fn failed(&self, doing: &str, at: SocketAddr) -> impl FnOnce(CallError) -> MountError {
        let label = format!("target {}, {at}", self.target);
        let doing = doing.to_owned();
        move |error| {
            let refused = match &error {
                CallError::Refused(refusal) => {
                    matches!(refusal.outcome, ReplyOutcome::AuthError(_))
                }
                CallError::Status(status) => {
                    matches!(*status, Status3::PERM | Status3::ACCES)
                }
                _ => false,
            };
            MountError::Call(error.unable_to(&doing, label), refused.then_some(PortRefusal))
        }
    }
}

/// Exports of one server have xids of their own: to its memory of replies they are one client.
fn nonce_of(request: &MountRequest<'_>) -> u64 {
    let url = request.target.url.to_string();
    url.bytes().fold(request.caller.nonce, |sum, byte| key(&[sum, u64::from(byte)]))
}

/// Clients begin as far apart as possible, whatever their number, and those of another run
/// elsewhere: 2²⁴ xids lie between the first 256.
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
        site: NfsSite {
            version: export.version,
            link: export.kind,
            credential: credential(request.caller),
            handles: Arc::new(Handles::below(OwnedHandle::NONE)),
            content: Content::new(0),
            attributes: attribute::OF_FILES,
            session: SessionRequest::SET_UP,
        },
        nonce: nonce_of(request),
        clients_made: AtomicU32::new(0),
    };
    let ports = match export.version {
        NfsVersion::V4_1 => ports::of_v4(&export, reach.ip),
        version => ports::find(&export, version, &reach)?,
    };
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
    let mut remote = reach
        .client(procedure::service(export.version), ports.nfs, export.kind, source)
        .map_err(failed("reach NFS"))?;
    let mut site = reach.site.clone();
    let (root, further) = match ports.mount {
        Some(service) => {
            remote.null().map_err(failed("call NFS"))?;
            (mount_root(export, service, reach, source)?, Vec::new())
        }
        None => v4::find_root(&mut remote, export, (reach, ports.nfs), &mut site)?,
    };
    let limits = remote.limits(&root).map_err(failed("ask for the server's limits (FSINFO)"))?;
    let bytes = limits.read_bytes_max.min(limits.write_bytes_max);
    if bytes < TRANSFER_BYTES_MIN {
        return Err(MountError::Transfers { target: reach.target.clone(), bytes });
    }
    Ok(Mounted {
        target: reach.target.clone(),
        site,
        ports,
        root,
        limits,
        source,
        further,
        caller: request.caller.clone(),
        nonce: reach.nonce,
        clients_made: AtomicU32::new(reach.clients_made.load(Ordering::Relaxed)),
    })
}

fn mount_root(
    export: &ExportUrl,
    MountPort { address, kind, .. }: MountPort,
    reach: &Reach<'_>,
    source: SourcePort,
) -> Result<OwnedHandle, MountError> {
    let service = ports::mount_service(export.version);
    let failed = |doing| reach.failed(doing, address);
    let mut client = reach.client(service, address, kind, source).map_err(failed("reach MOUNT"))?;
    let path = Path(&export.path);
    let root = client.call_procedure(Procedure::Mount.number(), &path, |reply| {
        Ok(match export.version {
            NfsVersion::V2 => reply.decode::<Mount1Res>()?.ok().map(OwnedHandle::from),
            _ => {
                let ok = reply.decode::<Mount3Res<'_>>()?.ok();
                ok.map(|ok| HandleBytes::from(ok.handle).into())
            }
        })
    });
    let status = match root.map_err(failed("mount the export"))? {
        Ok(handle) => {
            // The server's list of mounts is for people; nothing depends on our leaving it.
            let unmount = Procedure::Unmount.number();
            let _ = client.call_procedure(unmount, &path, |_| Ok(()));
            return Ok(handle);
        }
        Err(status) => status,
    };
    let exports = client.call_procedure(Procedure::Export.number(), &(), |reply| {
        let exports: ExportRes<'_> = reply.decode()?;
        Ok(exports.into_iter().map(|export| export.directory.to_string()).collect())
    });
    Err(MountError::Export {
        target: reach.target.clone(),
        export: path.to_string(),
        status,
        exports: exports.unwrap_or_default(),
    })
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
        let service = (procedure::service(self.site.version), self.ports.nfs, self.source);
        let first_xid = first_xid(self.nonce, &self.clients_made);
        let unable = |error: CallError| error.unable_to("reach NFS", self.target_label());
        let opened = Remote::open(self.site.clone(), service, first_xid, dial, stop);
        let mut remote = opened.map_err(|error| unable(error.into()))?;
        if self.site.version == NfsVersion::V4_1 {
            remote.null().map_err(unable)?;
        }
        Ok(remote)
    }

    /// The transport of the calls, as suites name it.
    pub fn transport(&self) -> &'static str {
        match self.site.link {
            LinkKind::Stream => "tcp",
            LinkKind::Datagram => "udp",
        }
    }

    /// For messages: the target.
    pub fn target_label(&self) -> String {
        format!("target {}", self.target)
    }

    /// The results, for the disclosure.
    pub fn facts(&self) -> Vec<Setting> {
        let Ports { nfs, nfs_resolved_by, mount } = self.ports;
        let version = self.site.version.number();
        let Caller { uid, gid, .. } = self.caller;
        let read = Bytes(u64::from(self.limits.read_bytes_max));
        let write = Bytes(u64::from(self.limits.write_bytes_max));
        let mut facts = vec![
            Setting::new("NFS", format!("version {version} over {}", transport(self.site.link))),
            Setting::new("NFS service", format!("{nfs}, {}", nfs_resolved_by.as_str())),
            Setting::new("identity", format!("AUTH_SYS, uid {uid}, gid {gid}")),
            Setting::new("transfer limits", format!("READ {read}, WRITE {write}")),
            Setting::new(
                "source ports",
                match self.source {
                    SourcePort::Any => "any",
                    SourcePort::Reserved => "below 1024 when permitted",
                },
            ),
        ];
        if let Some(MountPort { address, resolved_by, .. }) = mount {
            let value = format!("{address}, {}", resolved_by.as_str());
            facts.insert(2, Setting::new("MOUNT service", value));
        }
        facts.extend(self.further.iter().cloned());
        facts
    }
}

/// Keys of the query.
const KEYS: [&str; 4] = ["version", "transport", "mountport", "sec"];

/// An export, as the URL and the suite name it:
/// `nfs://host[:port]/export?version=3&transport=tcp&mountport=N`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportUrl {
    /// Path of the export, decoded.
    pub path: Vec<u8>,
    /// Version of NFS.
    pub version: NfsVersion,
    /// How calls travel.
    pub kind: LinkKind,
    /// Port of NFS, when given.
    pub port: Option<u16>,
    /// Port of MOUNT, when given.
    pub mount_port: Option<u16>,
}

impl ExportUrl {
    /// Reads a URL. `version` is the suite's; the URL may repeat it, or have 4.1 in place of 3: the
    /// same mix over compounds. `kind` is taken when the URL names no transport.
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
        let given = url.query_value("version");
        let version = match given.map(|given| (given, NfsVersion::parse(given))) {
            None => version,
            Some((_, Some(given))) if given == version => version,
            Some((_, Some(NfsVersion::V4_1))) if version == NfsVersion::V3 => NfsVersion::V4_1,
            Some((given, _)) => {
                let help = format!(
                    "this suite speaks version {}; use suite nfs-v2, nfs-v3 or nfs-v4.1",
                    version.number()
                );
                return Err(wrong("version", given, help));
            }
        };
        if let Some(flavor) = url.query_value("sec").filter(|flavor| *flavor != "sys") {
            let help = "calls are authenticated by AUTH_SYS alone: write sec=sys, and let the \
                        export allow it beside Kerberos";
            return Err(wrong("sec", flavor, help.to_owned()));
        }
        let kind = match url.query_value("transport") {
            None => kind,
            Some("tcp") => LinkKind::Stream,
            Some("udp") => LinkKind::Datagram,
            Some(other) => return Err(wrong("transport", other, "write tcp or udp".to_owned())),
        };
        if kind == LinkKind::Datagram && version == NfsVersion::V4_1 {
            return Err(wrong(
                "transport",
                "udp",
                "NFS version 4.1 needs TCP: write tcp".to_owned(),
            ));
        }
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
        Ok(Self { path, version, kind, port: url.port, mount_port })
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
            ("nfs://h/x?uid=0", "known are version, transport, mountport, sec"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
