//! What a network card does in place of the processor, asked of the kernel over generic netlink
//! (Documentation/networking/ethtool-netlink.rst, `FEATURES_GET`).

use rustix::fd::OwnedFd;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

/// Features that bear on the cost of a packet, by the kernel's names and by ours.
const FEATURES: [(&str, &str); 10] = [
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

/// The family of families, and what is asked of it.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_MSG_FEATURES_GET_REPLY: u8 = 11;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;

/// Attributes say by these bits that they hold others, and in which byte order.
const NLA_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// `on: … ; off: …` of an interface of this process's network namespace; `None` where the kernel
/// does not tell (before 5.7).
pub(super) fn offloads(interface: &str) -> Option<String> {
    let socket = net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::GENERIC),
    );
    let socket = socket.ok()?;
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
    let family = ask(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name)?;
    let family = attributes(&family).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?;
    let family = u16::from_ne_bytes(family.1.get(..2)?.try_into().ok()?);
    let device = attribute(ETHTOOL_A_HEADER_DEV_NAME, &[interface.as_bytes(), b"\0"].concat());
    let header = attribute(ETHTOOL_A_FEATURES_HEADER | NLA_NESTED, &device);
    let answer = ask(&socket, family, ETHTOOL_MSG_FEATURES_GET, &header)?;
    Some(text(&active(&answer)))
}

/// Names of the features that are on.
fn active(answer: &[u8]) -> Vec<String> {
    let inside = |bytes, wanted: u16| {
        attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, inner)| inner)
    };
    let bits = inside(answer, ETHTOOL_A_FEATURES_ACTIVE)
        .and_then(|bitset| inside(bitset, ETHTOOL_A_BITSET_BITS))
        .unwrap_or_default();
    let names = attributes(bits).filter_map(|(_, bit)| inside(bit, ETHTOOL_A_BITSET_BIT_NAME));
    names.map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned()).collect()
}

fn text(active: &[String]) -> String {
    let (on, off): (Vec<_>, Vec<_>) =
        FEATURES.iter().partition(|(kernel, _)| active.iter().any(|name| name == kernel));
    let list = |features: Vec<&(&str, &'static str)>| {
        let words: Vec<&str> = features.iter().map(|(_, ours)| *ours).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    format!("on: {}; off: {}", list(on), list(off))
}

/// Sends one request and gives the attributes of its answer.
fn ask(socket: &OwnedFd, family: u16, command: u8, body: &[u8]) -> Option<Vec<u8>> {
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
    body_of(&answer, family).map(<[u8]>::to_vec)
}

/// The attributes of a message of that family; `None` for an error, or anything else.
fn body_of(answer: &[u8], family: u16) -> Option<&[u8]> {
    let length = u32::from_ne_bytes(answer.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let command = *answer.get(NLMSG_HEADER_BYTES)?;
    let expected = family == GENL_ID_CTRL || command == ETHTOOL_MSG_FEATURES_GET_REPLY;
    (kind == family && expected).then(|| answer.get(HEADERS_BYTES..length)).flatten()
}

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_BYTES + content.len();
    let mut bytes = (length as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}

/// Kind and content of each attribute; ends at what is none.
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
        let told = text(&active(&answer(&["rx-gro", "tx-tcp-segmentation", "tx-lockless"])));
        let on = "on: TCP segmentation (TSO), generic receive offload (GRO); off: send checksums";
        assert!(told.starts_with(on), "{told}");
        assert!(text(&[]).starts_with("on: none; off: "));
    }

    #[test]
    fn an_answer_that_is_cut_short_is_read_as_far_as_it_goes() {
        let whole = answer(&["rx-gro", "rx-lro"]);
        for length in 0..whole.len() {
            assert!(active(&whole[..length]).len() <= 2, "{length}");
            let _ = body_of(&whole[..length], 20);
        }
        assert_eq!(attributes(&[0, 0, 0, 0]).count(), 0, "an attribute of no length");
    }

    #[test]
    fn loopback_tells_its_own() {
        let Some(told) = offloads("lo") else { return };
        assert!(told.starts_with("on: ") && told.contains("TSO"), "{told}");
        assert_eq!(offloads("no-such-card"), None);
    }
}
