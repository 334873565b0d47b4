//! The eight applications of the SuperLab's mix, and files that all clients write.

use std::collections::BTreeSet;

use super::mix::{check_client, tally, tally_after};
use super::*;
use crate::PROTOCOL;
use crate::op::{SmbKind, SmbOp};
use crate::script::disk_mix::RECORDS_AT;

fn shipped(suite: &str) -> SmbWorkload {
    let suite = PROTOCOL.parse_suite(suite, PROTOCOL.shipped(suite).unwrap(), &[]).unwrap();
    suite.workload.parameters::<SmbWorkload>().clone()
}

fn superlab(clients: u32, scale: f64, stagger: bool) -> Arc<ScriptPlan> {
    plan(clients, scale, |workload| {
        *workload = shipped("disk-mix-superlab");
        workload.verify_one_in = 1;
        workload.model.stagger = stagger;
    })
}

#[test]
fn every_application_meets_what_a_server_answers_and_a_pass_moves_about_the_workspace() {
    for (scale, client) in [(1.0, 0), (1.0, 1), (0.01, 2), (0.001, 5)] {
        let plan = superlab(8, scale, false);
        let moved = check_client(&plan, client, 8);
        let parts = (moved.read + moved.written) as f64 / (20.0 * 1_048_576.0);
        assert!((0.8..1.05).contains(&parts), "{scale} {client}: {parts} {moved:?}");
        assert!(moved.made_bytes_max < crate::prepare::WORK_BYTES, "{moved:?}");
    }
    for client in [0, 3, 44, 80] {
        check_client(&superlab(81, 0.001, true), client, 11);
    }
}

#[test]
fn sessions_of_different_applications_differ_as_their_tables_say() {
    let plan = superlab(1, 1.0, false);
    let mut client = Client::new(&plan, 0);
    let (mut call, _) = client.next();
    for (name, application) in &plan.workload.model.applications {
        let (mut kinds, mut read, mut opened) = ([0_u32; 19], 0_u64, BTreeSet::new());
        loop {
            kinds[call.op.kind() as usize] += 1;
            match &call.op {
                SmbOp::Read { length, .. } => read += u64::from(*length),
                SmbOp::Create { path, .. } if path.as_str().contains("seed\\file") => {
                    opened.insert(path.as_str().to_owned());
                }
                _ => {}
            }
            let thought;
            (call, thought) = client.next();
            if thought {
                break;
            }
        }
        let ops: u32 = kinds.iter().sum();
        assert!(ops.abs_diff(application.ops) < application.ops / 20, "{name}: {ops}");
        let shares = plan.workload.model.of_application(application).shares();
        for kind in SmbKind::ALL {
            let percent = 100.0 * f64::from(kinds[kind as usize]) / f64::from(ops);
            let expected = 100.0 * shares[kind as usize];
            assert!((percent - expected).abs() < 1.5, "{name}, {}: {percent}", kind.name());
        }
        let mean = read as f64 / f64::from(kinds[SmbKind::Read as usize]);
        let ratio = mean / application.read_sizes.mean_bytes();
        assert!((0.7..1.4).contains(&ratio), "{name}: {ratio}");
        let document = format!("file{}.dat", application.document);
        assert!(opened.iter().any(|path| path.ends_with(&document)), "{name}: {opened:?}");
        assert!(opened.len() as u32 <= application.files + 1, "{name}: {opened:?}");
    }
}

#[test]
fn the_mix_of_a_pass_and_of_a_short_point_is_that_of_the_applications() {
    let plan = superlab(8, 1.0, true);
    let off = tally(&plan, 8, 3_550).off_shares(&plan.workload);
    assert!(off < 0.3, "{off}");
    for (clients, each) in [(13, 800), (39, 500), (81, 300), (406, 100)] {
        let plan = superlab(clients, 0.02, true);
        let tally = tally_after(500, &plan, clients, each);
        let off = tally.off_shares(&plan.workload);
        assert!(off < 3.0, "{clients} x {each}: {off}");
    }
}

#[test]
fn shared_files_are_written_with_what_they_hold_and_each_client_locks_a_record_of_its_own() {
    for shared_write_percent in [0.0, 10.0, 60.0] {
        let plan = plan(4, 0.05, |workload| {
            (workload.shared_percent, workload.shared_write_percent) = (20.0, shared_write_percent);
            workload.model.mix.lock = 2.0;
        });
        let mut locked = BTreeSet::new();
        for client in 0..4 {
            // Checked on a share that must be as it was prepared.
            check_client(&plan, client, 9);
            let mut one = Client::new(&plan, client);
            for _ in 0..3_550 {
                if let SmbOp::Lock { offset, length, .. } = one.next().0.op {
                    locked.insert((client, offset, length));
                }
            }
        }
        let behind_the_end = |offset: u64| offset >= RECORDS_AT;
        let records: Vec<_> =
            locked.iter().filter(|(_, offset, _)| behind_the_end(*offset)).collect();
        let is_apart = |a: &(u32, u64, u64), b: &(u32, u64, u64)| a.1 + a.2 <= b.1;
        assert!(records.windows(2).all(|two| is_apart(two[0], two[1])), "{records:?}");
        assert_eq!(records.len(), if shared_write_percent > 0.0 { 4 } else { 0 }, "{locked:?}");
        let tally = tally(&plan, 4, 3_550);
        let percent = 100.0 * tally.shared_writes as f64 / tally.writes.sizes.len() as f64;
        assert!((percent - shared_write_percent).abs() < 3.0, "{percent}");
    }
}
