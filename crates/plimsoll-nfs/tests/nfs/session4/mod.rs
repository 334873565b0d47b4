//! The client's session of NFSv4.1 against the reference server in memory, on a network that loses
//! connections and delivers replies in any order, and on simulated time.

mod client;
mod delegations;
mod faults;
mod fuzz;
mod net;
mod random;
mod scenarios;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::SessionCounters;
use plimsoll_model::units::Nanos;
use plimsoll_nfs::fileset::{BLOCK_BYTES, Content};
use plimsoll_nfs::op::{Accessed, NfsCall, Span, Stability, Verify};
use plimsoll_nfs::parameters::{NfsVersion, Opens};
use plimsoll_nfs::server::store::Store;
use plimsoll_nfs::server::{Nfs4Config, NfsCore};
use plimsoll_nfs::session::{NfsSite, SessionRequest};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::setup::memory::Host;
use crate::setup::{Making, mount_url};

/// Files of the set.
const FILES: u32 = 1_000;

/// A server with a file set.
pub struct Bed {
    core: Arc<NfsCore>,
    site: NfsSite,
    /// What clients counted, those of all cases of a property.
    totals: RefCell<SessionCounters>,
}

impl Bed {
    fn new(config: Nfs4Config) -> Self {
        let core = Arc::new(NfsCore::new(Store::new(1 << 28)).with_v4(config));
        let host = Host::serving(Arc::clone(&core));
        let mounted = mount_url(&host, "nfs://server/export", NfsVersion::V4_1).unwrap();
        let content = Content::new(1);
        let prepared = Making::new(&host, &mounted, &content).prepare(FILES, None).unwrap();
        let site = NfsSite { handles: prepared.handles, content, ..mounted.site.clone() };
        Self { core, site, totals: RefCell::default() }
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

/// Always makes the same cases.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// A draw that reads this many blocks of a file of 64 KiB.
fn read(blocks: u32) -> NfsCall {
    NfsCall::Read(span(blocks), Verify::Content)
}

/// A draw that writes them.
fn write(blocks: u32) -> NfsCall {
    NfsCall::Write(span(blocks), Stability::Unstable)
}

fn span(blocks: u32) -> Span {
    Span { file: large_file(), offset: 0, bytes: BLOCK_BYTES, blocks_left: blocks - 1 }
}

fn large_file() -> Accessed {
    let large = (0..FILES / 10).map(Accessed).find(|file| file.bytes() == 65_536);
    large.expect("every hundred files have one of 64 KiB")
}
