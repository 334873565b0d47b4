//! Where a row runs: network namespaces of its own with its servers, its monitors and its agents.

use std::ffi::OsString;
use std::fs;
use std::net::{IpAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_nfs::server::ganesha::GaneshaRequest;
use plimsoll_servers::{Login, ServerProcess};
use plimsoll_smb::server::samba::SambaRequest;
use tempfile::TempDir;

use super::{ENCRYPTED, GENERATOR, HTTP, MONITOR, PROTOCOL, Row, SERVER, TARGETS};
use crate::namespaces::Namespaces;
use crate::nfs_peers::ganesha_as;
use crate::peers::require_peer;
use crate::program::{Running, Served, wait_until};
use crate::shared_files::PASSWORD_VARIABLE;
use crate::smb_peers::samba_as;
use crate::snmp_agent::COMMUNITY;
use crate::sshd::Sshd;
use crate::tls::TestCertificate;

/// Namespaces: the program with the servers that it starts, two servers of others, two agents.
const CONTROLLER: usize = 0;
const SERVERS: [usize; 2] = [1, 2];
const AGENTS: [usize; 2] = [3, 4];
/// Ports in namespaces of our own are free.
const WEB_PORT: u16 = 8080;
const EXPORTER_PORT: u16 = 9100;
const SNMP_PORT: u16 = 161;
/// Who may log on to every SMB server.
const USER: &str = "plimsoll";
const PASSWORD: &str = "a password of the tests";

/// What a row needs; everything ends when it is dropped.
pub struct Bench {
    program: PathBuf,
    /// URLs of the targets, or what stands for a server that the run starts.
    pub targets: Vec<String>,
    /// Arguments for the agents that make the load.
    pub agents: Vec<String>,
    /// Sources of `--monitor`.
    pub monitors: Vec<String>,
    servers: Vec<Server>,
    _sshd: Option<Sshd>,
    _monitors: Vec<Running>,
    // Last: what uses them ends before.
    folder: TempDir,
    namespaces: Namespaces,
}

enum Server {
    Web(Running, PathBuf),
    Process(Box<ServerProcess>),
    Own(Served),
}

impl Bench {
    /// What this row of runs of `program` needs. `None`, after a skip, where a peer is missing.
    pub fn start(program: &Path, row: &Row) -> Option<Self> {
        let namespaces = Namespaces::start(5)?;
        let folder = tempfile::tempdir().unwrap();
        let mut it = Self {
            program: program.to_owned(),
            folder,
            targets: Vec::new(),
            agents: Vec::new(),
            monitors: Vec::new(),
            servers: Vec::new(),
            _sshd: None,
            _monitors: Vec::new(),
            namespaces,
        };
        let count = if row.is(TARGETS, "several") { 2 } else { 1 };
        for namespace in &SERVERS[..count] {
            it.add_target(row, *namespace)?;
        }
        let is_foreign = row.is(SERVER, "foreign");
        it.add_monitor(row, if is_foreign { SERVERS[0] } else { CONTROLLER })?;
        if row.is(GENERATOR, "agents") {
            let name =
                |agent: usize| format!("exec:ip netns exec {}", it.namespaces.spokes()[agent]);
            it.agents = AGENTS.iter().flat_map(|at| ["--agents".to_owned(), name(*at)]).collect();
            if !is_foreign {
                let here = it.namespaces.address(CONTROLLER).to_string();
                it.agents.extend(["--listen-on".to_owned(), here]);
            }
        }
        Some(it)
    }

    /// A folder for what the row leaves.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program with these arguments, where it is to run.
    pub fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        // Of the folder's ssh, if there is one.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder().display()));
        command.env("PLIMSOLL_SNMP_COMMUNITY", COMMUNITY);
        if !self.servers.is_empty() {
            command.env(PASSWORD_VARIABLE, PASSWORD);
        }
        let mut command = self.namespaces.in_spoke(CONTROLLER, &command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Processes of the servers that were started before the run.
    pub fn pids(&self) -> Vec<u32> {
        let pid = |server: &Server| match server {
            Server::Web(running, _) => running.0.id(),
            Server::Process(process) => process.pid(),
            Server::Own(served) => served.child().id(),
        };
        self.servers.iter().map(pid).collect()
    }

    /// Requests in the servers' logs; `None` if they have none.
    pub fn logged(&self) -> Option<u64> {
        let of_server = |server: &Server| match server {
            Server::Web(_, log) => Some(fs::read_to_string(log).unwrap().lines().count() as u64),
            Server::Process(_) | Server::Own(_) => None,
        };
        let logged: Option<Vec<u64>> = self.servers.iter().map(of_server).collect();
        logged.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
    }

    fn add_target(&mut self, row: &Row, namespace: usize) -> Option<()> {
        let protocol = row.levels[PROTOCOL];
        if !row.is(SERVER, "foreign") {
            let managed = match protocol {
                "nfs" => "managed:ganesha",
                "smb" => "managed:samba",
                _ => "managed:nginx",
            };
            let is_managed = row.is(SERVER, "managed");
            self.targets.push(if is_managed { managed } else { "builtin:" }.to_owned());
            return Some(());
        }
        let address = self.namespaces.address(namespace);
        let (server, url) = match protocol {
            "web" => self.start_nginx(row, namespace)?,
            "nfs" => {
                let listen_on = Some(address);
                let request = GaneshaRequest { listen_on, ..GaneshaRequest::default() };
                from_process(self.namespaces.open_in_spoke(namespace, || ganesha_as(&request))?)
            }
            "smb" => {
                let login = Login { user: USER.to_owned(), password: PASSWORD.to_owned() };
                let login = Some(login);
                let request =
                    SambaRequest { listen_on: Some(address), login, ..SambaRequest::default() };
                from_process(self.namespaces.open_in_spoke(namespace, || samba_as(&request))?)
            }
            verb => self.start_own(verb, namespace),
        };
        self.servers.push(server);
        self.targets.push(url);
        Some(())
    }

    /// Of protocols that no other program serves.
    fn start_own(&self, verb: &str, namespace: usize) -> (Server, String) {
        let address = self.namespaces.address(namespace);
        let mut command = Command::new(&self.program);
        command.args(["serve", verb, "--listen", &format!("{address}:0"), "--stop-with-stdin"]);
        if verb == "llm" {
            command.arg("--sleep");
        }
        let served = Served::start(self.namespaces.in_spoke(namespace, &command));
        let url = served.url.clone();
        (Server::Own(served), url)
    }

    fn start_nginx(&self, row: &Row, namespace: usize) -> Option<(Server, String)> {
        let program = require_peer("nginx")?;
        let address = format!("{}:{WEB_PORT}", self.namespaces.address(namespace));
        let folder = self.folder().join(format!("nginx-{namespace}"));
        fs::create_dir(&folder).unwrap();
        TestCertificate::new().write_into(&folder);
        let (tls, http2) = (row.is(ENCRYPTED, "yes"), row.is(HTTP, "2"));
        let (ssl, http2) = (if tls { " ssl" } else { "" }, if http2 { " http2" } else { "" });
        let at = folder.display();
        let configuration = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log {at}/log;\nkeepalive_requests 1000000000;\n\
             client_body_temp_path {at}/body;\nssl_certificate {at}/certificate.pem;\n\
             ssl_certificate_key {at}/key.pem;\n\
             server {{ listen {address}{ssl}{http2};\nlocation / {{ return 200 \"hello\"; }} }}\n}}\n"
        );
        fs::write(folder.join("configuration"), configuration).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(&folder).args(["-c", "configuration", "-e", "stderr"]);
        let process = self.in_background(namespace, &command);
        wait_until("nginx listens", || folder.join("pid").exists());
        let scheme = if tls { "https" } else { "http" };
        Some((Server::Web(process, folder.join("log")), format!("{scheme}://{address}/")))
    }

    fn add_monitor(&mut self, row: &Row, namespace: usize) -> Option<()> {
        let address = self.namespaces.address(namespace);
        let url = match row.levels[MONITOR] {
            "none" => return Some(()),
            "ssh" => {
                let sshd = Sshd::start_in(&self.namespaces, namespace)?;
                let client = sshd.client("user");
                let text = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", client.display());
                let program = self.folder().join("ssh");
                fs::write(&program, text).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
                let url = sshd.url();
                self._sshd = Some(sshd);
                url
            }
            "exporter" => {
                let mut command = Command::new(require_peer("prometheus-node-exporter")?);
                command.arg(format!("--web.listen-address={address}:{EXPORTER_PORT}"));
                let exporter = self.in_background(namespace, &command);
                self._monitors.push(exporter);
                let connects = || TcpStream::connect((address, EXPORTER_PORT)).is_ok();
                wait_until("node_exporter listens", || {
                    self.namespaces.open_in_spoke(namespace, connects)
                });
                format!("http://{address}:{EXPORTER_PORT}/metrics")
            }
            _ => {
                self.start_snmpd(namespace, address)?;
                format!("snmp://{address}")
            }
        };
        self.monitors = vec!["--monitor".to_owned(), url];
        Some(())
    }

    fn start_snmpd(&mut self, namespace: usize, address: IpAddr) -> Option<()> {
        let configuration = self.folder().join("snmpd.conf");
        let text = format!("agentAddress udp:{address}:{SNMP_PORT}\nrocommunity {COMMUNITY}\n");
        fs::write(&configuration, text).unwrap();
        let mut command = Command::new(require_peer("snmpd")?);
        let pid_file: OsString = self.folder().join("snmpd.pid").into();
        command.args(["-f", "-Ln", "-C", "-c"]).arg(configuration).arg("-p").arg(&pid_file);
        let snmpd = self.in_background(namespace, &command);
        self._monitors.push(snmpd);
        wait_until("snmpd has started", || Path::new(&pid_file).exists());
        Some(())
    }

    fn in_background(&self, namespace: usize, command: &Command) -> Running {
        let mut command = self.namespaces.in_spoke(namespace, command);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }
}

fn from_process(process: ServerProcess) -> (Server, String) {
    let url = process.url();
    (Server::Process(Box::new(process)), url)
}
