//! Bytes of any kind, and replies that are not quite right: nothing panics, and every op ends.

use plimsoll_engine::interface::{Link, Session as _};
use plimsoll_nfs::op::NfsCall;
use plimsoll_nfs::parameters::Opens;
use plimsoll_nfs::server::Nfs4Config;
use plimsoll_nfs::session::SessionRequest;
use proptest::prelude::*;

use super::client::Client;
use super::random::calls;
use super::{Bed, REQUEST, runner};

#[test]
fn bytes_of_any_kind_never_panic() {
    let bed = Bed::new(Nfs4Config::default());
    let parts = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6);
    let test = |parts: Vec<Vec<u8>>| {
        let mut client = Client::ready(&bed, 1, REQUEST);
        client.net.is_strict = false;
        client.issue(NfsCall::FsStat);
        for part in parts {
            if client.net.open() == [1] {
                client.session.on_bytes(Link(1), &part, client.now, &mut client.net);
            }
        }
        Ok(())
    };
    runner(200).run(&parts, test).unwrap();
}

#[test]
fn replies_with_changed_bytes_end_every_op_once() {
    let bed = Bed::new(Nfs4Config { delegations: true, ..Nfs4Config::default() });
    let opens = prop_oneof![Just(Opens::PerDraw), Just(Opens::Held), Just(Opens::Anonymous)];
    // One in four messages has a byte changed, mostly in what is read first.
    let change = prop::option::weighted(0.25, (4..120_usize, any::<u8>()));
    let changes = prop::collection::vec(change, 40);
    let which = prop::collection::vec(any::<prop::sample::Index>(), 1..12);
    let test =
        |(opens, which, changes): (_, Vec<prop::sample::Index>, Vec<Option<(usize, u8)>>)| {
            let request = SessionRequest { opens, delegations: true, slots: 3, ..REQUEST };
            let mut client = Client::new(&bed, 1, request);
            client.net.is_strict = false;
            client.net.changes = changes;
            for which in which {
                if client.session.has_room() {
                    client.issue(calls()[which.index(calls().len())]);
                    client.net.execute(1, 0);
                }
            }
            if client.run_or_lose() {
                client.session.log_off(client.now, &mut client.net);
                client.settle();
            }
            Ok(())
        };
    runner(2_000).run(&(opens, which, changes), test).unwrap();
}
