//! A link of a given rate between this host and the servers of a run: a network namespace with a
//! pair of veth interfaces, whose two ends a token bucket filter limits (tc-tbf(8)).

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::ServerError;

/// The interface in the namespace.
const INNER: &str = "server";
/// Networks for benchmarks (RFC 2544, appendix C.2.2), of which each link takes four addresses.
const NETWORK: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const LINKS: u32 = 1 << 15;
/// What the filter passes at once: this part of a second, and at least a few packets.
const BURST_PARTS_PER_S: u64 = 200;
const BURST_BYTES_MIN: u64 = 16_384;
/// Longest that a packet waits in the filter before it is dropped.
const LATENCY: &str = "50ms";

/// A link of a given rate. Removed when dropped, which is to be after its servers have ended.
#[derive(Debug)]
pub struct ServerLink {
    namespace: String,
    outer: String,
    address: Ipv4Addr,
}

impl ServerLink {
    /// Makes a link that carries `bits_per_s` in each direction. Needs root and iproute2.
    ///
    /// # Errors
    /// With the command that failed and what it printed.
    pub fn new(bits_per_s: u64) -> Result<Self, ServerError> {
        let pid = std::process::id();
        let network = NETWORK + 4 * (pid % LINKS);
        let (host, address) = (Ipv4Addr::from(network + 1), Ipv4Addr::from(network + 2));
        let link =
            Self { namespace: format!("plimsoll-{pid}"), outer: format!("plimsoll{pid}"), address };
        let Self { namespace, outer, .. } = &link;
        let burst = (bits_per_s / 8 / BURST_PARTS_PER_S).max(BURST_BYTES_MIN);
        let filter = format!("root tbf rate {bits_per_s}bit burst {burst} latency {LATENCY}");
        for command in [
            format!("ip netns add {namespace}"),
            format!("ip link add {outer} type veth peer name {INNER} netns {namespace}"),
            format!("ip address add {host}/30 dev {outer}"),
            format!("ip link set {outer} up"),
            format!("ip -n {namespace} address add {address}/30 dev {INNER}"),
            format!("ip -n {namespace} link set {INNER} up"),
            format!("ip -n {namespace} link set lo up"),
            format!("tc qdisc add dev {outer} {filter}"),
            format!("tc -n {namespace} qdisc add dev {INNER} {filter}"),
        ] {
            run(&command).map_err(refused)?;
        }
        Ok(link)
    }

    /// Where its servers listen.
    pub fn address(&self) -> IpAddr {
        self.address.into()
    }

    /// Calls `start` with this thread at the servers' end of the link: what it starts stays there.
    ///
    /// # Errors
    /// If the thread cannot change its network.
    pub fn at_the_servers<T>(&self, start: impl FnOnce() -> T) -> Result<T, ServerError> {
        let network = Some(LinkNameSpaceType::Network);
        let enter = |path: &File| {
            move_into_link_name_space(path.as_fd(), network).map_err(|e| refused(e.into()))
        };
        let own = File::open("/proc/thread-self/ns/net").map_err(refused)?;
        let inner = File::open(format!("/run/netns/{}", self.namespace)).map_err(refused)?;
        enter(&inner)?;
        let started = start();
        enter(&own)?;
        Ok(started)
    }
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        // What was not made cannot be removed.
        let _ = run(&format!("ip link del {}", self.outer));
        let _ = run(&format!("ip netns del {}", self.namespace));
    }
}

fn refused(source: io::Error) -> ServerError {
    ServerError::System {
        doing: "give the server a link of its own (this needs root, and iproute2 with tc)",
        source,
    }
}

fn run(command: &str) -> io::Result<()> {
    let mut parts = command.split(' ');
    let program = parts.next().unwrap_or_default();
    let ran = Command::new(program).args(parts).stdin(Stdio::null()).output();
    let output = ran.map_err(|e| io::Error::new(e.kind(), format!("{command}: {e}")))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("{command}: {}", why.trim())))
        }
    }
}
