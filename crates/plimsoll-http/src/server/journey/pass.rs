//! Values that the server gives to a user and knows again: decimal digits that hold the session, when
//! they expire, and a keyed checksum. Nothing is kept of them.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use plimsoll_servers::clock::monotonic_ns;

/// Digits of a 64-bit number.
const DIGITS: usize = 20;

/// Makes and checks values.
#[derive(Debug)]
pub(super) struct Passes {
    key: RandomState,
    /// How long a value holds; `None`: as long as the server runs.
    lifetime: Option<Duration>,
}

/// Why a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassFault {
    /// The server did not make it, or made it for something else.
    Unknown,
    /// Its time is over.
    Expired,
}

impl Passes {
    pub(super) fn new(lifetime: Option<Duration>) -> Self {
        Self { key: RandomState::new(), lifetime }
    }

    /// The value of a name for a session.
    pub(super) fn issue(&self, session: u64, name: &str) -> String {
        let expires_ns = self
            .lifetime
            .map_or(u64::MAX, |lifetime| monotonic_ns().saturating_add(lifetime.as_nanos() as u64));
        let sum = self.key.hash_one((session, expires_ns, name));
        format!("{session:0DIGITS$}{expires_ns:0DIGITS$}{sum:0DIGITS$}")
    }

    /// The session that has this value of a name.
    pub(super) fn session_of(&self, value: &[u8], name: &str) -> Result<u64, PassFault> {
        let digits = std::str::from_utf8(value).ok().filter(|text| text.len() == 3 * DIGITS);
        let parts = digits.and_then(|text| {
            let part = |at: usize| text.get(at * DIGITS..(at + 1) * DIGITS)?.parse::<u64>().ok();
            Some((part(0)?, part(1)?, part(2)?))
        });
        let (session, expires_ns, sum) = parts.ok_or(PassFault::Unknown)?;
        if self.key.hash_one((session, expires_ns, name)) != sum {
            return Err(PassFault::Unknown);
        }
        match monotonic_ns() > expires_ns {
            true => Err(PassFault::Expired),
            false => Ok(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_again_for_its_session_and_name_until_it_expires() {
        let passes = Passes::new(None);
        let value = passes.issue(7, "token");
        assert_eq!(passes.session_of(value.as_bytes(), "token"), Ok(7));
        assert_eq!(passes.session_of(value.as_bytes(), "csrf"), Err(PassFault::Unknown));
        let forged = value.replacen("07", "08", 1);
        for bad in [forged.as_str(), "", "77", &value[1..], "é".repeat(30).as_str()] {
            assert_eq!(passes.session_of(bad.as_bytes(), "token"), Err(PassFault::Unknown));
        }
        let short = Passes::new(Some(Duration::ZERO));
        let value = short.issue(7, "token");
        assert_eq!(short.session_of(value.as_bytes(), "token"), Err(PassFault::Expired));
    }
}
