//! Settings of a network card, requested from the kernel over generic netlink
//! (Documentation/networking/ethtool-netlink.rst): what the card does in place of the processor
//! (`FEATURES_GET`), its rings (`RINGS_GET`), and how long it delays interrupts (`COALESCE_GET`).

use plimsoll_model::units::counted;
use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// Features that bear on the cost of a packet, by the kernel's names and by ours.
const FEATURE_NAMES: [(&str, &str); 10] = [
    ("tx-checksum-ip-generic", "send checksums"),
    ("rx-checksum", "receive checksums"),
    ("tx-scatter-gather", "scatter-gather"),
    ("tx-tcp-segmentation", "TCP segmentation (TSO)"),
    ("tx-generic-segmentation", "generic segmentation (GSO)"),
    ("tx-udp-segmentation", "UDP segmentation"),
    ("rx-gro", "generic receive offload (GRO)"),
    ("rx-gro-hw", "GRO in the card"),
    ("rx-lro", "large receive offload (LRO)"),
    ("rx-hashing", "receive hashing"),
];

const NLMSG_HEADER_BYTES: usize = 16;
const HEADERS_BYTES: usize = NLMSG_HEADER_BYTES + 4;
const ATTRIBUTE_BYTES: usize = 4;
const NLM_F_REQUEST: u16 = 1;
const ANSWER_BYTES: usize = 32 * 1024;

/// The family of families, and the request to it.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_NEWFAMILY: u8 = 1;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A request and the command of its reply.
type Query = [u8; 2];
const FEATURES: Query = [11, 11];
const RINGS: Query = [15, 16];
const COALESCE: Query = [19, 20];

/// Of every request.
const ETHTOOL_A_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;
const ETHTOOL_A_RINGS_RX_MAX: u16 = 2;
const ETHTOOL_A_RINGS_TX_MAX: u16 = 5;
const ETHTOOL_A_RINGS_RX: u16 = 6;
const ETHTOOL_A_RINGS_TX: u16 = 9;
const ETHTOOL_A_COALESCE_RX_USECS: u16 = 2;
const ETHTOOL_A_COALESCE_RX_MAX_FRAMES: u16 = 3;
const ETHTOOL_A_COALESCE_TX_USECS: u16 = 6;
const ETHTOOL_A_COALESCE_TX_MAX_FRAMES: u16 = 7;
const ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX: u16 = 11;
const ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX: u16 = 12;

/// These bits of an attribute's type mark nested attributes and the byte order.
const NLA_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// Settings of an interface of this process's network namespace, each with its name, as far as the
/// kernel (since 5.7) and the driver report them.
pub(super) fn settings(interface: &str) -> Vec<(&'static str, String)> {
    let Some(ethtool) = Ethtool::open() else { return Vec::new() };
    let ask = |query| ethtool.ask(interface, query);
    let offloads = ask(FEATURES).map(|answer| ("offloads", text(&active(&answer))));
    let rings = ask(RINGS).map(|answer| rings(&answer)).unwrap_or_default();
    let delays = ask(COALESCE).map(|answer| delays(&answer)).unwrap_or_default();
    offloads.into_iter().chain(rings).chain(delays).collect()
}

/// Sizes of the rings in use, and the largest that are possible.
fn rings(answer: &[u8]) -> Vec<(&'static str, String)> {
    let ring = |name, size, most| {
        let (size, most) = (number(answer, size)?, number(answer, most)?);
        Some((name, format!("{size} of {most} packets")))
    };
    let receive = ring("receive ring", ETHTOOL_A_RINGS_RX, ETHTOOL_A_RINGS_RX_MAX);
    let send = ring("send ring", ETHTOOL_A_RINGS_TX, ETHTOOL_A_RINGS_TX_MAX);
    [receive, send].into_iter().flatten().collect()
}

/// When the card interrupts a processor.
fn delays(answer: &[u8]) -> Vec<(&'static str, String)> {
    let delay = |name, [us, packets, adaptive]: [u16; 3]| {
        let us = number(answer, us).map(|us| format!("{us} µs"));
        let packets = number(answer, packets).map(|it| counted(it as usize, "packet"));
        let parts: Vec<String> = us.into_iter().chain(packets).collect();
        let adapts = number(answer, adaptive).is_some_and(|it| it > 0);
        let adapts = if adapts { ", adaptive" } else { "" };
        (!parts.is_empty()).then(|| (name, format!("after {}{adapts}", parts.join(" or "))))
    };
    let receive = [
        ETHTOOL_A_COALESCE_RX_USECS,
        ETHTOOL_A_COALESCE_RX_MAX_FRAMES,
        ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX,
    ];
    let send = [
        ETHTOOL_A_COALESCE_TX_USECS,
        ETHTOOL_A_COALESCE_TX_MAX_FRAMES,
        ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX,
    ];
    let both = [delay("receive interrupts", receive), delay("send interrupts", send)];
    both.into_iter().flatten().collect()
}

/// A number of one or four bytes.
fn number(answer: &[u8], requested: u16) -> Option<u32> {
    let (_, bytes) = attributes(answer).find(|(kind, _)| *kind == requested)?;
    match bytes {
        [byte] => Some(u32::from(*byte)),
        _ => Some(u32::from_ne_bytes(bytes.try_into().ok()?)),
    }
}

/// A socket to the kernel's ethtool.
struct Ethtool {
    socket: OwnedFd,
    family: u16,
}

impl Ethtool {
    fn open() -> Option<Self> {
        let socket = net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::GENERIC),
        );
        let socket = socket.ok()?;
        let name = attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
        let family = ask(&socket, (GENL_ID_CTRL, [CTRL_CMD_GETFAMILY, CTRL_CMD_NEWFAMILY]), &name)?;
        let family = attributes(&family).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?;
        let family = u16::from_ne_bytes(family.1.get(..2)?.try_into().ok()?);
        Some(Self { socket, family })
    }

    fn ask(&self, interface: &str, query: Query) -> Option<Vec<u8>> {
        let device = attribute(ETHTOOL_A_HEADER_DEV_NAME, &[interface.as_bytes(), b"\0"].concat());
        let header = attribute(ETHTOOL_A_HEADER | NLA_NESTED, &device);
        ask(&self.socket, (self.family, query), &header)
    }
}

/// Names of the features that are on.
fn active(answer: &[u8]) -> Vec<String> {
    let inside = |bytes, requested: u16| {
        attributes(bytes).find(|(kind, _)| *kind == requested).map(|(_, inner)| inner)
    };
    let bits = inside(answer, ETHTOOL_A_FEATURES_ACTIVE)
        .and_then(|bitset| inside(bitset, ETHTOOL_A_BITSET_BITS))
        .unwrap_or_default();
    let names = attributes(bits).filter_map(|(_, bit)| inside(bit, ETHTOOL_A_BITSET_BIT_NAME));
    names.map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()).collect()
}

fn text(active: &[String]) -> String {
    let (on, off): (Vec<_>, Vec<_>) =
        FEATURE_NAMES.iter().partition(|(kernel, _)| active.iter().any(|name| name == kernel));
    let list = |features: Vec<&(&str, &'static str)>| {
        let names: Vec<&str> = features.iter().map(|(_, ours)| *ours).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!("on: {}; off: {}", list(on), list(off))
}

/// Sends one request and gives the attributes of its answer.
fn ask(socket: &OwnedFd, (family, [command, reply]): (u16, Query), body: &[u8]) -> Option<Vec<u8>> {
    let length = HEADERS_BYTES + body.len();
    let mut request = Vec::with_capacity(length);
    request.extend((length as u32).to_ne_bytes());
    request.extend(family.to_ne_bytes());
    request.extend(NLM_F_REQUEST.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([command, 1, 0, 0]);
    request.extend(body);
    net::send(socket, &request, SendFlags::empty()).ok()?;
    let mut answer = vec![0; ANSWER_BYTES];
    // The kernel writes the answer while it takes the request.
    let (read, _) = net::recv(socket, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
    answer.truncate(read.min(ANSWER_BYTES));
    body_of(&answer, (family, reply)).map(<[u8]>::to_vec)
}

/// The attributes of that command of a family; `None` for an error, or anything else.
fn body_of(answer: &[u8], expected: (u16, u8)) -> Option<&[u8]> {
    let length = u32::from_ne_bytes(answer.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let command = *answer.get(NLMSG_HEADER_BYTES)?;
    ((kind, command) == expected).then(|| answer.get(HEADERS_BYTES..length)).flatten()
}

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_BYTES + content.len();
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// Kind and content of each attribute; ends at anything that is none.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?) & NLA_TYPE_MASK;
        let content = bytes.get(ATTRIBUTE_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(names: &[&str]) -> Vec<u8> {
        let bit = |name: &&str| {
            let name = [name.as_bytes(), b"\0"].concat();
            attribute(1 | NLA_NESTED, &attribute(ETHTOOL_A_BITSET_BIT_NAME, &name))
        };
        let bits: Vec<u8> = names.iter().flat_map(bit).collect();
        let bits = attribute(ETHTOOL_A_BITSET_BITS | NLA_NESTED, &bits);
        let other = attribute(2, &[1, 0, 0, 0, 7]);
        [other, attribute(ETHTOOL_A_FEATURES_ACTIVE | NLA_NESTED, &bits)].concat()
    }

    #[test]
    fn features_that_are_on_and_off_are_told_by_words() {
        let summary = text(&active(&answer(&["rx-gro", "tx-tcp-segmentation", "tx-lockless"])));
        let on = "on: TCP segmentation (TSO), generic receive offload (GRO); off: send checksums";
        assert!(summary.starts_with(on), "{summary}");
        assert!(text(&[]).starts_with("on: none; off: "));
    }

    #[test]
    fn an_answer_that_is_cut_short_is_read_as_far_as_it_goes() {
        let whole = answer(&["rx-gro", "rx-lro"]);
        for length in 0..whole.len() {
            assert!(active(&whole[..length]).len() <= 2, "{length}");
            let _ = body_of(&whole[..length], (20, FEATURES[1]));
        }
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0, "an attribute of no length");
    }

    #[test]
    fn loopback_has_offloads_and_no_rings() {
        let settings_of_lo = settings("lo");
        let [(name, summary)] = &settings_of_lo[..] else { return };
        assert_eq!(*name, "offloads");
        assert!(summary.starts_with("on: ") && summary.contains("TSO"), "{summary}");
        assert_eq!(settings("no-such-card"), []);
    }

    #[test]
    fn rings_and_delays_are_told_as_far_as_the_driver_has_them() {
        let numbers = |all: &[(u16, u32)]| {
            all.iter().flat_map(|(kind, n)| attribute(*kind, &n.to_ne_bytes())).collect::<Vec<u8>>()
        };
        let own = |name, text: &str| (name, text.to_owned());
        let reply = numbers(&[(2, 4_096), (5, 1_024), (6, 512), (9, 1_024)]);
        let expected =
            [own("receive ring", "512 of 4096 packets"), own("send ring", "1024 of 1024 packets")];
        assert_eq!(rings(&reply), expected);
        assert_eq!(rings(&numbers(&[(2, 4_096)])), []);
        let reply = [numbers(&[(2, 3), (3, 64), (7, 1)]), attribute(11, &[1])].concat();
        let expected = [
            own("receive interrupts", "after 3 µs or 64 packets, adaptive"),
            own("send interrupts", "after 1 packet"),
        ];
        assert_eq!(delays(&reply), expected);
        for length in 0..reply.len() {
            assert!(delays(&reply[..length]).len() <= 2, "{length}");
        }
    }
}
