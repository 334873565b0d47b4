//! Bytes of any kind, and replies that are not quite right: nothing panics, and every op ends.

use std::cell::Cell;
use std::time::Duration;

use plimsoll_engine::interface::{Link, Session as _};
use plimsoll_nfs::op::NfsCall;
use plimsoll_nfs::parameters::Opens;
use plimsoll_nfs::server::Nfs4Config;
use plimsoll_nfs::session::SessionRequest;
use plimsoll_nfs::wire::v4::Status4;
use proptest::prelude::*;
use proptest::sample::Index;

use super::client::Client;
use super::net::Change;
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

/// Statuses that a session acts on, and lengths of any kind.
fn value() -> impl Strategy<Value = u32> {
    let statuses = [
        Status4::OK,
        Status4::INVAL,
        Status4::DELAY,
        Status4::GRACE,
        Status4::BAD_STATEID,
        Status4::BADSESSION,
        Status4::BADSLOT,
        Status4::CONN_NOT_BOUND_TO_SESSION,
        Status4::SEQ_MISORDERED,
        Status4::RETRY_UNCACHED_REP,
        Status4::STALE_CLIENTID,
    ];
    prop_oneof![
        4 => prop::sample::select(statuses.to_vec()).prop_map(|status| status.0),
        1 => 0..9_u32,
        1 => any::<u32>(),
    ]
}

#[test]
fn replies_with_changed_words_end_every_op_once() {
    let bed = Bed::new(Nfs4Config { delegations: true, ..Nfs4Config::default() });
    let opens = prop_oneof![Just(Opens::PerDraw), Just(Opens::Held), Just(Opens::Anonymous)];
    // In one of four messages a word is another, mostly one that is read early.
    let at = prop_oneof![3 => 1..20_usize, 1 => any::<usize>()];
    let changes = prop::collection::vec(prop::option::weighted(0.25, (at, value())), 40);
    let which = prop::collection::vec(any::<Index>(), 1..12);
    let number = Cell::new(0);
    let test = |(opens, which, changes): (Opens, Vec<Index>, Vec<Option<Change>>)| {
        bed.core.v4().restart(Duration::ZERO);
        number.set(number.get() + 1);
        let request = SessionRequest { opens, delegations: true, slots: 3, ..REQUEST };
        let mut client = Client::new(&bed, number.get(), request);
        client.net.is_strict = false;
        client.net.changes = changes;
        for which in which {
            if client.session.has_room() && client.session.lost().is_none() {
                client.issue(calls()[which.index(calls().len())]);
                client.connect();
                for link in client.net.open() {
                    client.net.execute(link, 0);
                    client.deliver(link, 0, usize::MAX);
                }
            }
        }
        if client.run_or_lose() {
            client.session.log_off(client.now, &mut client.net);
            client.settle();
        }
        Ok(())
    };
    runner(3_000).run(&(opens, which, changes), test).unwrap();
}
