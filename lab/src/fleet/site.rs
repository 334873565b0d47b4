//! Three agents and their server: two processes of this host, and one in a network namespace behind
//! two links, of which one can be cut.

use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use xtask::verb::Result;

use super::target::Target;
use crate::confinement::{INSIDE_TOO, OUTSIDE_TOO};
use crate::remote::Remote;

/// Variable of every process of a run, and its value the run's.
const TOKEN: &str = "LAB_FLEET";
/// Variable of agents, and its value the agent's number.
const NUMBER: &str = "LAB_FLEET_AGENT";
/// Load points of each run.
pub const POINTS: usize = 3;
/// Agents of the site.
pub const AGENTS: usize = 3;
/// The agent that can be cut off.
pub const FAR_AGENT: usize = 2;

/// Agents, links and server.
pub struct Site<'s> {
    pub target: Target,
    pub remote: Remote,
    program: &'s Path,
    /// `--agents`.
    agents_file: PathBuf,
    token: String,
    /// Names and addresses of the agents.
    pub agents: [(String, IpAddr); AGENTS],
}

/// A process of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunProcess {
    pub id: u32,
    /// 0, 1, 2; `None` for the controller and for launchers.
    pub agent: Option<usize>,
}

impl<'s> Site<'s> {
    /// Its files lie in `folder`.
    pub fn new(program: &'s Path, folder: &Path) -> Result<Self> {
        let token = format!("{}-{}", std::process::id(), folder.display());
        let variables = format!("SetEnv {TOKEN}={token} {NUMBER}={FAR_AGENT}");
        let remote = Remote::new(folder, &variables)?;
        remote.namespace.link_again()?;
        let [near, first, second] = OUTSIDE_TOO.map(address);
        let own = |number: usize| format!("exec:env {NUMBER}={number}");
        let agents = [(own(0), first?), (own(1), second?), (Remote::url(), address(INSIDE_TOO)?)];
        let agents_file = folder.join("agents.toml");
        let table = |(name, source): &(String, IpAddr)| {
            let program = program.display();
            format!(
                "[[agent]]\nat = \"{name}\"\nprogram = \"{program}\"\nworkers = 1\nsources = \
                 [\"{source}\"]\n"
            )
        };
        let text: String = agents.iter().map(table).collect();
        fs::write(&agents_file, text).map_err(|e| format!("{}: {e}", agents_file.display()))?;
        Ok(Self { target: Target::start(near?)?, remote, program, agents_file, token, agents })
    }

    /// Starts the controller of a run of three short load points; what it prints is in `log`.
    pub fn run(&self, bundle: &Path, log: &Path) -> Result<Child> {
        let mut command = Command::new(self.program);
        command.args(["run", "web-url", &format!("http://{}/", self.target.address)]);
        command.arg("--agents").arg(&self.agents_file).args(["--agents-min", "2"]);
        command.args(["--agents-wait", "15s", "--points", "60,90,120", "--profile", "quick"]);
        for setting in [
            "load.mode=\"open\"",
            "load.clients=12",
            "profiles.quick.warm_up=\"300ms\"",
            "profiles.quick.measure=\"1s\"",
            "profiles.quick.drain=\"500ms\"",
        ] {
            command.args(["--set", setting]);
        }
        command.arg("--out").arg(bundle);
        self.start(command, log)
    }

    /// Starts a controller that resumes the run.
    pub fn resume(&self, bundle: &Path, log: &Path) -> Result<Child> {
        let mut command = Command::new(self.program);
        command.arg("resume").arg(bundle);
        self.start(command, log)
    }

    fn start(&self, mut command: Command, log: &Path) -> Result<Child> {
        self.remote.admit(&mut command);
        command.env(TOKEN, &self.token).args(["--progress", "none"]);
        let wrong = |e: std::io::Error| format!("{}: {e}", log.display());
        let file = File::options().create(true).append(true).open(log).map_err(wrong)?;
        let errors = file.try_clone().map_err(wrong)?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors);
        command.spawn().map_err(|e| format!("cannot start {}: {e}", self.program.display()))
    }

    /// Processes of the run that have not ended.
    pub fn processes(&self) -> Vec<RunProcess> {
        let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(|id| self.process(id)).collect()
    }

    fn process(&self, id: u32) -> Option<RunProcess> {
        let variables = fs::read(format!("/proc/{id}/environ")).ok()?;
        let variables = String::from_utf8_lossy(&variables).into_owned();
        let value = |name: &str| {
            let mut all = variables.split('\0').filter_map(|variable| variable.split_once('='));
            all.find(|(of, _)| *of == name).map(|(_, value)| value)
        };
        if value(TOKEN) != Some(self.token.as_str()) || is_zombie(id) {
            return None;
        }
        Some(RunProcess { id, agent: value(NUMBER).and_then(|number| number.parse().ok()) })
    }
}

/// It has ended, and its status was not collected.
fn is_zombie(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn address(text: &str) -> Result<IpAddr> {
    text.parse().map_err(|e| format!("{text}: {e}"))
}
