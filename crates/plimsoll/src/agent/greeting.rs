//! Who an agent is.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use plimsoll_fleet::message::Greeting;
use plimsoll_model::bundle::sha256_of;
use plimsoll_protocol::net::Dial as _;
use plimsoll_servers::cores;
use rustix::process::{Resource, getrlimit};

use crate::dial::SystemDial;
use crate::signals::Signals;

/// Of this process, on its host.
pub(crate) fn greeting(signals: &Signals) -> Greeting {
    let system = rustix::system::uname();
    let (release, machine) = (system.release().to_string_lossy(), system.machine());
    Greeting {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program_sha256: own_sha256().unwrap_or_default(),
        host: system.nodename().to_string_lossy().into_owned(),
        boot_id: boot_id(),
        network: network(),
        system: format!("{release} {}", machine.to_string_lossy()),
        cores: cores::available().unwrap_or_default(),
        open_files_max: getrlimit(Resource::Nofile).maximum,
        reserves_ports: SystemDial::new(signals.clone()).caller().may_reserve_ports,
        inventory: plimsoll_monitor::inventory(&[]),
    }
}

/// Identifies the boot of this host's kernel; empty where the kernel does not say.
pub(crate) fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Identifies this process's network namespace; `None` where the kernel does not say.
fn network() -> Option<u64> {
    fs::metadata("/proc/self/ns/net").ok().map(|namespace| namespace.ino())
}

/// How far an agent is from this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Distance {
    /// Same host, same network: loopback is shared.
    Here,
    /// Same host, another network namespace: only files, and sockets among them, are shared.
    OwnNetwork,
    /// Another host.
    Elsewhere,
}

/// How far the agent of this greeting is.
pub(crate) fn distance(greeting: &Greeting) -> Distance {
    match (greeting.boot_id == boot_id(), greeting.network == network()) {
        (true, true) => Distance::Here,
        (true, false) => Distance::OwnNetwork,
        (false, _) => Distance::Elsewhere,
    }
}

/// SHA-256 of this program's file; `None` where it cannot be read.
pub(crate) fn own_sha256() -> Option<String> {
    sha256_of(&mut fs::File::open("/proc/self/exe").ok()?).ok()
}
