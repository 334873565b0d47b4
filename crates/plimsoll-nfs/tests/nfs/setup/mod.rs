//! The reference server in memory: mounting, validation, the file set's life, the measured client.

mod attaching;
pub mod memory;
mod mounting;
mod points;
mod preparing;
mod session;
mod sockets;
mod validating;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memory::{HOST, Host, PORT};
use plimsoll_model::target::TargetUrl;
use plimsoll_nfs::fileset::{Content, FileSet};
use plimsoll_nfs::mounting::{MountRequest, Mounted, mount};
use plimsoll_nfs::parameters::NfsVersion;
use plimsoll_nfs::prepare::{self, Order, PreparedSet};
use plimsoll_nfs::remote::{Listing, Remote};
use plimsoll_protocol::ResolvedTarget;
use plimsoll_protocol::net::{Caller, Dial, GoOn, LinkKind, SetupError, SetupProgress, SourcePort};

/// Every mount is another run's: a server that remembers replies must not take one for another.
static RUNS: AtomicU64 = AtomicU64::new(7);

/// More than any set of these tests.
const ROOMY: u64 = 1 << 30;

pub fn mount_url(host: &Host, url: &str, version: NfsVersion) -> Result<Mounted, SetupError> {
    let target = ResolvedTarget::new(TargetUrl::parse(url).unwrap(), SocketAddr::new(HOST, PORT));
    mount_target(host, &target, version)
}

/// Mounts at the address that the URL names.
fn mount_at(dial: &dyn Dial, url: &str, version: NfsVersion) -> Result<Mounted, SetupError> {
    let url = TargetUrl::parse(url).unwrap();
    let address = SocketAddr::new(url.host.parse().unwrap(), url.port.unwrap());
    mount_target(dial, &ResolvedTarget::new(url, address), version)
}

fn mount_target(
    dial: &dyn Dial,
    target: &ResolvedTarget,
    version: NfsVersion,
) -> Result<Mounted, SetupError> {
    let nonce = RUNS.fetch_add(1, Ordering::Relaxed);
    let caller = Caller { host: "client".to_owned(), nonce, ..Caller::default() };
    let request = MountRequest {
        target,
        version,
        transport: LinkKind::Stream,
        caller: &caller,
        source: SourcePort::Any,
    };
    Ok(mount(&request, dial)?)
}

fn mounted(host: &Host, version: NfsVersion, kind: LinkKind) -> Mounted {
    let transport = match kind {
        LinkKind::Stream => "tcp",
        LinkKind::Datagram => "udp",
    };
    mount_url(host, &format!("nfs://server/export?transport={transport}"), version).unwrap()
}

fn remote(host: &dyn Dial, mounted: &Mounted) -> Remote {
    mounted.remote(host, Arc::default()).unwrap()
}

/// A set in the making, as a load point makes it.
pub struct Making<'a> {
    host: &'a dyn Dial,
    mounted: &'a Mounted,
    content: &'a Content,
    reports: Vec<SetupProgress>,
}

impl<'a> Making<'a> {
    pub fn new(host: &'a dyn Dial, mounted: &'a Mounted, content: &'a Content) -> Self {
        Self { host, mounted, content, reports: Vec::new() }
    }

    pub fn prepare(
        &mut self,
        files: u32,
        prepared: Option<&PreparedSet>,
    ) -> Result<PreparedSet, SetupError> {
        self.prepare_until(files, prepared, |_| GoOn::Yes)
    }

    fn prepare_until(
        &mut self,
        files: u32,
        prepared: Option<&PreparedSet>,
        go_on: impl Fn(&SetupProgress) -> GoOn,
    ) -> Result<PreparedSet, SetupError> {
        let Self { host, mounted, content, .. } = *self;
        let order = Order {
            set: FileSet::new(files),
            content,
            growth: plimsoll_model::units::Bytes(0),
            channels: 3,
        };
        let opened = prepare::open(&mut remote(host, mounted), mounted, &order)?;
        self.reports.clear();
        prepare::prepare(mounted, host, &order, opened, prepared, &mut |progress| {
            self.reports.push(progress);
            go_on(&progress)
        })
    }

    fn bytes_written(&self) -> u64 {
        self.reports.last().map_or(0, |progress| progress.bytes.0)
    }
}

const EVERYWHERE: [(NfsVersion, LinkKind); 5] = [
    (NfsVersion::V2, LinkKind::Stream),
    (NfsVersion::V2, LinkKind::Datagram),
    (NfsVersion::V3, LinkKind::Stream),
    (NfsVersion::V3, LinkKind::Datagram),
    (NfsVersion::V4_1, LinkKind::Stream),
];
