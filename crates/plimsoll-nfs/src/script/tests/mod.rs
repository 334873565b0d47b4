//! The script without a network: what the clients request together must not depend on their number.

mod bounds;
mod cache;

use std::collections::{BTreeMap, HashMap};

use plimsoll_model::outcome::OpStatus;
use plimsoll_model::suite::Suite;

use super::*;
use crate::fileset::FileSet;
use crate::op::Presence;
use crate::parameters::{self, NfsWorkload, op_shares};
use plimsoll_engine::rng;

/// What clients requested.
#[derive(Default)]
struct RequestTally {
    rpcs: u64,
    by_kind: Vec<u64>,
    /// Draws by access group.
    groups: Vec<u64>,
    /// The initial content touched, one bit per KiB, in the order of the files.
    touched: Vec<u8>,
    /// Where in `touched` each file begins.
    starts: Vec<usize>,
    /// Draws by blocks (0: a part of one).
    reads: BTreeMap<u32, u64>,
    writes: BTreeMap<u32, u64>,
    appended: Vec<(u32, u32, u64, u64)>,
    overwrites: u64,
    verified: u64,
}

impl RequestTally {
    fn new(plan: &ScriptPlan) -> Self {
        let mut starts = vec![0];
        for file in (0..plan.files.accessed()).map(Accessed) {
            let last = starts[file.0 as usize];
            starts.push(last + (file.bytes() as usize).div_ceil(8 * 1_024));
        }
        Self {
            by_kind: vec![0; plan.ops.len()],
            groups: vec![0; 10],
            touched: vec![0; starts[starts.len() - 1]],
            starts,
            ..Self::default()
        }
    }

    fn shares(&self) -> Vec<f64> {
        self.by_kind.iter().map(|n| *n as f64 / self.rpcs as f64).collect()
    }

    fn popularity(&self) -> Vec<f64> {
        let total: u64 = self.groups.iter().sum();
        self.groups.iter().map(|n| *n as f64 / total as f64).collect()
    }

    fn unique_kib(&self) -> u32 {
        self.touched.iter().map(|bits| bits.count_ones()).sum()
    }

    fn note(&mut self, client: u32, op: NfsOp) {
        let file = match op.call {
            NfsCall::GetAttr(file)
            | NfsCall::SetAttr(file)
            | NfsCall::Lookup(file)
            | NfsCall::Access(file) => file,
            NfsCall::Read(span, verify) => {
                *self.reads.entry(span.blocks_left + 1).or_default() += 1;
                self.verified += u64::from(verify == Verify::Content);
                self.touch(span);
                span.file
            }
            NfsCall::Write(span, _) => {
                let whole = u32::from(span.bytes == BLOCK_BYTES);
                *self.writes.entry(span.blocks_left + whole).or_default() += 1;
                let end = span.offset + u64::from(span.bytes + span.blocks_left * BLOCK_BYTES);
                if span.offset >= span.file.bytes() {
                    self.appended.push((client, span.file.0, span.offset, end));
                } else {
                    self.overwrites += 1;
                    self.touch(span);
                }
                span.file
            }
            _ => return,
        };
        self.groups[file.group(10) as usize] += 1;
    }

    fn touch(&mut self, span: Span) {
        let end = span.offset + u64::from(span.bytes + span.blocks_left * BLOCK_BYTES);
        assert!(end <= span.file.bytes(), "{span:?} of {} bytes", span.file.bytes());
        for kib in span.offset / 1_024..end / 1_024 {
            let index = self.starts[span.file.0 as usize] + kib as usize / 8;
            self.touched[index] |= 1 << (kib % 8);
        }
    }
}

fn workload(name: &str) -> NfsWorkload {
    let text = match name {
        "nfs-v2" => include_str!("../../../suites/nfs-v2.toml"),
        "nfs-v3" => include_str!("../../../suites/nfs-v3.toml"),
        _ => include_str!("../../../suites/nfs-v3-2008.toml"),
    };
    let suite = Suite::parse(name, text, &[], &|_, table| parameters::read(table)).unwrap();
    suite.workload.parameters::<NfsWorkload>().clone()
}

fn plan(name: &str, files: FileSet, clients: u32) -> Arc<ScriptPlan> {
    Arc::new(ScriptPlan::new(&workload(name), files, 5, clients).unwrap())
}

const NOW: ScriptContext = ScriptContext { index: 0, due: Nanos::ZERO, now: Nanos::ZERO };

fn outcome(op: NfsOp, status: OpStatus) -> Outcome {
    Outcome { kind: op.kind, status, bytes_read: 0, bytes_written: 0, ambiguous: false }
}

/// Issues the next op and ends it and its follow-ons at once; the op and its RPCs.
fn one(script: &mut NfsScript) -> (NfsOp, u64) {
    let Step::Issue(op) = script.next(NOW) else { panic!("nothing is in flight") };
    script.on_issued(Ticket(0));
    let more = match op.call {
        NfsCall::Read(span, _) | NfsCall::Write(span, _) => span.blocks_left,
        _ => 0,
    };
    let status = match op.call {
        NfsCall::Remove(_, Presence::Missing) => OpStatus::ExpectedFailure,
        _ => OpStatus::Ok,
    };
    for _ in 0..more {
        script.on_outcome(Ticket(0), &outcome(op, status), Nanos::ZERO);
        script.on_follow_on(Ticket(0), Ticket(0));
    }
    script.on_outcome(Ticket(0), &outcome(op, status), Nanos::ZERO);
    (op, u64::from(more) + 1)
}

/// RPCs of each client, `rpcs` in all, about as uneven as independent arrivals are.
fn uneven(rpcs: u64, clients: u32, key: u64) -> Vec<u64> {
    let mean = rpcs as f64 / f64::from(clients);
    let swing = |client| rng::unit(rng::key(&[key, u64::from(client)])) * 2.0 - 1.0;
    let swings: Vec<f64> = (0..clients).map(swing).collect();
    let middle = swings.iter().sum::<f64>() / f64::from(clients);
    let rpcs = swings.iter().map(|swing| mean + (swing - middle) * (3.0 * mean).sqrt());
    rpcs.map(|n| n.max(0.0).round() as u64).collect()
}

/// What all clients request in `rpcs` RPCs, after a warm-up.
fn simulate(plan: &Arc<ScriptPlan>, rpcs: u64, warm_up: u64) -> RequestTally {
    let mut tally = RequestTally::new(plan);
    let shares = uneven(warm_up, plan.clients, 1).into_iter().zip(uneven(rpcs, plan.clients, 2));
    for (client, (warm_up, rpcs)) in (0..).zip(shares) {
        let mut script = NfsScript::new(plan.clone(), client);
        let mut done = 0;
        while done < warm_up {
            done += one(&mut script).1;
        }
        let mut done = 0;
        while done < rpcs {
            let (op, count) = one(&mut script);
            done += count;
            tally.rpcs += count;
            tally.by_kind[usize::from(op.kind.0)] += count;
            tally.note(client, op);
        }
    }
    tally
}

fn furthest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs() * 100.0).fold(0.0, f64::max)
}

fn shares_of(counts: &BTreeMap<u32, u64>) -> Vec<f64> {
    let total: u64 = counts.values().sum();
    counts.values().map(|n| *n as f64 / total as f64).collect()
}

#[test]
fn what_is_touched_does_not_depend_on_the_number_of_processes() {
    // 1,000 ops/s for the method's 300 s, on the method's file set.
    check_process_numbers("nfs-v3", 1_000.0, 300_000);
}

#[test]
fn every_mix_holds_its_shares_whatever_the_number_of_processes() {
    check_process_numbers("nfs-v2", 250.0, 75_000);
    check_process_numbers("nfs-v3-2008", 250.0, 75_000);
}

/// What 1, 4 and 16 processes request in `rpcs` RPCs on the file set of a load.
fn check_process_numbers(name: &str, ops_per_s: f64, rpcs: u64) {
    let files = FileSet::for_load(ops_per_s, 10.0, 1.0);
    let expected = op_shares(&workload(name));
    let runs = [1, 4, 16].map(|clients| simulate(&plan(name, files, clients), rpcs, 10_000));
    for run in &runs {
        let mix = furthest(&run.shares(), &expected);
        let popularity = furthest(&run.popularity(), &runs[0].popularity());
        let bytes = f64::from(run.unique_kib()) / f64::from(runs[0].unique_kib()) - 1.0;
        let reads = furthest(&shares_of(&run.reads), &[0.85, 0.08, 0.04, 0.02, 0.01]);
        let writes = furthest(&shares_of(&run.writes), &[0.49, 0.36, 0.08, 0.04, 0.02, 0.01]);
        println!(
            "{name}: mix {mix:.2}, popularity {popularity:.2}, reads {reads:.2}, writes \
             {writes:.2} points; unique bytes {} KiB, {:+.2} %",
            run.unique_kib(),
            bytes * 100.0
        );
        assert!(mix < 1.0 && popularity < 1.0 && reads < 1.0 && writes < 1.0);
        assert!(bytes.abs() < 0.01);
        let appends = run.appended.len() as f64;
        assert!((appends / (appends + run.overwrites as f64) - 0.7).abs() < 0.01);
        let reads = run.reads.values().sum::<u64>() as f64;
        assert!((reads / 64.0 / run.verified as f64 - 1.0).abs() < 0.1);
    }
}

/// One READ in a hundred is sixteen RPCs, so whether a process has one in a short point is luck.
#[test]
fn a_short_point_holds_the_mix() {
    let files = FileSet::for_load(1_000.0, 10.0, 0.001);
    for name in ["nfs-v2", "nfs-v3", "nfs-v3-2008"] {
        let expected = op_shares(&workload(name));
        for clients in [1, 4, 16] {
            let plan = plan(name, files, clients);
            let off = |rpcs: u64, begin: u64| {
                furthest(&simulate(&plan, rpcs, begin * 97).shares(), &expected)
            };
            let within = (0..40).filter(|begin| off(3_000, *begin) < 1.0).count();
            let worst = (0..10).map(|begin| off(10_000, begin)).fold(0.0, f64::max);
            println!(
                "{name}, {clients} clients: {within} of 40 points of 3,000 RPCs within 1 point, \
                 worst of 10 of 10,000 off by {worst:.2}"
            );
            assert!(within >= 36 && worst < 1.0);
        }
    }
}

#[test]
fn popularity_is_that_of_the_poisson_weights() {
    let files = FileSet::for_load(100.0, 10.0, 1.0);
    let mut weights = [0.0; 10];
    plimsoll_protocol::draw::poisson(5.0, &mut weights);
    let tally = simulate(&plan("nfs-v3", files, 4), 30_000, 0);
    let off = furthest(&tally.popularity(), &weights);
    println!("popularity off the weights by {off:.2} points");
    assert!(off < 0.5, "{:?}", tally.popularity());
}

#[test]
fn appends_go_to_owned_files_and_never_overlap() {
    let tally = simulate(&plan("nfs-v3", FileSet::for_load(100.0, 10.0, 1.0), 16), 60_000, 0);
    let mut ends: HashMap<u32, u64> = HashMap::new();
    for (client, file, offset, end) in tally.appended {
        assert_eq!(file % 16, client);
        let file_end = ends.entry(file).or_insert(Accessed(file).bytes());
        assert_eq!(*file_end, offset, "appends begin where the file ends");
        *file_end = end;
    }
    assert!(ends.len() > 500, "{}", ends.len());
}

#[test]
fn a_script_follows_from_seed_and_client() {
    let files = FileSet::new(5_000);
    let ops = |seed, client| {
        let plan = ScriptPlan::new(&workload("nfs-v3"), files, seed, 4).unwrap();
        let mut script = NfsScript::new(Arc::new(plan), client);
        (0..2_000).map(|_| one(&mut script).0).collect::<Vec<_>>()
    };
    assert_eq!(ops(1, 2), ops(1, 2));
    assert_ne!(ops(1, 2), ops(1, 3));
    assert_ne!(ops(1, 2), ops(2, 2));
}

#[test]
fn more_clients_than_names_are_refused_with_the_number_that_would_do() {
    let error = ScriptPlan::new(&workload("nfs-v3"), FileSet::new(1_000), 1, 31).unwrap_err();
    let most = ScriptError::TooManyClients { clients: 31, files: 1_000, most: 30 };
    assert_eq!(error, most);
    assert!(error.to_string().contains("which serve 30"));
}
