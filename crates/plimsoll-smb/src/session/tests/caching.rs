//! What a client may answer itself, and what the server takes back.

use plimsoll_engine::interface::Session;

use super::bench::*;
use crate::logon::Dialect;
use crate::op::*;
use crate::session::Caching;
use crate::wire::create::{OplockLevel, lease_state};
use crate::wire::{Break, Command, FileId, LeaseBreakNotification, OplockBreak};

fn bench(caching: Caching, dialect: Dialect) -> Bench {
    let mut bench = Bench::new(&Setting { caching, dialect, ..Setting::default() });
    bench.succeed(create("f", 1, Disposition::Create));
    bench.succeed(write(1, 0, 10_000));
    bench.server.commands.clear();
    bench
}

fn reads_on_the_wire(bench: &mut Bench, offset: u64, length: u32) -> usize {
    bench.server.commands.clear();
    assert_eq!(bench.succeed(read(1, offset, length)).bytes_read, u64::from(length));
    bench.server.commands.iter().filter(|command| **command == Command::Read).count()
}

#[test]
fn what_was_read_or_written_under_an_oplock_or_lease_is_not_asked_for_again() {
    for (caching, dialect, requests) in [
        (Caching::None, Dialect::V3_1_1, 1),
        (Caching::Oplock, Dialect::V2_0_2, 0),
        (Caching::Lease, Dialect::V2_0_2, 0),
        (Caching::Lease, Dialect::V2_1, 0),
        (Caching::Lease, Dialect::V3_1_1, 0),
    ] {
        let mut bench = bench(caching, dialect);
        assert_eq!(reads_on_the_wire(&mut bench, 2_000, 8_000), requests, "{caching:?}");
        // A file that is closed and opened again is read again.
        bench.succeed(SmbOp::Close { handle: HandleNo(1) });
        bench.succeed(create("f", 1, Disposition::Open));
        assert_eq!(reads_on_the_wire(&mut bench, 2_000, 8_000), 1);
        assert_eq!(reads_on_the_wire(&mut bench, 2_000, 8_000), requests);
    }
}

#[test]
fn without_the_servers_leave_everything_is_asked_for() {
    let mut bench = Bench::new(&Setting { caching: Caching::Oplock, ..Setting::default() });
    bench.server.grants_oplocks = false;
    bench.succeed(create("f", 1, Disposition::Create));
    bench.succeed(write(1, 0, 10_000));
    assert_eq!(reads_on_the_wire(&mut bench, 0, 10_000), 1);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 10_000), 1);
}

#[test]
fn a_broken_oplock_is_acknowledged_at_once_and_ends_what_is_known() {
    let mut bench = bench(Caching::Oplock, Dialect::V3_1_1);
    let file_id = FileId { persistent: 1, volatile: 1 };
    let two = Break::Oplock(OplockBreak { level: OplockLevel::LevelTwo, file_id });
    bench.breaks(two);
    bench.serve();
    assert_eq!(bench.server.acknowledged, [two]);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 1);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 0, "reading may still be kept");
    let none = Break::Oplock(OplockBreak { level: OplockLevel::None, file_id });
    bench.breaks(none);
    bench.serve();
    assert_eq!(bench.server.acknowledged, [two], "nobody waits for that answer");
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 1);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 1);
    // Of a file that is closed by now.
    bench.breaks(Break::Oplock(OplockBreak {
        level: OplockLevel::None,
        file_id: FileId { persistent: 1, volatile: 99 },
    }));
    bench.serve();
    assert_eq!(bench.session.lost(), None);
}

#[test]
fn a_broken_lease_is_acknowledged_if_the_server_waits_for_it() {
    let mut bench = bench(Caching::Lease, Dialect::V3_1_1);
    bench.succeed(create("f", 2, Disposition::Open));
    let key = crate::session::encode::lease_key("f");
    let mut lease = LeaseBreakNotification {
        new_epoch: 2,
        flags: 1,
        key,
        current_state: 7,
        new_state: lease_state::READ,
    };
    bench.breaks(Break::Lease(lease));
    bench.serve();
    let acknowledged = match bench.server.acknowledged[..] {
        [Break::LeaseAcknowledgement(lease)] => (lease.key, lease.state),
        ref other => panic!("{other:?}"),
    };
    assert_eq!(acknowledged, (key, lease_state::READ));
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 1);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 0);
    (lease.flags, lease.new_state) = (0, 0);
    bench.breaks(Break::Lease(lease));
    bench.serve();
    assert_eq!(bench.server.acknowledged.len(), 1);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 1);
    assert_eq!(reads_on_the_wire(&mut bench, 0, 5_000), 1);
}

#[test]
fn breaks_without_end_end_the_client() {
    let mut bench = bench(Caching::Oplock, Dialect::V3_1_1);
    let file_id = FileId { persistent: 1, volatile: 1 };
    for _ in 0..10_000 {
        bench.breaks(Break::Oplock(OplockBreak { level: OplockLevel::Exclusive, file_id }));
    }
    assert!(bench.session.lost().unwrap().contains("breaks without end"));
}
