//! The client's session of NFSv4.1 against the reference server in memory, on a network that loses
//! connections and delivers replies in any order, and on simulated time.

mod client;
mod net;
mod random;

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::units::Nanos;
use plimsoll_nfs::fileset::{BLOCK_BYTES, Content};
use plimsoll_nfs::op::{Accessed, NfsCall, Span, Verify};
use plimsoll_nfs::parameters::{NfsVersion, Opens};
use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{Nfs4Config, NfsCore};
use plimsoll_nfs::session::{NfsSite, SessionRequest};

use crate::setup::memory::Host;
use crate::setup::{Making, mount_url};

/// Files of the set.
const FILES: u32 = 1_000;

/// A server with a file set.
pub struct Bed {
    core: Arc<NfsCore>,
    site: NfsSite,
}

impl Bed {
    fn new(config: Nfs4Config) -> Self {
        let core = Arc::new(NfsCore::new(Store::new(1 << 28)).with_v4(config));
        let host = Host::serving(Arc::clone(&core));
        let mounted = mount_url(&host, "nfs://server/export", NfsVersion::V4_1).unwrap();
        let content = Content::new(1);
        let prepared = Making::new(&host, &mounted, &content).prepare(FILES, None).unwrap();
        let site = NfsSite { handles: prepared.handles, content, ..mounted.site.clone() };
        Self { core, site }
    }

    fn site(&self, session: SessionRequest) -> Rc<NfsSite> {
        Rc::new(NfsSite { session, ..self.site.clone() })
    }
}

/// As the suite has it.
const REQUEST: SessionRequest = SessionRequest {
    slots: 64,
    connections: 1,
    opens: Opens::PerDraw,
    delegations: false,
    lease: Nanos::from_secs(90),
};

/// A draw that reads this many blocks of a file of 64 KiB.
fn read(blocks: u32) -> NfsCall {
    let bytes = BLOCK_BYTES;
    let span = Span { file: large_file(), offset: 0, bytes, blocks_left: blocks - 1 };
    NfsCall::Read(span, Verify::Content)
}

fn large_file() -> Accessed {
    let large = (0..FILES / 10).map(Accessed).find(|file| file.bytes() == 65_536);
    large.expect("every hundred files have one of 64 KiB")
}
