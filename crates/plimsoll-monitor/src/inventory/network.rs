//! Network interfaces, addresses of the host, and which interface leads where.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plimsoll_model::disclosure::{Network, Setting};

use super::ethtool;
use crate::root::Root;

/// Of an adapter. Those of a large one have one for each core.
const INTERRUPTS_MAX: usize = 1_024;

pub(super) fn networks(root: &Root) -> Vec<Network> {
    root.names("sys/class/net").into_iter().filter_map(|name| network(root, name)).collect()
}

fn network(root: &Root, name: String) -> Option<Network> {
    let directory = format!("sys/class/net/{name}");
    // The directory also holds plain files, such as `bonding_masters`.
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

/// State of the link, queues, interrupts, offloads. Hardware addresses are not read.
fn details(root: &Root, directory: &str, name: &str) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| Setting::new(name, value)));
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
    add("interrupts on cores", interrupt_cores(root, directory));
    if root.is_this_host() {
        ethtool::settings(name).into_iter().for_each(|(name, value)| add(name, Some(value)));
    }
    settings
}

/// Cores that the interrupts of an adapter may go to, in the order of its interrupts; those of a
/// virtio adapter are its parent's.
fn interrupt_cores(root: &Root, directory: &str) -> Option<String> {
    let is_virtio =
        root.link_name(format!("{directory}/device/subsystem")) == Some("virtio".into());
    let device = if is_virtio { "device/.." } else { "device" };
    let numbers = root.names(format!("{directory}/{device}/msi_irqs"));
    let mut all: Vec<u32> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    all.sort_unstable();
    let cores = |number: &u32| root.line(format!("proc/irq/{number}/smp_affinity_list"));
    let mut cores: Vec<String> = all.iter().take(INTERRUPTS_MAX).filter_map(cores).collect();
    cores.dedup();
    (!cores.is_empty()).then(|| cores.join(", "))
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

/// Scope of an address in `/proc/net/if_inet6` that is valid on one link only.
const LINK_SCOPE: &str = "20";

/// Addresses but those of loopback and of single links, version 4 first.
pub(crate) fn addresses(root: &Root) -> Vec<String> {
    let v4 = local_v4(&root.read("proc/net/fib_trie").unwrap_or_default());
    let v6 = local_v6(&root.read("proc/net/if_inet6").unwrap_or_default());
    v4.iter().map(Ipv4Addr::to_string).chain(v6.iter().map(Ipv6Addr::to_string)).collect()
}

/// The interface that packets to an address leave by; `None` where the tables do not show it.
pub fn interface_towards(root: &Root, address: IpAddr) -> Option<String> {
    let IpAddr::V4(address) = address.to_canonical() else {
        return address.is_loopback().then(|| "lo".to_owned());
    };
    let own = local_v4(&root.read("proc/net/fib_trie").unwrap_or_default());
    if address.is_loopback() || own.contains(&address) {
        return Some("lo".to_owned());
    }
    by_route(&root.read("proc/net/route")?, address)
}

/// The route with the longest mask (proc_net(5), `/proc/net/route`).
fn by_route(table: &str, address: Ipv4Addr) -> Option<String> {
    let address = u32::from(address);
    let routes = table.lines().skip(1).filter_map(|line| {
        let tokens: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| {
            let bytes = u32::from_str_radix(tokens.get(at)?, 16).ok()?.to_ne_bytes();
            Some(u32::from_be_bytes(bytes))
        };
        Some((*tokens.first()?, number(1)?, number(7)?))
    });
    let fitting = routes.filter(|(_, destination, mask)| address & mask == *destination);
    fitting.max_by_key(|(_, _, mask)| *mask).map(|(name, ..)| name.to_owned())
}

fn local_v4(table: &str) -> Vec<Ipv4Addr> {
    let mut addresses = Vec::new();
    let mut last = None;
    for line in table.lines().map(str::trim) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            last = leaf.parse::<Ipv4Addr>().ok();
        } else if line.ends_with("host LOCAL") {
            addresses.extend(last.filter(|address| !address.is_loopback()));
        }
    }
    addresses.sort();
    addresses.dedup();
    addresses
}

fn local_v6(table: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| {
        let mut tokens = line.split_whitespace();
        let digits = u128::from_str_radix(tokens.next()?, 16).ok()?;
        let scope = tokens.nth(2)?;
        let address = Ipv6Addr::from(digits);
        (scope != LINK_SCOPE && !address.is_loopback()).then_some(address)
    };
    table.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTES: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth1\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";

    #[test]
    fn the_longest_route_leads_to_an_address() {
        if cfg!(target_endian = "big") {
            return;
        }
        let of = |text: &str| by_route(ROUTES, text.parse().unwrap());
        assert_eq!(of("192.0.2.9").as_deref(), Some("eth1"));
        assert_eq!(of("198.51.100.1").as_deref(), Some("eth0"));
        assert_eq!(by_route("odd\nrubbish here\n", Ipv4Addr::LOCALHOST), None);
    }

    #[test]
    fn loopback_and_addresses_of_one_link_are_left_out() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 127.0.0.1\n        /32 host LOCAL\n\
                    |-- 192.0.2.2\n        /32 host LOCAL\n     |-- 192.0.2.255\n\
                    /32 link BROADCAST\nMain:\n |-- 192.0.2.2\n /32 host LOCAL\n";
        assert_eq!(local_v4(trie), [Ipv4Addr::new(192, 0, 2, 2)]);
        let v6 = "20010db8000000000000000000000001 02 40 00 80 eth0\n\
                  fe800000000000000000000000000001 02 40 20 80 eth0\n\
                  00000000000000000000000000000001 01 80 10 80 lo\nodd\n";
        assert_eq!(local_v6(v6), ["2001:db8::1".parse::<Ipv6Addr>().unwrap()]);
    }
}
