//! `managed:caddy`.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use plimsoll_servers::process::{Facts, Launch, ParentWatch, Process};
use plimsoll_servers::programs::{installed, on_a_free_port, output_of, scratch};
use plimsoll_servers::{ServerError, ServerProcess, Software};

use super::{document_root, wait_until_it_answers, write};

/// Where packages and downloads put it.
const INSTALL_DIRECTORIES: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// What a managed Caddy is to serve, and how.
#[derive(Clone, Debug)]
pub struct CaddyRequest {
    /// Address it listens on.
    pub listen_on: IpAddr,
    /// Document root.
    pub root: PathBuf,
    /// Cores to pin it to; empty: wherever the system puts it.
    pub cores: Vec<u32>,
    /// Directories to look for the program in; `None`: `PATH` and the directories of packages.
    pub search: Option<Vec<PathBuf>>,
    /// A directory of the caller's that is removed when the caller dies without stopping the
    /// server.
    pub remove_when_killed: Option<PathBuf>,
    /// What follows the path of a request in the name of its file.
    pub suffix: Option<&'static str>,
}

/// Starts it and waits until it answers.
pub fn start(request: &CaddyRequest) -> Result<ServerProcess, ServerError> {
    let search = (request.search.as_deref(), &INSTALL_DIRECTORIES[..]);
    let program = installed("caddy", "caddy", search, "apt install caddy")?;
    let version = version_of(&program)?;
    let root = document_root("Caddy", &request.root)?;
    on_a_free_port(request.listen_on, |address| {
        start_at(address, (&program, &version), &root, request)
    })
}

fn start_at(
    address: SocketAddr,
    (program, version): (&Path, &str),
    root: &str,
    request: &CaddyRequest,
) -> Result<ServerProcess, ServerError> {
    let scratch = scratch("plimsoll-caddy-")?;
    let directory = scratch.path().to_owned();
    let (file, pid_file) = (directory.join("Caddyfile"), directory.join("caddy.pid"));
    let configuration = configuration(address, root, request.suffix);
    write(&file, &configuration)?;
    let own = || directory.display().to_string();
    // It keeps certificates and its last configuration there, and needs no other directory.
    let mut environment = vec![("XDG_DATA_HOME", own()), ("XDG_CONFIG_HOME", own())];
    // Threads that run code at a time. Go would have one for each core of the host.
    environment.extend(
        (!request.cores.is_empty()).then(|| ("GOMAXPROCS", request.cores.len().to_string())),
    );
    let arguments: [OsString; 7] = [
        "run".into(),
        "--adapter".into(),
        "caddyfile".into(),
        "--config".into(),
        file.into(),
        "--pidfile".into(),
        pid_file.clone().into(),
    ];
    let mut process = Process::start(Launch {
        program: program.to_owned(),
        arguments: arguments.into(),
        environment,
        cores: &request.cores,
        scratch: Some(scratch),
        remove_when_killed: request.remove_when_killed.clone(),
        parent_watch: ParentWatch::Shell,
    })?;
    let software = Software { name: "Caddy".to_owned(), version: version.to_owned() };
    wait_until_it_answers(&mut process, address, &pid_file, (&software, "http"))?;
    let (scheme, path, cores) = ("http".to_owned(), "/".to_owned(), request.cores.clone());
    let facts = Facts { scheme, path, software, configuration, cores };
    Ok(ServerProcess::new(process, address, facts))
}

/// `caddy version` writes `v2.6.2 h1:…`, or `2.6.2`.
fn version_of(program: &Path) -> Result<String, ServerError> {
    let output = output_of(program, "version")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.split_whitespace().next().unwrap_or("of unknown version");
    Ok(first.trim_start_matches('v').to_owned())
}

/// HTTP/1.1 alone, connections kept for an hour, nothing logged but errors.
fn configuration(address: SocketAddr, root: &str, suffix: Option<&str>) -> String {
    let (host, port) = (address.ip(), address.port());
    let files = suffix.map_or(String::new(), |suffix| format!("	try_files {{path}}{suffix}\n"));
    format!(
        "{{
	admin off
	auto_https off
	log {{
		level ERROR
	}}
	servers {{
		protocols h1
		timeouts {{
			idle 1h
		}}
	}}
}}
http://:{port} {{
	bind {host}
	root * \"{root}\"
{files}	file_server
}}
"
    )
}

#[cfg(test)]
mod tests {
    use plimsoll_servers::programs::LOOPBACK;

    use super::*;

    #[test]
    fn a_missing_caddy_says_how_to_get_it() {
        let request = CaddyRequest {
            listen_on: LOOPBACK,
            root: ".".into(),
            cores: vec![],
            search: Some(vec![]),
            remove_when_killed: None,
            suffix: None,
        };
        assert_eq!(
            start(&request).unwrap_err().to_string(),
            "managed:caddy: no caddy found in PATH, /usr/bin or /usr/local/bin; install it (apt \
             install caddy) or give a URL"
        );
    }
}
