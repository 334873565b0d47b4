//! Any ops, any order of events: every op ends once, and none is lost.

use plimsoll_engine::interface::Session;
use plimsoll_model::outcome::OpStatus;
use plimsoll_model::units::Nanos;
use proptest::prelude::*;

use super::bench::*;
use super::server::Reply;
use crate::op::*;
use crate::session::Caching;
use crate::wire::create::OplockLevel;
use crate::wire::{Break, FileId, OplockBreak};

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Issue(u8, u8),
    /// A reply, of those that are on their way; before it, perhaps, that it will take a while.
    Reply(prop::sample::Index, bool),
    Pass(u32),
    Break(u8),
    Grants(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0u8..16, 0u8..3).prop_map(|(op, of)| Event::Issue(op, of)),
        8 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(which, interim)| Event::Reply(which, interim)),
        1 => (0u32..300).prop_map(Event::Pass),
        1 => (0u8..9).prop_map(Event::Break),
        1 => (1u16..9).prop_map(Event::Grants),
    ]
}

/// An op on one of three files and handles.
fn op(number: u8, of: u8) -> SmbOp {
    let path = text(["a", "b", "d\\c"][usize::from(of)]);
    let handle = HandleNo(of.into());
    let level = FileLevel::Basic;
    match number {
        0..=2 => SmbOp::Create { path, handle, disposition: Disposition::OpenIf, options: 0 },
        3 => SmbOp::Close { handle },
        4 => write(of.into(), 100, 90_000),
        5 | 6 => SmbOp::Read {
            handle,
            offset: 0,
            length: 70_000,
            expected_length: ExpectedLength::Any,
            check: None,
        },
        7 => SmbOp::QueryPath { path, level },
        8 => SmbOp::QueryFile { handle, level },
        9 => SmbOp::Unlink { path },
        10 => SmbOp::Mkdir { path: text("d") },
        11 => SmbOp::Deltree { path: text("d") },
        12 => SmbOp::Rename { path, to: text("z"), replace: false },
        13 => SmbOp::QueryFs { level: FsLevel::Size },
        14 => SmbOp::Find {
            directory: PathText::EMPTY,
            pattern: text("*"),
            level: FindLevel::Full,
            entries_max: 0,
        },
        _ => SmbOp::Echo,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_op_ends_once_whatever_happens_in_whatever_order(
        events in prop::collection::vec(event(), 1..120),
        credits in 1u32..20,
        cached in any::<bool>(),
    ) {
        let caching = if cached { Caching::Oplock } else { Caching::None };
        let setting = Setting { caching, credits, bytes_max: 65_536, ..Setting::default() };
        let mut bench = Bench::new(&setting);
        let mut undelivered: Vec<Reply> = Vec::new();
        for event in events {
            match event {
                Event::Issue(number, of) if bench.session.has_room() => {
                    bench.issue(op(number, of), Expected::Anything);
                }
                Event::Issue(..) => {}
                Event::Reply(..) if undelivered.is_empty() => {}
                Event::Reply(which, interim) => {
                    let reply = undelivered.swap_remove(which.index(undelivered.len()));
                    if interim {
                        bench.deliver(&reply.interim());
                    }
                    let mut last = reply;
                    if interim {
                        last.header.credits = 0;
                        last.header.async_id = Some(1);
                    }
                    bench.deliver(&last);
                }
                Event::Pass(millis) => bench.pass(Nanos::from_millis(millis.into())),
                Event::Break(file) => bench.breaks(Break::Oplock(OplockBreak {
                    level: OplockLevel::None,
                    file_id: FileId { persistent: 1, volatile: file.into() },
                })),
                Event::Grants(most) => bench.server.grants_max = most,
            }
            undelivered.extend(bench.replies());
            let ended = bench.io.done.len();
            prop_assert!(bench.issued.len() - ended <= OUTSTANDING_MAX as usize);
        }
        bench.server.grants_max = 64;
        // What is still on its way arrives, and all that follows from it.
        while !undelivered.is_empty() {
            bench.bytes(&framed(&undelivered));
            undelivered = bench.replies();
        }
        let pending = bench.issued.len() - bench.io.done.len();
        bench.pass(OP_TIMEOUT);
        prop_assert_eq!(bench.io.done.len(), bench.issued.len());
        match bench.session.lost() {
            None => prop_assert_eq!(pending, 0),
            Some(lost) => prop_assert!(lost.contains("within"), "{}", lost),
        }
        for (ticket, outcome) in &bench.io.done {
            prop_assert_eq!(outcome.kind, bench.issued[&ticket.0].into());
            if bench.session.lost().is_none() {
                let fine = matches!(outcome.status, OpStatus::Ok | OpStatus::ExpectedFailure);
                prop_assert!(fine, "{:?}: {}", outcome, bench.io.detail);
            }
        }
    }
}
