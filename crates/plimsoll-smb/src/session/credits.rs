//! Message ids and the credits that pay for them. MS-SMB2 3.2.4.1.5, 3.2.4.1.6, 3.2.5.1.4
//!
//! A request takes as many consecutive message ids as its credit charge; the server grants further
//! ones in every reply. Nothing is ever sent without.

/// Bytes that one credit pays for.
pub(super) const CREDIT_BYTES: u32 = 65_536;
/// Credits kept at most, however many a server grants: 512 MiB under way.
const HELD_MAX: u32 = 8_192;

/// The message ids that may be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credits {
    next: u64,
    held: u32,
    wanted: u32,
}

impl Credits {
    /// Ids from `next` on, of which `held` may be used; `wanted` are asked for.
    pub(super) fn new(next: u64, held: u32, wanted: u32) -> Self {
        let wanted = wanted.clamp(1, HELD_MAX);
        Self { next, held: held.min(HELD_MAX), wanted }
    }

    /// Takes `charge` consecutive ids; answers with the first, or `None` when there are fewer.
    pub(super) fn take(&mut self, charge: u32) -> Option<u64> {
        self.held = self.held.checked_sub(charge)?;
        let first = self.next;
        self.next = self.next.wrapping_add(u64::from(charge));
        Some(first)
    }

    /// The server granted some.
    pub(super) fn grant(&mut self, credits: u16) {
        self.held = self.held.saturating_add(u32::from(credits)).min(HELD_MAX);
    }

    /// Credits to ask for in a request whose charge has been taken: those it takes, and what is
    /// missing to the stock that is wanted.
    pub(super) fn request(&self, charge: u32) -> u16 {
        let missing = self.wanted.saturating_sub(self.held);
        u16::try_from(missing.max(charge)).unwrap_or(u16::MAX)
    }

    /// Ids that may be used.
    #[cfg(test)]
    pub(super) fn held(&self) -> u32 {
        self.held
    }
}

/// Credits that a request pays which carries `bytes`, or asks for as many.
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
                prop_assert_eq!(u64::from(credits.held()), (granted - taken).min(8_192));
            }
        }
    }
}
