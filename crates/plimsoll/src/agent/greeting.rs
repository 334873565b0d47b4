//! Who an agent is.

use plimsoll_fleet::message::Greeting;
use plimsoll_protocol::net::Dial as _;
use plimsoll_servers::cores;
use rustix::process::{Resource, getrlimit};

use crate::dial::SystemDial;
use crate::host_inventory::{boot_id, network, own_sha256};
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
