//! `managed:NAME` targets: real servers, started with a temporary configuration on a free port of
//! 127.0.0.1, watched, stopped.

mod ganesha;
mod knock;
mod nginx;
mod samba;
mod smb_knock;

use std::path::{Path, PathBuf};

use crate::process::Login;
use crate::web::TlsSource;
use crate::{ServerError, ServerProcess};

/// Names that `managed:` takes.
pub const NAMES: [&str; 3] = ["nginx", "ganesha", "samba"];
/// Names that are meant to come.
const PLANNED: [&str; 1] = ["caddy"];
/// Below this likeness (0 to 1) a suggestion would only confuse.
const LIKENESS_MIN: f64 = 0.6;

/// What a managed web server is to serve, and how.
#[derive(Clone, Debug)]
pub struct ManagedRequest {
    /// Document root.
    pub root: PathBuf,
    /// Cores to pin it to, one worker each; empty: one worker, wherever the system puts it.
    pub cores: Vec<u32>,
    /// `https` with this certificate, or plain `http`.
    pub tls: Option<TlsSource>,
    /// Directories to look for the program in; `None`: `PATH` and where packages put it.
    pub search: Option<Vec<PathBuf>>,
    /// A directory of the caller's that is removed when the caller dies without stopping the
    /// server (`kill -9`): a temporary file set of many gigabytes should not stay behind.
    pub remove_when_killed: Option<PathBuf>,
}

/// What a managed NFS server is to be. It exports an empty directory of its own, which goes when
/// the server does, also after `kill -9` of this process.
#[derive(Clone, Debug, Default)]
pub struct NfsRequest {
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// Size of the export, which then lies in memory; `None`: on the file system of the temporary
    /// directory, as large as that is.
    pub export_bytes: Option<u64>,
    /// Directories to look for programs in; `None`: `PATH` and where packages put them.
    pub search: Option<Vec<PathBuf>>,
}

/// What a managed SMB server is to be. It shares an empty directory of its own, which goes when the
/// server does, also after `kill -9` of this process.
#[derive(Clone, Debug, Default)]
pub struct SmbRequest {
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// Who may log on; `None`: guests, and only they.
    pub login: Option<Login>,
    /// Whether messages are signed.
    pub signing: SmbSigning,
    /// Whether messages are encrypted.
    pub encryption: SmbEncryption,
    /// Refuses whatever would change the share.
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
    /// As its clients wish.
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
    /// As its clients wish.
    #[default]
    Offered,
    /// Always; who cannot is refused.
    Required,
    /// Never.
    Off,
}

/// Starts the web server called `name` and waits until it answers.
pub fn start(name: &str, request: &ManagedRequest) -> Result<ServerProcess, ServerError> {
    match name {
        "nginx" => nginx::start(request),
        "ganesha" => {
            Err(ServerError::OtherService { name: "ganesha", serves: "NFS", asked: "HTTP" })
        }
        "samba" => Err(ServerError::OtherService { name: "samba", serves: "SMB", asked: "HTTP" }),
        _ => Err(stranger(name)),
    }
}

/// Starts the NFS server called `name` on `cores` and waits until it answers.
pub fn start_nfs(name: &str, cores: &[u32]) -> Result<ServerProcess, ServerError> {
    start_nfs_as(name, &NfsRequest { cores: cores.to_vec(), ..NfsRequest::default() })
}

/// Starts the NFS server called `name` as `request` says and waits until it answers.
pub fn start_nfs_as(name: &str, request: &NfsRequest) -> Result<ServerProcess, ServerError> {
    match name {
        "ganesha" => ganesha::start(request),
        "nginx" => Err(ServerError::OtherService { name: "nginx", serves: "HTTP", asked: "NFS" }),
        "samba" => Err(ServerError::OtherService { name: "samba", serves: "SMB", asked: "NFS" }),
        _ => Err(stranger(name)),
    }
}

/// Starts the SMB server called `name` as `request` says and waits until it answers.
pub fn start_smb(name: &str, request: &SmbRequest) -> Result<ServerProcess, ServerError> {
    let other = |name, serves| Err(ServerError::OtherService { name, serves, asked: "SMB" });
    match name {
        "samba" => samba::start(request),
        "nginx" => other("nginx", "HTTP"),
        "ganesha" => other("ganesha", "NFS"),
        _ => Err(stranger(name)),
    }
}

impl Login {
    /// `user`, with a password nobody has had before.
    pub fn with_new_password(user: &str) -> Result<Self, ServerError> {
        Ok(Self { user: user.to_owned(), password: samba::random_hex(16)? })
    }
}

fn stranger(name: &str) -> ServerError {
    match PLANNED.into_iter().find(|planned| *planned == name) {
        Some(planned) => ServerError::NotSupportedYet { name: planned },
        None => ServerError::UnknownManaged { name: name.to_owned(), suggestion: near(name) },
    }
}

/// Where nginx is on this host, if it is.
pub fn find_nginx() -> Option<PathBuf> {
    nginx::find(None).ok()
}

fn near(name: &str) -> Option<&'static str> {
    let likeness = |known: &&str| strsim::jaro_winkler(&name.to_lowercase(), known);
    NAMES
        .into_iter()
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|best| likeness(best) >= LIKENESS_MIN)
}

/// Directories in which a program is looked for.
fn search_path(asked: Option<&[PathBuf]>, usual: &[&str]) -> Vec<PathBuf> {
    match asked {
        Some(asked) => asked.to_vec(),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).chain(usual.iter().map(PathBuf::from)).collect()
        }
    }
}

fn find_program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|path| is_executable(path))
}

/// The path as text, if every configuration file, URL and shell can hold it as it is.
fn plain(path: &Path) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    path.to_str().filter(|text| text.chars().all(plain))
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ManagedRequest {
        ManagedRequest {
            root: ".".into(),
            cores: vec![],
            tls: None,
            search: Some(vec![]),
            remove_when_killed: None,
        }
    }

    fn refusal(name: &str) -> String {
        start(name, &request()).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion_and_a_strange_one_the_list() {
        assert_eq!(refusal("ngnix"), "there is no managed:ngnix; did you mean managed:nginx?");
        assert_eq!(refusal("iis"), "there is no managed:iis; known: nginx, ganesha, samba");
        let planned = "managed:caddy is not supported yet; start it yourself and give its URL";
        assert_eq!(refusal("caddy"), planned);
    }

    #[test]
    fn a_server_of_another_protocol_is_refused() {
        assert_eq!(
            refusal("ganesha"),
            "managed:ganesha serves NFS, not HTTP; choose a suite for it or another server"
        );
        assert_eq!(
            start_nfs("nginx", &[]).unwrap_err().to_string(),
            "managed:nginx serves HTTP, not NFS; choose a suite for it or another server"
        );
    }

    #[test]
    fn a_missing_ganesha_says_how_to_get_it() {
        let request = NfsRequest { search: Some(vec![]), ..NfsRequest::default() };
        let message = start_nfs_as("ganesha", &request).unwrap_err().to_string();
        assert_eq!(
            message,
            "managed:ganesha: no ganesha.nfsd found in PATH, /usr/sbin, /usr/local/sbin, /usr/bin \
             or /sbin; install it (apt install nfs-ganesha nfs-ganesha-vfs rpcbind) or give a URL"
        );
    }

    #[test]
    fn a_missing_samba_says_how_to_get_it() {
        let request = SmbRequest { search: Some(vec![]), ..SmbRequest::default() };
        let message = start_smb("samba", &request).unwrap_err().to_string();
        assert_eq!(
            message,
            "managed:samba: no smbd found in PATH, /usr/sbin, /usr/local/sbin, \
             /usr/local/samba/sbin or /usr/local/samba/bin; install it (apt install samba) or give \
             a URL"
        );
        assert_eq!(
            start_smb("ganesha", &request).unwrap_err().to_string(),
            "managed:ganesha serves NFS, not SMB; choose a suite for it or another server"
        );
    }

    #[test]
    fn a_missing_nginx_says_how_to_get_it() {
        assert_eq!(
            refusal("nginx"),
            "managed:nginx: no nginx found in PATH, /usr/sbin, /usr/local/sbin or \
             /usr/local/nginx/sbin; install it (apt install nginx-light) or give a URL"
        );
    }
}
