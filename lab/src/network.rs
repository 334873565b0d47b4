//! Where server and generator run: on the host as it is, or in our own network namespace with a
//! known congestion control.

use std::process::Command;

use xtask::command;
use xtask::verb::Result;

/// Core of the server under test.
pub const SERVER_CORE: u32 = 1;
/// Core of the generator, ours and the rivals'.
pub const GENERATOR_CORE: u32 = 0;

/// A network for one section. A namespace is removed when dropped.
pub enum Network {
    /// The host's own network.
    Host,
    /// A namespace with nothing but loopback.
    Namespace(String),
}

impl Network {
    /// A namespace whose TCP uses `congestion_control`. Needs root.
    pub fn with_congestion_control(congestion_control: &str) -> Result<Self> {
        let name = format!("plimsoll-bench-{}", std::process::id());
        command::run(Command::new("ip").args(["netns", "add", &name]))?;
        let network = Self::Namespace(name);
        network.run(&["ip", "link", "set", "lo", "up"])?;
        let setting = format!("net.ipv4.tcp_congestion_control={congestion_control}");
        network.run(&["sysctl", "-q", "-w", &setting])?;
        Ok(network)
    }

    fn run(&self, command_line: &[&str]) -> Result<()> {
        let mut command = self.prefixed(command_line[0]);
        command::run(command.args(&command_line[1..]))
    }

    /// A command for `program`, pinned to one core, inside this network.
    pub fn pinned(&self, core: u32, program: &str) -> Command {
        self.pinned_to(&[core], program)
    }

    /// A command for `program`, pinned to `cores`.
    pub fn pinned_to(&self, cores: &[u32], program: &str) -> Command {
        let list = cores.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut command = self.prefixed("taskset");
        command.args(["-c", &list, program]);
        command
    }

    /// `ip netns exec` and `taskset` become the program they start: its process id is the one
    /// that was spawned.
    fn prefixed(&self, program: &str) -> Command {
        match self {
            Self::Host => Command::new(program),
            Self::Namespace(name) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name, program]);
                command
            }
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Self::Namespace(name) = self
            && let Err(message) = command::run(Command::new("ip").args(["netns", "del", name]))
        {
            eprintln!("{message}");
        }
    }
}
