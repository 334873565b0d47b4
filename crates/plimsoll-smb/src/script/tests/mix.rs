//! The disk mix.

use std::collections::HashMap;

use super::*;
use crate::op::{HandleNo, SmbKind, SmbOp};
use crate::parameters::{DiskMixModel, SizeTable, op_shares};

/// What many ops add up to.
#[derive(Default)]
pub(super) struct Tally {
    ops: u64,
    kinds: HashMap<SmbKind, u64>,
    failures: HashMap<SmbKind, u64>,
    existing: u64,
    reads: Transfers,
    pub writes: Transfers,
    shared_reads: u64,
    pub shared_writes: u64,
    shared: HashMap<HandleNo, bool>,
}

#[derive(Default)]
pub(super) struct Transfers {
    pub sizes: Vec<u32>,
    sequential: u64,
    ends: HashMap<HandleNo, u64>,
}

impl Transfers {
    fn add(&mut self, handle: HandleNo, offset: u64, length: u32) {
        self.sizes.push(length);
        let before = self.ends.insert(handle, offset + u64::from(length));
        self.sequential += u64::from(before == Some(offset));
    }

    fn bytes(&self) -> f64 {
        self.sizes.iter().map(|n| f64::from(*n)).sum()
    }

    fn sequential_percent(&self) -> f64 {
        100.0 * self.sequential as f64 / self.sizes.len() as f64
    }

    /// Percent of transfers and of bytes from `min` to `max` bytes.
    fn percents(&self, min: u32, max: u32) -> (f64, f64) {
        let within = || self.sizes.iter().filter(|n| (min..=max).contains(*n));
        let bytes: f64 = within().map(|n| f64::from(*n)).sum();
        let count = within().count() as f64;
        (100.0 * count / self.sizes.len() as f64, 100.0 * bytes / self.bytes())
    }
}

impl Tally {
    fn add(&mut self, call: &SmbCall) {
        let kind = call.op.kind();
        self.ops += 1;
        *self.kinds.entry(kind).or_default() += 1;
        let fails = call.expected != Expected::Success;
        *self.failures.entry(kind).or_default() += u64::from(fails);
        match &call.op {
            SmbOp::Create { handle, path, disposition, .. } => {
                let open = crate::op::Disposition::Open;
                self.existing += u64::from(*disposition == open);
                if !fails {
                    self.reads.ends.remove(handle);
                    self.writes.ends.remove(handle);
                    self.shared.insert(*handle, path.as_str().contains("shared"));
                }
            }
            SmbOp::Read { handle, offset, length, .. } => {
                self.reads.add(*handle, *offset, *length);
                self.shared_reads += u64::from(self.shared[handle]);
            }
            SmbOp::Write { handle, offset, length, .. } => {
                self.shared_writes += u64::from(self.shared[handle]);
                self.writes.add(*handle, *offset, *length);
            }
            _ => {}
        }
    }

    /// What is not counted, but may open handles.
    fn warm_up(&mut self, call: &SmbCall) {
        if let SmbOp::Create { handle, path, .. } = &call.op {
            self.shared.insert(*handle, path.as_str().contains("shared"));
        }
    }

    /// Those of another client, whose handles are others.
    fn next_client(&mut self) {
        (self.reads.ends, self.writes.ends) = (HashMap::new(), HashMap::new());
        self.shared.clear();
    }

    fn percent(&self, kind: SmbKind) -> f64 {
        100.0 * self.kinds.get(&kind).copied().unwrap_or(0) as f64 / self.ops as f64
    }

    fn failing(&self, kind: SmbKind) -> f64 {
        100.0 * self.failures[&kind] as f64 / self.kinds[&kind] as f64
    }

    pub(super) fn off_shares(&self, workload: &SmbWorkload) -> f64 {
        let shares = op_shares(workload).unwrap();
        let off = |kind: SmbKind| (self.percent(kind) - 100.0 * shares[kind as usize]).abs();
        SmbKind::ALL.into_iter().map(off).fold(0.0, f64::max)
    }
}

/// What the first `each` ops of every client add up to.
pub(super) fn tally(plan: &Arc<ScriptPlan>, clients: u32, each: u64) -> Tally {
    tally_after(0, plan, clients, each)
}

/// The same after `warm_up` ops of each.
pub(super) fn tally_after(warm_up: u64, plan: &Arc<ScriptPlan>, clients: u32, each: u64) -> Tally {
    let mut tally = Tally::default();
    for client in 0..clients {
        let mut client = Client::new(plan, client);
        (0..warm_up).for_each(|_| tally.warm_up(&client.next().0));
        (0..each).for_each(|_| tally.add(&client.next().0));
        tally.next_client();
    }
    tally
}

pub(super) fn check_client(plan: &Arc<ScriptPlan>, client: u32, pieces: u64) -> Moved {
    let seed = plan.workload.file_set_seed;
    let mut share = Share::prepared(seed, client, plan.workspace);
    let moved = Client::new(plan, client).work(&mut share, pieces, |_| {});
    assert!(share.is_as_prepared(&Share::prepared(seed, client, plan.workspace)));
    assert!(moved.handles_open_max <= plan.workload.model.handles_open_max as usize);
    moved
}

#[test]
fn a_pass_at_scale_one_meets_every_expectation_of_a_server() {
    let plan = plan(2, 1.0, |workload| {
        workload.verify_one_in = 1;
        workload.model.stagger = false;
    });
    for client in 0..2 {
        let moved = check_client(&plan, client, 7);
        assert!((moved.read as f64 / 11.4e6 - 1.0).abs() < 0.05, "{moved:?}");
        assert!((moved.written as f64 / 7.75e6 - 1.0).abs() < 0.08, "{moved:?}");
        assert!(moved.verified > 950, "{moved:?}");
    }
}

#[test]
fn every_client_of_every_plan_meets_what_a_server_answers() {
    let plans = [
        plan(60, 0.001, |workload| workload.verify_one_in = 1),
        plan(60, 0.02, |workload| {
            workload.verify_one_in = 1;
            workload.shared_percent = 30.0;
        }),
        plan(60, 0.001, |workload| {
            workload.shared_percent = 100.0;
            workload.model.handles_open_max = 5;
            workload.model.handles_kept = 4;
            workload.model.mix.lock = 9.0;
            workload.model.mix.rename = 20.0;
        }),
        plan(60, 0.001, |workload| {
            workload.model.sessions = 71;
            workload.model.reads_between = 0;
            workload.model.open_existing_percent = 100.0;
            workload.model.stagger = false;
            workload.model.mix.read = 0.0;
        }),
        plan(60, 0.001, |workload| {
            workload.model.open_existing_percent = 30.0;
            workload.model.missing_create_percent = 29.9;
            workload.model.mix.write = 60.0;
            workload.model.write_sizes =
                SizeTable { percent: vec![1.0], bytes_min: vec![1], bytes_max: vec![65_536] };
        }),
    ];
    for plan in plans {
        for client in [0, 1, 7, 33, 59] {
            check_client(&plan, client, 9);
        }
    }
}

#[test]
fn shares_of_the_ops_are_those_of_the_method_over_a_pass() {
    let plan = plan(8, 1.0, |_| {});
    let tally = tally(&plan, 8, 3_550);
    assert!(tally.off_shares(&plan.workload) < 0.3, "{}", tally.off_shares(&plan.workload));
    let failing: u64 = tally.failures.values().sum();
    assert!((100.0 * failing as f64 / tally.ops as f64 - 13.0).abs() < 0.3);
    for (kind, percent) in
        [(SmbKind::Create, 26.5), (SmbKind::QueryPath, 34.0), (SmbKind::Find, 52.0)]
    {
        assert!((tally.failing(kind) - percent).abs() < 1.0, "{}", tally.failing(kind));
    }
    let existing = 100.0 * tally.existing as f64 / tally.kinds[&SmbKind::Create] as f64;
    assert!((existing - 80.0).abs() < 1.0, "{existing}");
}

#[test]
fn sizes_and_sequences_are_those_of_the_method_at_every_scale() {
    for scale in [1.0, 0.25, 0.01] {
        let tally = tally(&plan(8, scale, |_| {}), 8, 3_550);
        let (read, written) = (tally.reads.bytes(), tally.writes.bytes());
        let percent = 100.0 * read / (read + written);
        assert!((percent - 59.0).abs() < 1.0, "{percent}");
        let reads = tally.reads.sequential_percent();
        let writes = tally.writes.sequential_percent();
        assert!(
            (reads - 71.0).abs() < 2.0 && (writes - 60.0).abs() < 2.0,
            "{scale}: {reads} {writes}"
        );
        let of_reads = [
            (2, 1_024, 7.2, 0.2),
            (1_025, 4_096, 73.1, 24.3),
            (4_097, 16_384, 6.0, 5.2),
            (16_385, 32_768, 0.3, 0.9),
            (32_769, 65_536, 13.4, 69.5),
        ];
        let of_writes = [
            (1, 1, 18.8, 0.0),
            (2, 1_024, 3.6, 0.0),
            (1_025, 4_096, 29.7, 4.4),
            (4_097, 16_384, 8.5, 3.5),
            (16_385, 32_768, 3.9, 3.6),
            (32_769, 65_536, 35.4, 88.5),
        ];
        let check = |transfers: &Transfers, rows: &[(u32, u32, f64, f64)]| {
            for (min, max, percent, bytes_percent) in rows {
                let (of_ops, of_bytes) = transfers.percents(*min, *max);
                assert!((of_ops - percent).abs() < 2.0, "{min}: {of_ops}");
                assert!((of_bytes - bytes_percent).abs() < 2.0, "{min}: {of_bytes}");
            }
        };
        check(&tally.reads, &of_reads);
        check(&tally.writes, &of_writes);
    }
}

#[test]
fn shared_reads_have_the_share_they_should() {
    for shared_percent in [0.0, 10.0, 50.0, 90.0, 100.0] {
        let plan = plan(4, 0.05, |workload| workload.shared_percent = shared_percent);
        let tally = tally(&plan, 4, 3_550);
        assert_eq!(tally.shared_writes, 0, "nobody writes what all read, where no suite says so");
        let percent = 100.0 * tally.shared_reads as f64 / tally.reads.sizes.len() as f64;
        assert!((percent - shared_percent).abs() < 1.0, "{shared_percent}: {percent}");
    }
}

#[test]
fn names_are_asked_for_in_the_shared_directory_too() {
    let plan = plan(4, 0.05, |workload| workload.shared_percent = 20.0);
    let (mut total, mut shared) = (0.0, 0.0);
    for number in 0..4 {
        let mut client = Client::new(&plan, number);
        for _ in 0..7_100 {
            if let SmbOp::Find { directory, .. } = client.next().0.op
                && !directory.as_str().contains("work")
            {
                total += 1.0;
                shared += f64::from(u8::from(directory.as_str().ends_with("shared")));
            }
        }
    }
    let percent = 100.0 * shared / total;
    assert!(total > 1_000.0 && (percent - 20.0).abs() < 4.0, "{percent} of {total}");
}

#[test]
fn a_random_order_has_every_application_once_a_pass_and_is_each_clients_own() {
    let documents = |client: u32| {
        let plan = plan(8, 1.0, |workload| {
            workload.model.stagger = false;
            workload.model.reads_between = 0;
            workload.model.order = crate::parameters::SessionOrder::Random;
        });
        let mut client = Client::new(&plan, client);
        let mut documents: Vec<String> = Vec::new();
        let mut is_begin = false;
        while documents.len() < 21 {
            let (call, begins) = client.next();
            is_begin |= begins;
            if let SmbOp::Create { path, .. } = &call.op
                && is_begin
                && call.expected == Expected::Success
                && path.as_str().contains("seed")
            {
                documents.push(path.as_str().rsplit('\\').next().unwrap().to_owned());
                is_begin = false;
            }
        }
        documents
    };
    let (one, other) = (documents(1), documents(2));
    assert_eq!(one, documents(1));
    assert_ne!(one, other);
    assert_ne!(one[..7], one[7..14], "each pass has its own order");
    for pass in one.chunks(7).chain(other.chunks(7)) {
        let distinct: std::collections::BTreeSet<_> = pass.iter().collect();
        assert_eq!(distinct.len(), 7, "{pass:?}");
    }
}

#[test]
fn a_short_point_holds_the_mix() {
    for (clients, each) in [(1, 600), (4, 250), (16, 60), (60, 30), (500, 20)] {
        let plan = plan(clients, 0.05, |_| {});
        let tally = tally_after(200, &plan, clients, each);
        let off = tally.off_shares(&plan.workload);
        assert!(off < 1.0, "{clients} x {each}: {off} {:?}", tally.kinds);
    }
}

#[test]
fn a_piece_of_work_is_an_application_session_and_seven_make_a_pass() {
    let mut client = Client::new(&plan(1, 1.0, |_| {}), 0);
    let mut begins = Vec::new();
    for op in 0..4_200 {
        if client.next().1 {
            begins.push(op);
        }
    }
    assert_eq!(begins[0], 0);
    // The first is a part of one.
    assert!((3_540..=3_560).contains(&(begins[8] - begins[1])), "{begins:?}");
    assert!(begins[1..].windows(2).all(|pair| (495..=520).contains(&(pair[1] - pair[0]))));
}

#[test]
fn a_script_follows_from_seed_and_client_and_clients_begin_with_different_sessions() {
    let ops = |seed, client, stagger| {
        let mut workload = SmbWorkload::default();
        workload.model.stagger = stagger;
        let plan = Arc::new(ScriptPlan::new(seed, 8, workload, 0.05));
        let mut client = Client::new(&plan, client);
        (0..600).map(|_| client.next().0).collect::<Vec<_>>()
    };
    assert_eq!(ops(1, 3, true), ops(1, 3, true));
    assert_ne!(ops(1, 3, true), ops(2, 3, true));
    let document = |client, stagger| {
        let opened = ops(1, client, stagger).into_iter().find_map(|call| match call {
            SmbCall { op: SmbOp::Create { path, .. }, expected: Expected::Success }
                if path.as_str().contains("seed") =>
            {
                Some(path.as_str().rsplit('\\').next()?.to_owned())
            }
            _ => None,
        });
        opened.unwrap()
    };
    assert_eq!((document(0, true), document(2, true)), ("file48.dat".into(), "file55.dat".into()));
    assert_eq!(document(2, false), "file48.dat");
}

#[test]
fn a_client_waits_for_its_op_and_remembers_little() {
    let plan = plan(1, 1.0, |_| {});
    let mut script = SmbScript::new(Arc::clone(&plan), &client_context(0));
    let context = ScriptContext { index: 0, due: Nanos(0), now: Nanos(0) };
    assert_eq!(script.next(context), Step::Think);
    assert!(matches!(script.next(context), Step::Issue(_)));
    script.on_issued(Ticket(0));
    assert_eq!(script.next(context), Step::WaitForOutcome);
    // A deck of some 500 cards and 23 slots for open files are allocated separately.
    assert!(size_of::<DiskMix>() < 1_024);
    assert_eq!(DiskMixModel::default().handles_open_max, 23);
}
