//! A real nginx with one worker, on a free port, from a configuration of our own.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use xtask::command;
use xtask::verb::Result;

use crate::network::{Network, SERVER_CORE};
use crate::{process, program};

/// Twenty times this long, nginx has to come up.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// A running nginx. Stopped, and its folder removed, when dropped.
pub struct Nginx {
    process: Child,
    folder: TempDir,
    /// `127.0.0.1:PORT`.
    pub address: String,
    /// The same of HTTP/2, by prior knowledge.
    address_http2: String,
}

impl Nginx {
    /// Serves `/1k` (1,024 bytes) and `/100k` (102,400 bytes).
    pub fn start(network: &Network) -> Result<Self> {
        let nginx = command::find("nginx")
            .ok_or("nginx is not installed; sudo apt-get install nginx-light")?;
        let (port, port_http2) = (free_port()?, free_port()?);
        let folder = program::temporary()?;
        let path = folder.path();
        write_files(path, [port, port_http2]).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut command = network.pinned(SERVER_CORE, &nginx.to_string_lossy());
        command.arg("-p").arg(path).arg("-c").arg(path.join("nginx.conf"));
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start nginx: {e}"))?;
        let [address, address_http2] = [port, port_http2].map(|port| format!("127.0.0.1:{port}"));
        let mut server = Self { process, folder, address, address_http2 };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Its master's process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The same over HTTP/2.
    pub fn http2_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address_http2)
    }

    /// Its processes: the master and its worker.
    pub fn ids(&self) -> Vec<u32> {
        let id = self.id();
        std::iter::once(id).chain(process::children(id)).collect()
    }

    /// nginx writes its process id after it has bound its port, and starts its worker then.
    fn wait_until_ready(&mut self) -> Result<()> {
        for _ in 0..20 {
            let id = fs::read_to_string(self.folder.path().join("pid")).unwrap_or_default();
            if !id.trim().is_empty() && self.ids().len() > 1 {
                return Ok(());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                let log =
                    fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default();
                return Err(format!("nginx stopped at once: {status}\n{log}"));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Err("nginx did not come up within 5 s".to_owned())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // TERM lets the master stop its worker; a plain kill would leave the worker behind.
        let id = self.process.id().to_string();
        let signalled = Command::new("kill").args(["-TERM", &id]).status();
        if signalled.is_ok_and(|status| status.success()) {
            let _ = self.process.wait();
        } else {
            let _ = self.process.kill();
        }
    }
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map(|a| a.port()).map_err(|e| format!("no free port: {e}"))
}

fn write_files(folder: &Path, ports: [u16; 2]) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("html"))?;
    fs::create_dir_all(folder.join("tmp"))?;
    fs::write(folder.join("html/1k"), vec![b'x'; 1024])?;
    fs::write(folder.join("html/100k"), vec![b'x'; 102_400])?;
    fs::write(folder.join("nginx.conf"), configuration(folder, ports))
}

fn configuration(folder: &Path, [port, port_http2]: [u16; 2]) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {folder}/tmp/{kind};\n"))
        .concat();
    format!(
        "user root;
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/pid;
error_log {folder}/error.log crit;
events {{ worker_connections 15000; }}
http {{
  access_log off;
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  open_file_cache max=100 inactive=10m;
  open_file_cache_valid 10m;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
{temporary}  server {{
    listen 127.0.0.1:{port} backlog=20000;
    root {folder}/html;
  }}
  server {{
    listen 127.0.0.1:{port_http2} http2 backlog=20000;
    # With it, a reply over HTTP/2 waits 40 ms for the client's delayed ACK.
    sendfile off;
    root {folder}/html;
  }}
}}
"
    )
}
