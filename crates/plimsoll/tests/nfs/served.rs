//! `plimsoll serve nfs` as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use plimsoll_testkit::program::command;

/// A reference server, stopped when dropped.
pub struct Served {
    child: Child,
    /// `nfs://127.0.0.1:PORT/export?mountport=PORT`.
    pub url: String,
    /// Its port, for TCP and UDP, MOUNT and NFS.
    pub port: u16,
}

impl Served {
    /// On a free port, with more flags.
    pub fn with(flags: &[&str]) -> Self {
        Self::at("127.0.0.1:0", flags)
    }

    /// On this address.
    pub fn at(listen: &str, flags: &[&str]) -> Self {
        let mut child = command(&["serve", "nfs", "--listen", listen, "--stop-with-stdin"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let url = said.trim().strip_prefix("listening on ").unwrap().to_owned();
        let port = url.rsplit_once("mountport=").unwrap().1.parse().unwrap();
        Self { child, url, port }
    }

    /// The URL over UDP.
    pub fn udp(&self) -> String {
        format!("{}&transport=udp", self.url)
    }

    /// The same export through a proxy on another port.
    pub fn through(&self, port: u16, transport: &str) -> String {
        format!("nfs://127.0.0.1:{port}/export?mountport={}&transport={transport}", self.port)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Its standard input ends with the child's handle; a killed one cannot wait for that.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
