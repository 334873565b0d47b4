//! `managed:nginx`.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use plimsoll_servers::process::{Facts, Launch, ParentWatch, Process};
use plimsoll_servers::programs::{installed, on_a_free_port, output_of, scratch};
use plimsoll_servers::{ServerError, ServerProcess, Software};
use rustix::process::{Resource, geteuid, getrlimit};
use tempfile::TempDir;

use super::tls::CertificateError;
use super::{document_root, wait_until_it_answers, write};
use crate::server::{TlsSource, self_signed};

/// Where packages and source builds put it.
const INSTALL_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/local/nginx/sbin"];
/// Most descriptors worth asking for per worker.
const DESCRIPTORS_MAX: u64 = 131_072;
/// The first version that takes `-e`; older ones first try a log file that is root's.
const ERROR_LOG_FLAG_SINCE: [u32; 3] = [1, 19, 5];
/// The build option of nginx's status page (ngx_http_stub_status_module).
const STATUS_MODULE: &str = "--with-http_stub_status_module";
/// Longest path of a Unix socket (sun_path in unix(7)), with its zero byte.
const SOCKET_PATH_BYTES_MAX: usize = 108;

/// What a managed web server is to serve, and how.
#[derive(Clone, Debug)]
pub struct NginxRequest {
    /// Address it listens on.
    pub listen_on: IpAddr,
    /// Document root.
    pub root: PathBuf,
    /// Cores to pin it to, one worker each; empty: one worker, wherever the system puts it.
    pub cores: Vec<u32>,
    /// `https` with this certificate, or plain `http`.
    pub tls: Option<TlsSource>,
    /// Directories to look for the program in; `None`: `PATH` and the directories of packages.
    pub search: Option<Vec<PathBuf>>,
    /// A directory of the caller's that is removed when the caller dies without stopping the
    /// server (`kill -9`): a temporary file set of many gigabytes should not stay behind.
    pub remove_when_killed: Option<PathBuf>,
    /// What follows the path of a request in the name of its file.
    pub suffix: Option<&'static str>,
}

pub(crate) fn find(search: Option<&[PathBuf]>) -> Result<PathBuf, ServerError> {
    installed("nginx", "nginx", (search, &INSTALL_DIRECTORIES), "apt install nginx-light")
}

/// Starts it and waits until it answers.
pub fn start(request: &NginxRequest) -> Result<ServerProcess, ServerError> {
    let program = find(request.search.as_deref())?;
    let build = build_of(&program)?;
    let root = document_root("nginx", &request.root)?;
    let served = Served { request, root: &root };
    on_a_free_port(request.listen_on, |address| start_at(address, &program, &build, &served))
}

/// What to serve: the request, with its document root resolved.
struct Served<'a> {
    request: &'a NginxRequest,
    root: &'a str,
}

fn start_at(
    address: SocketAddr,
    program: &Path,
    build: &Build,
    served: &Served<'_>,
) -> Result<ServerProcess, ServerError> {
    let request = served.request;
    let scratch = scratch("plimsoll-nginx-")?;
    let status = status_socket(build, scratch.path());
    let status_server = status.as_deref().map(status_server).unwrap_or_default();
    let configuration = configuration(address, scratch.path(), served, &status_server)?;
    write(&scratch.path().join("nginx.conf"), &configuration)?;
    let pid_file = scratch.path().join("nginx.pid");
    let mut process = Process::start(Launch {
        program: program.to_owned(),
        arguments: arguments(&build.version, &scratch),
        environment: Vec::new(),
        cores: &request.cores,
        scratch: Some(scratch),
        remove_when_killed: request.remove_when_killed.clone(),
        parent_watch: ParentWatch::Shell,
    })?;
    let software = Software { name: "nginx".to_owned(), version: build.version.clone() };
    let scheme = if request.tls.is_some() { "https" } else { "http" };
    wait_until_it_answers(&mut process, address, &pid_file, (&software, scheme))?;
    let (path, cores) = ("/".to_owned(), request.cores.clone());
    let facts = Facts { scheme: scheme.to_owned(), path, software, configuration, cores };
    let mut server = ServerProcess::new(process, address, facts);
    server.status = status;
    Ok(server)
}

/// A program's description of itself.
struct Build {
    version: String,
    /// It has a status page.
    has_status: bool,
}

/// `nginx -V` writes `nginx version: nginx/1.22.1` and what it was configured with to standard
/// error.
fn build_of(program: &Path) -> Result<Build, ServerError> {
    let output = output_of(program, "-V")?;
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().next().unwrap_or_default();
    let version = first.trim().split_once("nginx/").map(|(_, version)| version);
    Ok(Build {
        version: version.unwrap_or("of unknown version").to_owned(),
        has_status: text.split_whitespace().any(|word| word == STATUS_MODULE),
    })
}

/// The socket of its status page: apart from the port under load, and for this user alone.
fn status_socket(build: &Build, scratch: &Path) -> Option<PathBuf> {
    let socket = scratch.join("status.sock");
    let fits = socket.as_os_str().len() < SOCKET_PATH_BYTES_MAX;
    let can_be_named = socket.to_str().is_some_and(|text| !text.contains(['$', '"', '\\', '\n']));
    (build.has_status && fits && can_be_named).then_some(socket)
}

fn status_server(socket: &Path) -> String {
    format!(
        "    server {{\n        listen \"unix:{}\";\n        keepalive_timeout 0;\n        \
         location / {{\n            stub_status;\n        }}\n    }}\n",
        socket.display()
    )
}

fn takes_error_log_flag(version: &str) -> bool {
    let numbers = version.split_whitespace().next().unwrap_or_default().split('.');
    let numbers: Vec<u32> = numbers.map_while(|part| part.parse().ok()).collect();
    numbers.as_slice() >= ERROR_LOG_FLAG_SINCE.as_slice()
}

fn arguments(version: &str, scratch: &TempDir) -> Vec<std::ffi::OsString> {
    let mut arguments = vec!["-p".into(), scratch.path().into(), "-c".into(), "nginx.conf".into()];
    if takes_error_log_flag(version) {
        arguments.extend(["-e".into(), "stderr".into()]);
    }
    arguments
}

fn configuration(
    address: SocketAddr,
    scratch: &Path,
    served: &Served<'_>,
    status_server: &str,
) -> Result<String, ServerError> {
    let request = served.request;
    let workers = request.cores.len().max(1);
    let descriptors =
        getrlimit(Resource::Nofile).maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    // A connection needs one descriptor, a cached file one: neither may starve the other.
    let (connections, cached_files) = (descriptors / 2, descriptors / 3);
    // Without this a master run by root starts workers that cannot read the file set.
    let user = if geteuid().is_root() { "user root root;\n" } else { "" };
    let pins = worker_pins(&request.cores);
    let (tls, tls_files) = match &request.tls {
        None => ("", String::new()),
        Some(source) => (" ssl", tls_directives(source, address.ip(), scratch)?),
    };
    let root = served.root;
    let files = request.suffix.map_or(String::new(), |suffix| {
        format!("        location / {{\n            try_files $uri{suffix} =404;\n        }}\n")
    });
    Ok(format!(
        "daemon off;
{user}worker_processes {workers};
{pins}worker_rlimit_nofile {descriptors};
pid nginx.pid;
lock_file nginx.lock;
error_log stderr warn;
events {{
    worker_connections {connections};
}}
http {{
    access_log off;
    log_not_found off;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    open_file_cache max={cached_files} inactive=1h;
    open_file_cache_valid 1h;
    open_file_cache_min_uses 1;
    default_type application/octet-stream;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{
        listen {address}{tls} backlog=4096;
        root \"{root}\";
{tls_files}{files}    }}
{status_server}}}
"
    ))
}

/// One worker per core.
fn worker_pins(cores: &[u32]) -> String {
    if cores.is_empty() {
        return String::new();
    }
    let mut line = String::from("worker_cpu_affinity");
    for &core in cores {
        // A bit mask, the highest core first.
        let _ = write!(line, " 1{}", "0".repeat(core as usize));
    }
    line + ";\n"
}

fn tls_directives(source: &TlsSource, ip: IpAddr, scratch: &Path) -> Result<String, ServerError> {
    let (certificate, key) = match source {
        TlsSource::Files { certificate, key } => (resolved(certificate)?, resolved(key)?),
        TlsSource::SelfSigned => {
            let pem = self_signed(ip)?;
            write(&scratch.join("certificate.pem"), &pem.certificate)?;
            write(&scratch.join("key.pem"), &pem.key)?;
            (PathBuf::from("certificate.pem"), PathBuf::from("key.pem"))
        }
    };
    Ok(format!(
        "        ssl_certificate \"{}\";\n        ssl_certificate_key \"{}\";\n        \
         ssl_protocols TLSv1.2 TLSv1.3;\n        ssl_session_cache shared:tls:10m;\n",
        certificate.display(),
        key.display(),
    ))
}

fn resolved(path: &Path) -> Result<PathBuf, ServerError> {
    let refused = |error: io::Error| {
        let (path, reason) = (path.to_owned(), error.to_string());
        ServerError::from(CertificateError::Pem { path, reason })
    };
    path.canonicalize().map_err(refused)
}

#[cfg(test)]
mod tests {
    use plimsoll_servers::programs::LOOPBACK;

    use super::*;

    #[test]
    fn the_error_log_flag_depends_on_the_version() {
        for (version, expected) in
            [("1.22.1", true), ("1.19.5", true), ("1.19.4", false), ("2.0", true), ("?", false)]
        {
            assert_eq!(takes_error_log_flag(version), expected, "{version}");
        }
    }

    #[test]
    fn each_worker_is_pinned_to_its_core() {
        assert_eq!(worker_pins(&[0, 3]), "worker_cpu_affinity 1 1000;\n");
        assert_eq!(worker_pins(&[]), "");
    }

    #[test]
    fn a_missing_nginx_says_how_to_get_it() {
        let request = NginxRequest {
            listen_on: LOOPBACK,
            root: ".".into(),
            cores: vec![],
            tls: None,
            search: Some(vec![]),
            remove_when_killed: None,
            suffix: None,
        };
        assert_eq!(
            start(&request).unwrap_err().to_string(),
            "managed:nginx: no nginx found in PATH, /usr/sbin, /usr/local/sbin or \
             /usr/local/nginx/sbin; install it (apt install nginx-light) or give a URL"
        );
    }
}
