//! A real Slurm of a test's own: munge, a controller, and this host as its one node.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::peers::{require_peer, require_root};
use crate::program::signal;
use crate::program::wait_until;

/// Ends when dropped, with its jobs.
pub struct Slurm {
    /// In the order of their start.
    daemons: Vec<Child>,
    folder: TempDir,
}

impl Slurm {
    /// With this many processors; `None`, after a skip, where Slurm, munge or root is missing.
    pub fn start(processors: u32) -> Option<Self> {
        let daemons = ["munged", "slurmctld", "slurmd"].map(require_peer);
        let [Some(munged), Some(slurmctld), Some(slurmd)] = daemons else { return None };
        require_peer("srun")?;
        require_root("a Slurm of one's own")?;
        let folder = TempDir::new().unwrap();
        make_files(folder.path(), processors);
        let mut it = Self { daemons: Vec::new(), folder };
        let at = it.folder.path().display().to_string();
        let file = |name: &str, path: &str| format!("--{name}={at}/munge/{path}");
        let munge = ["--foreground".into(), "--force".into(), file("key-file", "key")];
        let more = [file("socket", "sock"), file("pid-file", "pid"), file("seed-file", "seed")];
        it.run(&munged, &[&munge[..], &more].concat());
        let socket = it.folder.path().join("munge/sock");
        wait_until("munged listens", || socket.exists());
        it.run(&slurmctld, &["-D".to_owned()]);
        it.run(&slurmd, &["-D".to_owned()]);
        wait_until("the node is idle", || it.ask("sinfo", &["-h", "-o", "%t"]) == "idle");
        Some(it)
    }

    /// Value of `SLURM_CONF`.
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// Waits until no job is left: a processor is free only some time after a job's end.
    pub fn wait_until_idle(&self) {
        wait_until("no job is left", || self.ask("squeue", &["-h"]).is_empty());
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(program);
        let output = command.args(arguments).env("SLURM_CONF", self.configuration()).output();
        String::from_utf8_lossy(&output.unwrap().stdout).trim().to_owned()
    }

    fn run(&mut self, program: &Path, arguments: &[String]) {
        let name = program.file_name().unwrap().to_string_lossy().into_owned();
        let log = fs::File::create(self.folder.path().join(format!("log/{name}.out"))).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.configuration());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(command.spawn().unwrap());
    }
}

fn make_files(root: &Path, processors: u32) {
    for folder in ["munge", "state", "spool", "log"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    // munged requires its socket to be accessible to everybody.
    for folder in ["", "munge"] {
        fs::set_permissions(root.join(folder), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let key = root.join("munge/key");
    fs::write(&key, [b'k'; 1_024]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let hold = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let [controller, node] = hold.each_ref().map(|free| free.local_addr().unwrap().port());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = host.split('.').next().unwrap();
    let at = root.display();
    let settings = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\n\
         SlurmctldPort={controller}\nSlurmdPort={node}\n\
         CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
         AuthType=auth/munge\nAuthInfo=socket={at}/munge/sock\n\
         StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\n\
         SlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd.pid\n\
         SlurmctldLogFile={at}/log/slurmctld\nSlurmdLogFile={at}/log/slurmd\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         JobAcctGatherType=jobacct_gather/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         SchedulerParameters=bf_interval=1,sched_interval=2\n\
         ReturnToService=2\nKillWait=5\nInactiveLimit=10\n\
         NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory=500 State=UNKNOWN\n\
         PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
    );
    fs::write(root.join("slurm.conf"), settings).unwrap();
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.ask("scancel", &["-u", "root"]);
        // A job that outlives its daemons stays forever. After a failed test nothing here may
        // panic.
        for _ in 0..100 {
            if self.ask("squeue", &["-h"]).is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        for daemon in self.daemons.iter_mut().rev() {
            signal(daemon, Signal::TERM);
            let _ = daemon.wait();
        }
    }
}
