//! Network interfaces.

use plimsoll_model::disclosure::{Network, Setting};

use super::offloads;
use crate::root::Root;

pub(super) fn networks(root: &Root) -> Vec<Network> {
    root.names("sys/class/net").into_iter().filter_map(|name| network(root, name)).collect()
}

fn network(root: &Root, name: String) -> Option<Network> {
    let directory = format!("sys/class/net/{name}");
    // `bonding_masters` and the like are files among the interfaces.
    if !root.path(&directory).is_dir() {
        return None;
    }
    Some(Network {
        // Virtual links answer -1 or an error, links that are down as well.
        speed_mbit_per_s: root.number(format!("{directory}/speed")).filter(|&mbit| mbit > 0),
        mtu_bytes: root.number(format!("{directory}/mtu")),
        driver: driver(root, &directory, &name),
        details: details(root, &directory, &name),
        name,
    })
}

/// State of the link, queues, offloads. Hardware addresses are not read.
fn details(root: &Root, directory: &str, name: &str) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        found.extend(value.map(|value| Setting::new(name, value)));
    };
    let line = |file: &str| root.line(format!("{directory}/{file}"));
    add("link", line("operstate").filter(|state| state != "unknown"));
    add("duplex", line("duplex").filter(|duplex| duplex != "unknown"));
    add("send queue", line("tx_queue_len").map(|packets| format!("{packets} packets")));
    let queues = root.names(format!("{directory}/queues"));
    let count = |kind: &str| {
        let number = queues.iter().filter(|queue| queue.starts_with(kind)).count();
        (number > 0).then(|| number.to_string())
    };
    add("receive queues", count("rx-"));
    add("send queues", count("tx-"));
    add("interrupts put off", line("napi_defer_hard_irqs").filter(|times| times != "0"));
    add("part of", root.link_name(format!("{directory}/master")));
    if root.is_this_host() {
        add("offloads", offloads::offloads(name));
    }
    found
}

/// The driver of a device, else the kind of a virtual link.
fn driver(root: &Root, directory: &str, name: &str) -> Option<String> {
    let device = root.link_name(format!("{directory}/device/driver"));
    let kind = || {
        let uevent = root.read(format!("{directory}/uevent"))?;
        uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")).map(str::to_owned)
    };
    let loopback = || (name == "lo").then(|| "loopback".to_owned());
    device.or_else(kind).or_else(loopback)
}
