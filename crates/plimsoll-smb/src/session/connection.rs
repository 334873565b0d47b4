//! The connection of a client: not needed yet, on its way, logged on, gone; and the message ids
//! with the credits that pay for them. MS-SMB2 3.2.4.1.5, 3.2.4.1.6, 3.2.5.1.4
//!
//! Each connection has a client GUID of its own, also those of set-up and of each logon. Samba
//! serves all connections with one GUID in one process, so clients with a common GUID would measure
//! a single smbd.
//!
//! A request takes as many consecutive message ids as its credit charge; the server grants further
//! ones in every reply. Nothing is ever sent without.

use plimsoll_engine::interface::Link;

use super::super::logon::{Established, Logon};

/// The connection of a client.
pub(super) enum Connection {
    /// Not needed yet.
    Idle,
    Connecting(Link),
    LoggingOn(Link, Box<Logon>),
    Up(Box<Connected>),
    /// The client is lost.
    Gone,
}

/// A client that has logged on.
pub(super) struct Connected {
    pub(super) link: Link,
    pub(super) credits: Credits,
    pub(super) established: Established,
}

impl Connection {
    pub(super) fn link(&self) -> Option<Link> {
        match self {
            Self::Idle | Self::Gone => None,
            Self::Connecting(link) | Self::LoggingOn(link, _) => Some(*link),
            Self::Up(up) => Some(up.link),
        }
    }

    /// What an unsent op waits for.
    pub(super) fn waited_for(&self) -> &'static str {
        match self {
            Self::Idle | Self::Gone | Self::Connecting(_) => "connection",
            Self::LoggingOn(..) => "end of the logon",
            Self::Up(_) => "credits from the server to send it with",
        }
    }
}

/// Bytes that one credit pays for.
pub(super) const CREDIT_BYTES: u32 = 65_536;
/// Credits kept at most, however many a server grants: 512 MiB under way.
const CREDITS_MAX: u32 = 8_192;

/// The message ids that may be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credits {
    next: u64,
    available: u32,
    requested: u32,
}

impl Credits {
    /// Ids from `next` on, of which `available` may be used; `requested` is the stock to ask for.
    pub(super) fn new(next: u64, available: u32, requested: u32) -> Self {
        let requested = requested.clamp(1, CREDITS_MAX);
        Self { next, available: available.min(CREDITS_MAX), requested }
    }

    /// Takes `charge` consecutive ids; answers with the first, or `None` when there are fewer.
    pub(super) fn take(&mut self, charge: u32) -> Option<u64> {
        self.available = self.available.checked_sub(charge)?;
        let first = self.next;
        self.next = self.next.wrapping_add(u64::from(charge));
        Some(first)
    }

    /// The server granted some.
    pub(super) fn grant(&mut self, credits: u16) {
        self.available = self.available.saturating_add(u32::from(credits)).min(CREDITS_MAX);
    }

    /// Credits to request in a message whose charge has been taken: the charge, and what the stock
    /// lacks.
    pub(super) fn request(&self, charge: u32) -> u16 {
        let missing = self.requested.saturating_sub(self.available);
        u16::try_from(missing.max(charge)).unwrap_or(u16::MAX)
    }

    /// Ids that may be used.
    #[cfg(test)]
    pub(super) fn available(&self) -> u32 {
        self.available
    }
}

/// Credits that a message costs which carries or requests `bytes`.
pub(super) fn charge(bytes: u32) -> u32 {
    bytes.saturating_sub(1) / CREDIT_BYTES + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_began_64_kib_costs_a_credit_and_nothing_costs_one() {
        let charges = [0, 1, 65_536, 65_537, 131_072, 1_048_576].map(charge);
        assert_eq!(charges, [1, 1, 1, 2, 2, 16]);
    }

    #[test]
    fn ids_are_taken_in_order_and_none_beyond_what_was_granted() {
        let mut credits = Credits::new(4, 3, 64);
        assert_eq!(credits.take(2), Some(4));
        assert_eq!(credits.take(2), None);
        assert_eq!(credits.take(1), Some(6));
        assert_eq!(credits.take(1), None);
        assert_eq!(credits.request(1), 64);
        credits.grant(2);
        assert_eq!(credits.take(2), Some(7));
    }

    proptest! {
        #[test]
        fn the_window_never_goes_beyond_the_sum_of_all_grants(
            steps in prop::collection::vec((any::<bool>(), 0u16..20), 0..200),
        ) {
            let mut credits = Credits::new(0, 1, 64);
            let (mut granted, mut taken) = (1u64, 0u64);
            for (grant, n) in steps {
                if grant {
                    credits.grant(n);
                    granted += u64::from(n);
                } else if let Some(first) = credits.take(u32::from(n)) {
                    prop_assert_eq!(first, taken);
                    taken += u64::from(n);
                }
                prop_assert!(taken <= granted);
                prop_assert_eq!(u64::from(credits.available()), (granted - taken).min(8_192));
            }
        }
    }
}
