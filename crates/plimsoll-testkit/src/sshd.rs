//! A real sshd of a test's own, with keys made for it. Who logs on is root in a home directory of
//! the test's: start-up files of the machine's shells play no part.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::namespaces::Namespaces;
use crate::peers::{require_peer, require_root};
use crate::program::signal;
use crate::program::wait_until;

/// Ends when dropped.
pub struct Sshd {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Sshd {
    /// `None`, after a skip, where there is no OpenSSH or no root.
    pub fn start() -> Option<Self> {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        Self::start_as(address, Command::new)
    }

    /// The host that one of these namespaces is.
    pub fn start_in(namespaces: &Namespaces, spoke: usize) -> Option<Self> {
        let address = SocketAddr::new(namespaces.address(spoke), 22);
        Self::start_as(address, |sshd| namespaces.in_spoke(spoke, &Command::new(sshd)))
    }

    fn start_as(address: SocketAddr, command: impl Fn(PathBuf) -> Command) -> Option<Self> {
        let sshd = require_peer("sshd")?;
        require_peer("ssh")?;
        let keygen = require_peer("ssh-keygen")?;
        require_root("an sshd of one's own")?;
        let folder = TempDir::new().unwrap();
        make_files(folder.path(), &keygen, address);
        fs::create_dir_all("/run/sshd").unwrap();
        let log = folder.path().join("log");
        let child = command(sshd)
            .args(["-D", "-e", "-f"])
            .arg(folder.path().join("config"))
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let it = Self { child, address, folder };
        wait_until("sshd listens", || {
            fs::read_to_string(&log).unwrap().contains("Server listening")
        });
        Some(it)
    }

    /// `ssh://root@127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("ssh://root@{}", self.address)
    }

    /// Home directory of who logs on.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// For `ssh -F`: logs on with a key, `user` or `wrong`, and nothing of the machine's user.
    pub fn client(&self, key: &str) -> PathBuf {
        self.folder.path().join(format!("client-{key}"))
    }
}

fn make_files(folder: &Path, keygen: &Path, address: SocketAddr) {
    let at = folder.display();
    for name in ["host", "user", "wrong"] {
        let file = folder.join(name);
        let mut make = Command::new(keygen);
        let made = make.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status();
        assert!(made.unwrap().success());
        let client = format!(
            "IdentityFile {at}/{name}\nIdentitiesOnly yes\nStrictHostKeyChecking accept-new\n\
             UserKnownHostsFile {at}/known\n"
        );
        fs::write(folder.join(format!("client-{name}")), client).unwrap();
    }
    fs::create_dir(folder.join("home")).unwrap();
    let key = fs::read_to_string(folder.join("user.pub")).unwrap();
    fs::write(folder.join("authorized"), format!("environment=\"HOME={at}/home\" {key}")).unwrap();
    // A session whose client was cut off ends, and does not outlive the test for long.
    let settings = format!(
        "ListenAddress {address}\nHostKey {at}/host\nAuthorizedKeysFile {at}/authorized\n\
         PidFile {at}/pid\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n\
         PermitUserEnvironment yes\nMaxStartups 10:100:10\nUsePAM no\n\
         ClientAliveInterval 2\nClientAliveCountMax 3\n"
    );
    fs::write(folder.join("config"), settings).unwrap();
}

impl Drop for Sshd {
    fn drop(&mut self) {
        signal(&self.child, Signal::TERM);
        let _ = self.child.wait();
    }
}
