//! `managed:samba`: Samba's smbd with one share, on a port and with data bases of its own.
//!
//! No account is made on the host: a client's name is mapped to the user this process runs as,
//! who gets a password in a data base that goes with the server. That works for everybody, not
//! only for root.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::geteuid;
use tempfile::TempDir;

use plimsoll_servers::programs::{LOOPBACK, installed, on_a_free_port, output_of, plain, scratch};

use super::probe;
use plimsoll_servers::clock::Deadline;
use plimsoll_servers::process::{Facts, Launch, Login, ParentWatch, Process, random_hex};
use plimsoll_servers::{ServerError, ServerProcess, Software};

const NAME: &str = "samba";
/// Where packages and source builds put programs.
const PROGRAM_DIRS: [&str; 4] =
    ["/usr/sbin", "/usr/local/sbin", "/usr/local/samba/sbin", "/usr/local/samba/bin"];
const INSTALL: &str = "apt install samba";
/// How long it may take until it answers; it normally takes some 100 ms.
const START_WAIT: Duration = Duration::from_secs(20);
/// How long one look may take.
const PROBE_WAIT: Duration = Duration::from_secs(1);
/// Name of the share.
const SHARE: &str = "share";
/// What the daemon of change notifications is called among Samba's processes.
const NOTIFY_DAEMON: &[u8] = b"notify-daemon";
/// Where Samba's processes find each other.
const LOCK: &str = "lock";
/// Directories Samba keeps its state in, each below the server's own.
const STATE: [&str; 7] = ["private", LOCK, "state", "cache", "pid", "log", "ncalrpc"];

/// Arguments: smbd, its configuration, the share, its size or nothing. Becomes smbd. With a size
/// it runs in a mount namespace of its own.
const SCRIPT: &str = r#"set -e
[ -z "$4" ] || mount -t tmpfs -o "size=$4,mode=777" plimsoll "$3"
exec "$1" --foreground --no-process-group --configfile="$2" --debug-stdout 1>&2"#;

/// The programs it takes.
struct Programs {
    smbd: PathBuf,
    /// Makes the user, if there is to be one.
    pdbedit: PathBuf,
    unshare: Option<PathBuf>,
}

/// What a managed SMB server is to be. It shares an empty directory of its own, which goes when the
/// server does, also after `kill -9` of this process.
#[derive(Clone, Debug, Default)]
pub struct SambaRequest {
    /// Address it listens on; `None`: loopback.
    pub listen_on: Option<IpAddr>,
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// Who may log on; `None`: guests, and only they.
    pub login: Option<Login>,
    /// Whether messages are signed.
    pub signing: SmbSigning,
    /// Whether messages are encrypted.
    pub encryption: SmbEncryption,
    /// Refuses every change of the share.
    pub read_only: bool,
    /// Speaks SMB 1 as well, for clients that know nothing newer.
    pub smb1: bool,
    /// Size of the share, which then lies in memory (only root can have that); `None`: on the file
    /// system of the temporary directory, as large as that is.
    pub share_bytes: Option<u64>,
    /// More lines of the server's global configuration: name and value.
    pub options: Vec<(String, String)>,
    /// Directories to look for programs in; `None`: `PATH` and where packages put them.
    pub search: Option<Vec<PathBuf>>,
}

/// Whether an SMB server signs messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmbSigning {
    /// If a client requests it.
    #[default]
    Offered,
    /// Always.
    Required,
    /// Not if it can be helped: clients of SMB 3 may insist.
    Off,
}

/// Whether an SMB server encrypts messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SmbEncryption {
    /// If a client requests it.
    #[default]
    Offered,
    /// Always; who cannot is refused.
    Required,
    /// Never.
    Off,
}

/// Starts it and waits until it answers.
pub fn start(request: &SambaRequest) -> Result<ServerProcess, ServerError> {
    let programs = find(request)?;
    if request.share_bytes.is_some() && !geteuid().is_root() {
        let why = "a share of a given size is a file system in memory, which only root can mount";
        return Err(ServerError::NeedsRoot { name: NAME, why });
    }
    if let Some(login) = request.login.as_ref().filter(|login| !plain_name(&login.user)) {
        return Err(ServerError::BadUser { user: login.user.clone() });
    }
    let version = version_of(&programs.smbd)?;
    let ip = request.listen_on.unwrap_or(LOOPBACK);
    on_a_free_port(ip, |address| start_at(address, &programs, &version, request))
}

fn find(request: &SambaRequest) -> Result<Programs, ServerError> {
    let search = (request.search.as_deref(), &PROGRAM_DIRS[..]);
    let find = |program, install| installed(NAME, program, search, install);
    let unshare = request.share_bytes.map(|_| find("unshare", "apt install util-linux"));
    Ok(Programs {
        smbd: find("smbd", INSTALL)?,
        pdbedit: find("pdbedit", INSTALL)?,
        unshare: unshare.transpose()?,
    })
}

fn start_at(
    address: SocketAddr,
    programs: &Programs,
    version: &str,
    request: &SambaRequest,
) -> Result<ServerProcess, ServerError> {
    let scratch = Scratch::new()?;
    let unix_user = own_name()?;
    let configuration = configuration(address, &scratch, &unix_user, request);
    let configuration_file = scratch.root.join("smb.conf");
    std::fs::write(&configuration_file, &configuration)
        .map_err(|source| ServerError::System { doing: "write a configuration file", source })?;
    if let Some(login) = &request.login {
        add_user(programs, &scratch, &unix_user, login)?;
    }
    let (guid, share) = (scratch.guid, scratch.root.join(SHARE));
    let names = scratch.root.join(LOCK).join("names.tdb");
    let mut process = Process::start(launch(programs, &configuration_file, scratch, request))?;
    let software = Software { name: "Samba".to_owned(), version: version.to_owned() };
    // Its GUID shows that it is ours that answers.
    let answers = || {
        let answered = probe::server_guid(address, Deadline::after(PROBE_WAIT));
        answered.is_ok_and(|answered| answered == Some(guid))
    };
    process.wait_until(&software, START_WAIT, |_| answers() && lets_shares_be_used(&names))?;
    let (path, cores) = (format!("/{SHARE}"), request.cores.clone());
    let facts = Facts { scheme: "smb".to_owned(), path, software, configuration, cores };
    let mut server = ServerProcess::new(process, address, facts);
    server.login.clone_from(&request.login);
    server.shared = Some(share);
    Ok(server)
}

/// Whether the daemon of change notifications has entered its name. Until then Samba answers every
/// TREE_CONNECT with `STATUS_NO_MEMORY`, though it negotiates and logs users on. It does not wait
/// for a Samba without such a data base.
fn lets_shares_be_used(names: &Path) -> bool {
    let entered = |names: &[u8]| names.windows(NOTIFY_DAEMON.len()).any(|it| it == NOTIFY_DAEMON);
    std::fs::read(names).map_or(true, |names| entered(&names))
}

fn launch<'a>(
    programs: &Programs,
    configuration: &Path,
    scratch: Scratch,
    request: &'a SambaRequest,
) -> Launch<'a> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut program = PathBuf::from("/bin/sh");
    if let Some(unshare) = &programs.unshare {
        arguments.extend(["--mount".into(), program.clone().into()]);
        program.clone_from(unshare);
    }
    arguments.extend(["-c", SCRIPT, "plimsoll-samba"].map(OsString::from));
    let bytes = request.share_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    arguments.extend([
        programs.smbd.clone().into(),
        configuration.into(),
        scratch.root.join(SHARE).into(),
        bytes.into(),
    ]);
    Launch {
        program,
        arguments,
        environment: Vec::new(),
        cores: &request.cores,
        scratch: Some(scratch.directory),
        remove_when_killed: None,
        parent_watch: ParentWatch::Shell,
    }
}

/// The directory of one server.
struct Scratch {
    directory: TempDir,
    root: PathBuf,
    /// Samba's NetBIOS name, made of the directory's own: unique on this host.
    netbios_name: String,
    /// The GUID that Samba derives from that name and sends to every client.
    guid: [u8; 16],
}

impl Scratch {
    fn new() -> Result<Self, ServerError> {
        let system = |source| ServerError::System { doing: "make a temporary directory", source };
        let directory = scratch("plimsoll-samba-")?;
        let root = directory.path().canonicalize().map_err(system)?;
        if plain(&root).is_none() {
            let why = "managed:samba needs a temporary directory whose path holds only letters, \
                       digits and ._-+; set TMPDIR";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(ServerError::Root { path: root, source });
        }
        for folder in STATE {
            std::fs::create_dir(root.join(folder)).map_err(system)?;
        }
        let share = root.join(SHARE);
        std::fs::create_dir(&share).map_err(system)?;
        // If root starts the server, guests are another user, who owns nothing but the share.
        std::fs::set_permissions(&share, Permissions::from_mode(0o777)).map_err(system)?;
        std::fs::set_permissions(&root, Permissions::from_mode(0o711)).map_err(system)?;
        let (netbios_name, guid) = identity(&random_hex(6)?);
        Ok(Self { directory, root, netbios_name, guid })
    }
}

/// A NetBIOS name, and the GUID that Samba makes of it: its lower case, filled up with zeros.
fn identity(unique: &str) -> (String, [u8; 16]) {
    let name = format!("plm{unique}");
    let mut guid = [0; 16];
    for (byte, of_name) in guid.iter_mut().zip(name.bytes()) {
        *byte = of_name;
    }
    (name, guid)
}

fn plain_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// Name of the user this process runs as.
fn own_name() -> Result<String, ServerError> {
    let program = PathBuf::from("id");
    let output = output_of(&program, "-un")?;
    let name = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && plain_name(&name) {
        return Ok(name);
    }
    let error_output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ServerError::Failed { doing: "find the name of this user", program, error_output })
}

fn configuration(
    address: SocketAddr,
    scratch: &Scratch,
    unix_user: &str,
    request: &SambaRequest,
) -> String {
    let (root, netbios_name, port) =
        (scratch.root.display(), &scratch.netbios_name, address.port());
    let interface = interface(address.ip());
    let signing = match request.signing {
        SmbSigning::Offered => "auto",
        SmbSigning::Required => "mandatory",
        SmbSigning::Off => "disabled",
    };
    let encryption = match request.encryption {
        SmbEncryption::Offered => "default",
        SmbEncryption::Required => "required",
        SmbEncryption::Off => "off",
    };
    let oldest = if request.smb1 { "NT1" } else { "SMB2_02" };
    let guests = match request.login {
        Some(_) => format!("map to guest = Never\n    username map = {root}/users"),
        // Only root can become somebody else.
        None if geteuid().is_root() => "map to guest = Bad User".to_owned(),
        None => format!("map to guest = Bad User\n    guest account = {unix_user}"),
    };
    let option_line = |(key, value): &(String, String)| format!("    {key} = {value}\n");
    let options: String = request.options.iter().map(option_line).collect();
    let yes_no = |it: bool| if it { "yes" } else { "no" };
    let (read_only, guest_ok) = (yes_no(request.read_only), yes_no(request.login.is_none()));
    format!(
        "[global]
    server role = standalone server
    netbios name = {netbios_name}
    smb ports = {port}
    interfaces = {interface}
    bind interfaces only = yes
    disable netbios = yes
    disable spoolss = yes
    load printers = no
    printing = bsd
    printcap name = /dev/null
    rpc start on demand helpers = no
    usershare max shares = 0
    private dir = {root}/private
    lock directory = {root}/{LOCK}
    state directory = {root}/state
    cache directory = {root}/cache
    pid directory = {root}/pid
    ncalrpc dir = {root}/ncalrpc
    log file = {root}/log/smbd.log
    log level = 0
    passdb backend = tdbsam:{root}/private/passdb.tdb
    server min protocol = {oldest}
    server signing = {signing}
    server smb encrypt = {encryption}
    {guests}
{options}[{SHARE}]
    path = {root}/{SHARE}
    read only = {read_only}
    guest ok = {guest_ok}
    create mask = 0666
    directory mask = 0777
"
    )
}

/// Without its network Samba takes only an address that an interface has; of loopback that is one.
fn interface(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) if ip.is_loopback() => format!("{ip}/8"),
        _ => ip.to_string(),
    }
}

/// Lets `login` in, as the user this process runs as.
fn add_user(
    programs: &Programs,
    scratch: &Scratch,
    unix_user: &str,
    login: &Login,
) -> Result<(), ServerError> {
    let Login { user, password } = login;
    std::fs::write(scratch.root.join("users"), format!("{unix_user} = {user}\n"))
        .map_err(|source| ServerError::System { doing: "write a map of users", source })?;
    let program = programs.pdbedit.clone();
    let spawn_failed = |source| ServerError::Spawn { program: program.clone(), source };
    let mut child = Command::new(&program)
        .arg("-s")
        .arg(scratch.root.join("smb.conf"))
        .args(["--create", "--password-from-stdin", "-u", unix_user])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(spawn_failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that ended early reports the reason itself.
        let _ = write!(stdin, "{password}\n{password}\n");
    }
    let output = child.wait_with_output().map_err(spawn_failed)?;
    if output.status.success() {
        return Ok(());
    }
    let error_output = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(ServerError::Failed { doing: "give Samba a user", program, error_output })
}

/// `Version 4.17.12-Debian`.
fn version_of(program: &Path) -> Result<String, ServerError> {
    let output = output_of(program, "--version")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("Version ");
    Ok(version.unwrap_or("of unknown version").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_map_of_users_could_misread_is_not_plain() {
        assert!(plain_name("ann.b-c_1"));
        for bad in ["", "two words", "@group", "a=b", "a\nb", "*"] {
            assert!(!plain_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn an_identity_fits_a_netbios_name_and_differs_each_time() {
        let (name, guid) = identity(&random_hex(6).unwrap());
        assert!(name.len() <= 15, "{name}");
        assert!(guid.starts_with(name.as_bytes()) && guid.ends_with(&[0]));
        assert_ne!(random_hex(6).unwrap(), random_hex(6).unwrap());
    }

    #[test]
    fn a_share_can_be_used_once_the_notify_daemon_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let names = directory.path().join("names.tdb");
        assert!(lets_shares_be_used(&names), "a Samba without the data base");
        std::fs::write(&names, b"TDB file\n").unwrap();
        assert!(!lets_shares_be_used(&names));
        std::fs::write(&names, b"TDB file\n&notify-daemon\x00").unwrap();
        assert!(lets_shares_be_used(&names));
    }

    #[test]
    fn a_missing_samba_says_how_to_get_it() {
        let request = SambaRequest { search: Some(vec![]), ..SambaRequest::default() };
        let message = start(&request).unwrap_err().to_string();
        assert_eq!(
            message,
            "managed:samba: no smbd found in PATH, /usr/sbin, /usr/local/sbin, \
             /usr/local/samba/sbin or /usr/local/samba/bin; install it (apt install samba) or give \
             a URL"
        );
    }
}
