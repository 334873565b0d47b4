//! A host of its own, as far as one machine can be two: a network namespace with an sshd in it.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use xtask::command;
use xtask::verb::Result;

use crate::confinement::{INSIDE, Namespace};
use crate::process::Running;

/// Nothing else listens in a namespace of our own.
const PORT: u16 = 2_222;
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 100;

/// The namespace, its sshd, and keys made for it. Ended and removed when dropped.
pub struct Remote {
    sshd: Running,
    pub namespace: Namespace,
    folder: PathBuf,
}

impl Remote {
    /// Its files lie in `folder`; `settings` are more lines of the sshd's configuration.
    pub fn new(folder: &Path, settings: &str) -> Result<Self> {
        let find = |name| command::find(name).ok_or_else(|| format!("{name} is not installed"));
        let (sshd, keygen) = (find("sshd")?, find("ssh-keygen")?);
        let folder = folder.join("ssh");
        make_files(&folder, &keygen, settings)?;
        let namespace = Namespace::new(99)?;
        let log = fs::File::create(folder.join("log")).map_err(|e| format!("log of sshd: {e}"))?;
        let mut command = namespace.inside(&sshd);
        command.args(["-D", "-e", "-f"]).arg(folder.join("config"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|e| format!("cannot start sshd: {e}"))?;
        let remote = Self { sshd: Running(child), namespace, folder };
        remote.wait()?;
        Ok(remote)
    }

    /// Until its sshd can be reached.
    pub fn wait(&self) -> Result<()> {
        for _ in 0..LOOKS_MAX {
            if TcpStream::connect((INSIDE, PORT)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(format!("sshd (process {}) does not listen: {log}", self.sshd.0.id()))
    }

    /// Its URL, for a program that [`Self::admit`] was called for.
    pub fn url() -> String {
        format!("ssh://root@{INSIDE}:{PORT}")
    }

    /// Lets a program log on to it.
    pub fn admit(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.display()));
    }

    /// Has the program watch this host, and no other.
    pub fn watch(&self, command: &mut Command) {
        self.admit(command);
        command.arg("--monitor").arg(Self::url());
    }
}

impl Drop for Remote {
    /// Sessions outlive their sshd.
    fn drop(&mut self) {
        self.namespace.end_processes();
    }
}

fn make_files(folder: &Path, keygen: &Path, settings: &str) -> Result<()> {
    let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
    fs::create_dir_all(folder).map_err(wrong)?;
    fs::create_dir_all("/run/sshd").map_err(|e| format!("/run/sshd: {e}"))?;
    for key in ["host", "user"] {
        let mut command = Command::new(keygen);
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        command::run(&mut command)?;
    }
    let at = folder.display();
    let config = format!(
        "ListenAddress {INSIDE}:{PORT}\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\n\
         PidFile {at}/pid\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n\
         UsePAM no\n{settings}\n"
    );
    fs::write(folder.join("config"), config).map_err(wrong)?;
    // The system's ssh, with this key and nothing of the user's.
    let ssh = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -F /dev/null -i {at}/user -o IdentitiesOnly=yes \
         -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile={at}/known \"$@\"\n"
    );
    fs::write(folder.join("ssh"), ssh).map_err(wrong)?;
    fs::set_permissions(folder.join("ssh"), fs::Permissions::from_mode(0o755)).map_err(wrong)
}
