//! Network namespaces of a test's own: a hub for servers and the controller, and others at its
//! bridge for agents. Nothing of the machine's own network is touched, and no address collides.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::peers::{require_peer, require_root};

/// First three bytes of all addresses; these networks have no other members.
const NETWORK: [u8; 3] = [10, 77, 0];
/// The hub's interface; its packets are those between the namespaces.
pub const BRIDGE: &str = "bridge";
/// The interface of every other namespace.
const UPLINK: &str = "uplink";

/// Removed when dropped; processes still in them keep running in unnamed ones.
#[derive(Debug)]
pub struct Namespaces {
    hub: String,
    spokes: Vec<String>,
}

impl Namespaces {
    /// A hub with this many spokes; `None`, after a skip, where iproute2 or root is missing.
    pub fn start(spokes: u8) -> Option<Self> {
        require_peer("ip")?;
        require_peer("nsenter")?;
        require_root("network namespaces")?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("plimsoll-{}-{number}-{part}", std::process::id());
        let spokes = (1..=spokes).map(|spoke| name(&spoke.to_string())).collect();
        let it = Self { hub: name("hub"), spokes };
        it.add(&it.hub);
        ip(&["-n", &it.hub, "link", "add", BRIDGE, "type", "bridge"]);
        it.address_of(&it.hub, BRIDGE, it.hub_address());
        for (number, spoke) in it.spokes.iter().enumerate() {
            it.add(spoke);
            let port = format!("port{number}");
            let link = ["-n", &it.hub, "link", "add", &port, "type", "veth", "peer"];
            ip(&[&link[..], &["name", UPLINK, "netns", spoke]].concat());
            ip(&["-n", &it.hub, "link", "set", &port, "master", BRIDGE, "up"]);
            it.address_of(spoke, UPLINK, it.address(number));
        }
        Some(it)
    }

    fn add(&self, name: &str) {
        ip(&["netns", "add", name]);
        ip(&["-n", name, "link", "set", "lo", "up"]);
    }

    fn address_of(&self, name: &str, interface: &str, address: IpAddr) {
        ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", interface]);
        ip(&["-n", name, "link", "set", interface, "up"]);
    }

    /// Where servers of the hub listen.
    pub fn hub_address(&self) -> IpAddr {
        address(1)
    }

    /// Of a namespace: 0, 1, 2 …
    pub fn address(&self, spoke: usize) -> IpAddr {
        address(spoke as u8 + 2)
    }

    /// Names of the namespaces, without the hub.
    pub fn spokes(&self) -> &[String] {
        &self.spokes
    }

    /// Cuts a namespace off, without notice.
    pub fn cut_off(&self, spoke: usize) {
        ip(&["-n", &self.spokes[spoke], "link", "set", UPLINK, "down"]);
    }

    /// The same command in the hub.
    pub fn in_hub(&self, command: &Command) -> Command {
        enter(&self.hub, command)
    }

    /// The same command in a namespace: 0, 1, 2 …
    pub fn in_spoke(&self, spoke: usize, command: &Command) -> Command {
        enter(&self.spokes[spoke], command)
    }

    /// What `make` makes in a namespace: a socket of this process stays where it was opened.
    pub fn open_in_spoke<T: Send>(&self, spoke: usize, make: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.spokes[spoke])).unwrap();
        let enter_and_make = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).unwrap();
            make()
        };
        std::thread::scope(|scope| scope.spawn(enter_and_make).join().unwrap())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in self.spokes.iter().chain([&self.hub]) {
            // After a failed start some are missing.
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

fn address(host: u8) -> IpAddr {
    let [a, b, c] = NETWORK;
    Ipv4Addr::new(a, b, c, host).into()
}

/// Not by `ip netns exec`, which mounts another `/sys`: the program's own view of it stays.
fn enter(name: &str, command: &Command) -> Command {
    let mut entered = Command::new("nsenter");
    entered.arg(format!("--net=/run/netns/{name}"));
    entered.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => entered.env(name, value),
            None => entered.env_remove(name),
        };
    }
    entered
}

#[track_caller]
fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments:?}: {errors}");
}
