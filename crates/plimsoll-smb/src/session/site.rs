//! What the clients of a share have in common.

use std::cell::RefCell;

use plimsoll_engine::seam::ClientSeat;

use super::super::logon::{Credentials, Logon, LogonRequest, Offer};
use super::super::workspace::ContentTable;
use super::Caching;
use plimsoll_engine::rng;

/// One share as its clients need it.
#[derive(Debug)]
pub(crate) struct SmbSite {
    /// Who logs on.
    pub credentials: Credentials,
    /// What is offered to the server.
    pub offer: Offer,
    /// The share, as `\\host\share`.
    pub unc: String,
    /// Where in the share all paths begin: with backslashes, none at the ends; mostly empty.
    pub prefix: String,
    /// What clients keep.
    pub caching: Caching,
    /// What is in the files.
    pub content: ContentTable,
    /// Ops of one client in flight at most.
    pub outstanding_max: u32,
    /// Statuses other than the expected ones after which a client leaves the mix; so many are
    /// still allowed.
    pub unexpected_max: u32,
    /// Memory that the clients of a worker share.
    pub buffers: RefCell<Buffers>,
}

/// Memory for one message out and one in, used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(super) out: Vec<u8>,
    pub(super) plain: Vec<u8>,
    pub(super) path: String,
}

impl SmbSite {
    /// Logon number `nth` of a client.
    pub(super) fn logon(&self, seat: ClientSeat, nth: u64) -> Logon {
        let nonce = rng::key(&[seat.nonce, u64::from(seat.client), nth]);
        // Every client is a machine of its own: a server may serve all connections of one machine
        // in one process, and would measure something else then.
        let mut offer = self.offer.clone();
        offer.client_guid[..8].copy_from_slice(&nonce.to_le_bytes());
        offer.client_guid[8..].copy_from_slice(&rng::key(&[nonce]).to_le_bytes());
        let (credentials, unc) = (&self.credentials, &self.unc);
        Logon::new(&LogonRequest { credentials, offer: &offer, unc, nonce })
    }
}
