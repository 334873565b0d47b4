//! Network interfaces.

use plimsoll_model::disclosure::Network;

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
        name,
    })
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
