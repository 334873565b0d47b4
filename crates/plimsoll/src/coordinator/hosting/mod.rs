//! What a protocol takes on this host, beyond its state machines: its servers are started, and
//! greeted before the first load point.
//!
//! A protocol is a file here and a line in [`SIDES`].

mod app;
mod http;
mod nfs;
mod smb;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use plimsoll_model::suite::{Profile, Suite};
use plimsoll_model::target::TargetSpec;
use plimsoll_protocols::Protocol;
use plimsoll_protocols::http::fileset::FileSetId;
use plimsoll_protocols::net::Room;

use super::servers::{ServerWish, Target};
use crate::exit::Failure;
use crate::terminal::Live;

/// The host's side of a protocol.
pub struct HostSide {
    /// As in a suite's `protocol`.
    protocol: &'static str,
    /// Starts the reference server.
    pub start_builtin: fn(&TargetSpec, &ServerWish<'_>) -> Result<Target, Failure>,
    /// Starts the foreign server of that name.
    pub start_managed: fn(&TargetSpec, &str, &ServerWish<'_>, &mut Live) -> Result<Target, Failure>,
    /// Reaches every server once, and asks what it holds.
    pub greet: fn(&Suite, &[Target], &ServerWish<'_>) -> Result<Greeting, Failure>,
    /// The highest load whose files this host has room for, where it keeps them for servers it
    /// starts.
    pub room: AskRoom,
    /// Addresses the clients connect from; empty leaves it to the system.
    pub sources: fn(&Suite, &[Target]) -> Vec<IpAddr>,
}

/// From a suite, a profile and the targets to the highest load there is room for.
type AskRoom = fn(&Suite, &Profile, &[Target]) -> Result<Option<Room>, Failure>;

/// What the servers said.
#[derive(Debug, Default)]
pub struct Greeting {
    /// The file set all of them hold, for protocols that cannot write it through the server.
    pub file_set: Option<FileSetId>,
    /// What each says it is.
    pub software: Vec<Option<String>>,
}

const SIDES: [&HostSide; 4] = [&http::SIDE, &nfs::SIDE, &smb::SIDE, &app::SIDE];

/// The side of a protocol.
pub fn side(protocol: &Protocol) -> &'static HostSide {
    SIDES
        .into_iter()
        .find(|side| side.protocol == protocol.name)
        .expect("every protocol of the program is listed in SIDES; a test compares the lists")
}

/// Of protocols whose data lies on the server, or that have none.
fn any_room(_: &Suite, _: &Profile, _: &[Target]) -> Result<Option<Room>, Failure> {
    Ok(None)
}

/// This program, to start a reference server of its own.
fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::unusable(format!("cannot find this program to start it: {e}")))
}

/// Loopback addresses that clients of many short connections spread over.
const SOURCES: u8 = 16;

/// Addresses for clients that use up the ports of one; empty when a target is on another host.
fn local_sources(targets: &[Target]) -> Vec<IpAddr> {
    let local = targets.iter().all(|target| match target.resolved.address.ip() {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(_) => false,
    });
    if !local {
        return Vec::new();
    }
    (1..=SOURCES).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_side() {
        for protocol in plimsoll_protocols::PROTOCOLS {
            assert_eq!(side(protocol).protocol, protocol.name);
        }
    }
}
