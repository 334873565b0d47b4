//! The entry point of the fuzz target on the stable toolchain, with inputs near the real ones.

#[path = "../../../../fuzz/src/fleet_entries.rs"]
mod fleet_entries;

use plimsoll_fleet::frame::encode;
use plimsoll_fleet::message::{FromAgent, ToAgent};
use proptest::prelude::*;

fn framed(message: &impl serde::Serialize) -> Vec<u8> {
    encode(message).expect("a short message")
}

fn from_agent() -> Vec<Vec<u8>> {
    let sent_ns = 200_000_000;
    [
        FromAgent::Hello(Box::default()),
        FromAgent::Clock { sent_ns, at_ns: u64::MAX },
        FromAgent::Clock { sent_ns: 2 * sent_ns, at_ns: 0 },
        FromAgent::Planned { routes: vec![<_>::default()] },
        FromAgent::Ready { ordinal: 1 },
        FromAgent::Refused { reason: "no".to_owned() },
        FromAgent::Second(Box::default()),
        FromAgent::Finished(Box::default()),
        FromAgent::Alive,
        FromAgent::Goodbye,
    ]
    .iter()
    .map(framed)
    .collect()
}

fn to_agent() -> Vec<Vec<u8>> {
    [
        ToAgent::Hello { version: String::new() },
        ToAgent::Clock { sent_ns: u64::MAX },
        ToAgent::Start { at_ns: u64::MAX },
        ToAgent::Stop,
        ToAgent::Alive,
        ToAgent::Goodbye,
    ]
    .iter()
    .map(framed)
    .collect()
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::sample::select(from_agent()),
        8 => prop::sample::select(to_agent()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #[test]
    fn no_bytes_break_a_controller_or_an_agent(
        head in any::<[u8; 2]>(),
        pieces in prop::collection::vec(piece(), 0..20),
    ) {
        fleet_entries::fleet(&[&head[..], &pieces.concat()].concat());
    }
}
