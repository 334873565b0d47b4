//! `managed:ganesha`: NFS-Ganesha with its VFS back end, NFSv3 over TCP and UDP, and 4.1 over TCP.
//!
//! Ganesha refuses to start without a portmapper, and registers itself there. A server that lives
//! for a minute must not register with the host's portmapper, and two servers must not compete for
//! one. So each gets a portmapper of its own, in a network namespace of its own: both meet at
//! `/run/rpcbind.sock`, which lies on a `/run` that only the two of them see. The namespaces go
//! with their last process, so nothing has to be undone. Clients on other hosts need no portmapper:
//! the URL has both ports.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_servers::clock::Deadline;
use plimsoll_servers::process::{Facts, Launch, ParentWatch, Process};
use plimsoll_servers::programs::{LOOPBACK, installed, on_free_ports, output_of, plain, scratch};
use plimsoll_servers::{Bounded, ServerError, ServerProcess, Software};
use rustix::process::geteuid;
use tempfile::TempDir;

use crate::parameters::NfsVersion;
use crate::procedure;
use crate::wire::mount::{self, MountStatus};
use crate::wire::record::{self, Assembler};
use crate::wire::rpc::{CallWriter, Credential, ReplyHead, ReplyOutcome, Service};
use crate::wire::xdr::{Decode, Encode, XdrIn};
use crate::wire::{self, v3};

const NAME: &str = "ganesha";
/// Where packages and source builds put programs.
const PROGRAM_DIRS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/sbin"];
const INSTALL: &str = "apt install nfs-ganesha nfs-ganesha-vfs rpcbind";
/// How long it may take until it answers; it normally takes some 3 s.
const START_WAIT: Duration = Duration::from_secs(30);
/// How long one look may take.
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// Of a look's calls; each has a connection of its own.
const XID: u32 = 0x504c_494d;
/// Bytes read at once; a MOUNT reply takes some 100.
const READ_BYTES: usize = 4096;
/// Looks for a pair of ports that are free for TCP and UDP.
const PORT_TRIES: u32 = 64;

/// Arguments: Ganesha, rpcbind, configuration, file for the process id, export, its size or
/// nothing. Runs in a mount namespace of its own and becomes Ganesha.
const SCRIPT: &str = r#"set -e
mount -t tmpfs -o mode=755 plimsoll /run
[ -z "$6" ] || mount -t tmpfs -o "size=$6,mode=777" plimsoll "$5"
unshare --net "$2" -f &
tries=0
until [ -S /run/rpcbind.sock ]; do
    kill -0 $! || { echo "rpcbind ended at once" >&2; exit 1; }
    tries=$((tries + 1))
    [ $tries -le 200 ] || { echo "rpcbind makes no socket" >&2; exit 1; }
    sleep 0.05
done
exec "$1" -F -f "$3" -p "$4" -L STDERR -N NIV_EVENT"#;

/// The programs it takes.
struct Programs {
    ganesha: PathBuf,
    rpcbind: PathBuf,
    unshare: PathBuf,
}

/// Where one server is to listen.
#[derive(Clone, Copy)]
struct Ports {
    nfs: SocketAddr,
    mount: SocketAddr,
}

/// What a managed NFS server is to be. It exports an empty directory of its own, which goes when
/// the server does, also after `kill -9` of this process.
#[derive(Clone, Debug, Default)]
pub struct GaneshaRequest {
    /// Address it listens on; `None`: loopback.
    pub listen_on: Option<IpAddr>,
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// Size of the export, which then lies in memory; `None`: on the file system of the temporary
    /// directory, as large as that is.
    pub export_bytes: Option<u64>,
    /// Directories to look for programs in; `None`: `PATH` and where packages put them.
    pub search: Option<Vec<PathBuf>>,
}

/// Starts it and waits until it answers.
pub fn start(request: &GaneshaRequest) -> Result<ServerProcess, ServerError> {
    let programs = find(request.search.as_deref())?;
    if !geteuid().is_root() {
        let why = "it opens files by handle, and gets a portmapper in a namespace of its own";
        return Err(ServerError::NeedsRoot { name: NAME, why });
    }
    let version = version_of(&programs.ganesha)?;
    let ip = request.listen_on.unwrap_or(LOOPBACK);
    on_free_ports(
        || free_ports(ip),
        Ports::are_free,
        |ports| start_at(ports, &programs, &version, request),
    )
}

fn find(search: Option<&[PathBuf]>) -> Result<Programs, ServerError> {
    let find = |program, install| installed(NAME, program, (search, &PROGRAM_DIRS), install);
    Ok(Programs {
        ganesha: find("ganesha.nfsd", INSTALL)?,
        rpcbind: find("rpcbind", INSTALL)?,
        unshare: find("unshare", "apt install util-linux")?,
    })
}

fn start_at(
    ports: Ports,
    programs: &Programs,
    version: &str,
    request: &GaneshaRequest,
) -> Result<ServerProcess, ServerError> {
    let scratch = Scratch::new()?;
    let configuration = configuration(ports, &scratch);
    let configuration_file = scratch.root.join("ganesha.conf");
    std::fs::write(&configuration_file, &configuration)
        .map_err(|source| ServerError::System { doing: "write a configuration file", source })?;
    let export_bytes = request.export_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    let mut arguments: Vec<OsString> =
        ["--mount", "/bin/sh", "-c", SCRIPT, "plimsoll-ganesha"].map(OsString::from).into();
    arguments.extend([
        programs.ganesha.clone().into(),
        programs.rpcbind.clone().into(),
        configuration_file.into(),
        scratch.root.join("ganesha.pid").into(),
        scratch.export.clone().into(),
        OsString::from(export_bytes),
    ]);
    let export = scratch.export.clone();
    let mut process = Process::start(Launch {
        program: programs.unshare.clone(),
        arguments,
        environment: Vec::new(),
        cores: &request.cores,
        scratch: Some(scratch.directory),
        remove_when_killed: None,
        parent_watch: ParentWatch::Shell,
    })?;
    let software = Software { name: "NFS-Ganesha".to_owned(), version: version.to_owned() };
    process.wait_until(&software, START_WAIT, |_| is_exported(ports, &export))?;
    let path = format!("{export}?mountport={}", ports.mount.port());
    let cores = request.cores.clone();
    let facts = Facts { scheme: "nfs".to_owned(), path, software, configuration, cores };
    let mut server = ServerProcess::new(process, ports.nfs, facts);
    server.shared = Some(export.into());
    Ok(server)
}

/// The directory of one server.
struct Scratch {
    directory: TempDir,
    root: PathBuf,
    /// The directory clients mount.
    export: String,
}

impl Scratch {
    fn new() -> Result<Self, ServerError> {
        let system = |source| ServerError::System { doing: "make a temporary directory", source };
        let directory = scratch("plimsoll-ganesha-")?;
        // Clients name the export by its path, which Ganesha compares with the resolved one.
        let root = directory.path().canonicalize().map_err(system)?;
        let export = exportable(&root)?;
        for folder in [Path::new(&export), &root.join("recovery")] {
            std::fs::create_dir(folder).map_err(system)?;
        }
        // Clients come with user numbers of their own; the directory above lets only root pass.
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&export, everybody).map_err(system)?;
        Ok(Self { directory, root, export })
    }
}

/// The export's path, which must be one that a configuration file, a URL and the namespace can
/// hold.
fn exportable(root: &Path) -> Result<String, ServerError> {
    match plain(root).filter(|_| !root.starts_with("/run")) {
        Some(text) => Ok(format!("{text}/export")),
        None => {
            let why = "managed:ganesha needs a temporary directory outside /run whose path holds \
                       only letters, digits and ._-+; set TMPDIR";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            Err(ServerError::Root { path: root.to_owned(), source })
        }
    }
}

/// The export has the same path in all versions, so that one URL is that of each.
fn configuration(ports: Ports, scratch: &Scratch) -> String {
    let Scratch { root, export, .. } = scratch;
    let root = root.display();
    format!(
        "NFS_CORE_PARAM {{
    NFS_Port = {nfs};
    MNT_Port = {mount};
    Bind_addr = {ip};
    Protocols = 3, 4;
    Enable_UDP = true;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    mount_path_pseudo = false;
}}
NFSv4 {{
    Graceless = true;
    RecoveryRoot = \"{root}/recovery\";
    Minor_Versions = 1;
    Only_Numeric_Owners = true;
    Slot_Table_Size = 64;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT_DEFAULTS {{
    SecType = none, sys;
    Squash = No_Root_Squash;
    Protocols = 3, 4;
    Transports = UDP, TCP;
    Access_Type = RW;
}}
EXPORT {{ Export_Id = 77; Path = \"{export}\"; Pseudo = \"{export}\"; FSAL {{ Name = VFS; }} }}
",
        nfs = ports.nfs.port(),
        ip = ports.nfs.ip(),
        mount = ports.mount.port(),
    )
}

/// `NFS-Ganesha Release = V4.3`, among other lines.
fn version_of(program: &Path) -> Result<String, ServerError> {
    let output = output_of(program, "-v")?;
    Ok(version_in(&String::from_utf8_lossy(&output.stdout))
        .or_else(|| version_in(&String::from_utf8_lossy(&output.stderr)))
        .unwrap_or_else(|| "of unknown version".to_owned()))
}

fn version_in(output: &str) -> Option<String> {
    let (_, after) = output.split_once("Release = ")?;
    Some(after.split_whitespace().next()?.trim_start_matches('V').to_owned())
}

impl Ports {
    fn are_free(self) -> bool {
        [self.nfs, self.mount].into_iter().all(is_free)
    }
}

fn is_free(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

fn free_ports(ip: IpAddr) -> Result<Ports, ServerError> {
    let (mut addresses, mut listeners) = (Vec::new(), Vec::new());
    let failed = |source| ServerError::System { doing: "find a free port", source };
    for _ in 0..PORT_TRIES {
        let listener = TcpListener::bind((ip, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // Kept open until both ports are found, or the system might offer the same one again.
        listeners.push(listener);
        if UdpSocket::bind(address).is_ok() {
            addresses.push(address);
        }
        if let [nfs, mount] = addresses[..] {
            return Ok(Ports { nfs, mount });
        }
    }
    Err(failed(io::ErrorKind::AddrNotAvailable.into()))
}

/// Both programs answer and the export can be mounted. Its path, temporary and unique, shows that
/// it is ours that answers.
fn is_exported(ports: Ports, export: &str) -> bool {
    let service = Service { program: mount::PROGRAM, version: mount::VERSION_3 };
    let path = wire::Path(export.as_bytes());
    let results = call(ports.mount, service, mount::Procedure::Mount.number(), &path);
    results.is_some_and(|results| results.starts_with(&MountStatus::OK.0.to_be_bytes()))
        && call(ports.nfs, procedure::service(NfsVersion::V3), v3::Procedure::Null.number(), &())
            .is_some()
}

/// Calls a procedure as nobody in particular; answers with the encoded results of an accepted and
/// successful call, `None` of any other.
fn call(
    address: SocketAddr,
    service: Service,
    procedure: u32,
    arguments: &impl Encode,
) -> Option<Vec<u8>> {
    let mut stream = Bounded::connect(address, Deadline::after(PROBE_WAIT)).ok()?;
    let (credential, mut message) = (Credential::none(), Vec::new());
    let start = record::begin(&mut message);
    let to = CallWriter { xid: XID, credential: &credential, out: &mut message };
    to.write(service, procedure, arguments);
    record::finish(&mut message, start);
    stream.write_all(&message).ok()?;
    let (mut records, mut bytes) = (Assembler::new(), [0; READ_BYTES]);
    let reply = loop {
        let read = stream.read(&mut bytes).ok().filter(|read| *read > 0)?;
        if let Some(record) = records.take(&mut &bytes[..read]).ok()? {
            break record.to_vec();
        }
    };
    let mut input = XdrIn::tolerant(&reply);
    let expected = ReplyHead { xid: XID, outcome: ReplyOutcome::Success };
    (ReplyHead::decode(&mut input) == Ok(expected)).then(|| input.rest().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_what_follows_release() {
        let output = "NFS-Ganesha Release = V4.3\nganesha compiled on Jan 1 2023\n";
        assert_eq!(version_in(output).as_deref(), Some("4.3"));
        assert_eq!(version_in("no idea"), None);
    }

    #[test]
    fn a_path_that_a_configuration_could_misread_is_refused() {
        assert_eq!(exportable(Path::new("/tmp/a-b_1")).unwrap(), "/tmp/a-b_1/export");
        for bad in ["/tmp/with space", "/tmp/\"", "/run/user/1", "/tmp/{"] {
            let message = exportable(Path::new(bad)).unwrap_err().to_string();
            assert!(message.contains("set TMPDIR"), "{message}");
        }
    }

    #[test]
    fn two_free_ports_are_two() {
        let ports = free_ports(LOOPBACK).unwrap();
        assert_ne!(ports.nfs, ports.mount);
    }

    #[test]
    fn a_missing_ganesha_says_how_to_get_it() {
        let request = GaneshaRequest { search: Some(vec![]), ..GaneshaRequest::default() };
        let message = start(&request).unwrap_err().to_string();
        assert_eq!(
            message,
            "managed:ganesha: no ganesha.nfsd found in PATH, /usr/sbin, /usr/local/sbin, /usr/bin \
             or /sbin; install it (apt install nfs-ganesha nfs-ganesha-vfs rpcbind) or give a URL"
        );
    }
}
