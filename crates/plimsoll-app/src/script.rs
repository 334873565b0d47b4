//! What a client requests next. Transaction n depends on the seed, the client and n only: in a
//! closed load n counts the client's own, in an open one it is the index in the schedule.
//!
//! Kinds are drawn from decks, so that short runs keep the shares of the mix. Blocks are drawn
//! evenly from the part of the segment that is used.

use std::sync::Arc;

use plimsoll_engine::interface::{ClientContext, Script, ScriptContext, Step};
use plimsoll_model::assignment::Load;
use plimsoll_model::suite::Arrivals;

use super::op::{AppKind, AppOp, Segment};
use super::parameters::AppWorkload;
use plimsoll_engine::rng;
use plimsoll_protocol::draw::{OwnDeck, Owner, Stream, Weights};

/// Keeps the draws of different uses apart.
mod stream {
    pub(super) const KIND: u64 = 0x400;
    pub(super) const SEED: u64 = 0x401;
    pub(super) const BLOCK: u64 = 0x402;
}

/// What the scripts of one load point share.
#[derive(Debug)]
pub struct ScriptPlan {
    seed: u64,
    clients: u32,
    /// One schedule for all clients: a transaction depends on its index alone.
    shared: bool,
    weights: Weights,
    blocks: u64,
    verify_one_in: u64,
}

impl ScriptPlan {
    /// The plan of a load point.
    pub fn new(seed: u64, load: &Load, workload: &AppWorkload, segment: Segment) -> Self {
        Self {
            seed,
            clients: load.clients(),
            shared: matches!(load, Load::Open { arrivals: Arrivals::Shared, .. }),
            weights: Weights::new(&workload.mix.weights()),
            blocks: segment.blocks_used(),
            verify_one_in: u64::from(workload.verify_one_in),
        }
    }

    /// Clients of the load point, each with a segment of its own.
    pub fn clients(&self) -> u32 {
        self.clients
    }
}

/// The seed of transaction `index` of a shared schedule, by which a server's log names it.
pub fn shared_seed(run_seed: u64, index: u64) -> u32 {
    rng::key(&[run_seed, stream::SEED, 0, index]) as u32
}

/// The script of one client, or of a schedule.
#[derive(Debug)]
pub struct AppScript {
    plan: Arc<ScriptPlan>,
    owner: Owner,
    deck: OwnDeck,
}

impl AppScript {
    /// The script of the client of `context`.
    pub fn new(plan: Arc<ScriptPlan>, context: &ClientContext) -> Self {
        let (client, clients) = if plan.shared { (0, 1) } else { (context.client, plan.clients) };
        let owner = Owner { seed: plan.seed, client, clients };
        Self { plan, owner, deck: OwnDeck::new(Stream(stream::KIND)) }
    }

    /// Transaction number `index`.
    pub fn op(&mut self, index: u64) -> AppOp {
        let plan = &*self.plan;
        let client = u64::from(self.owner.client);
        let kind = AppKind::ALL[self.deck.card(self.owner, &plan.weights, index)];
        let key = |stream| rng::key(&[plan.seed, stream, client, index]);
        AppOp {
            kind,
            seed: key(stream::SEED) as u32,
            block: match kind {
                AppKind::RandomRead | AppKind::RandomWrite => {
                    rng::below(key(stream::BLOCK), plan.blocks)
                }
                _ => 0,
            },
            // Clients are out of step, so that they do not all compare at once.
            compare: index.wrapping_add(client).is_multiple_of(plan.verify_one_in),
        }
    }
}

impl Script for AppScript {
    type Op = AppOp;

    fn next(&mut self, context: ScriptContext) -> Step<AppOp> {
        Step::Issue(self.op(context.index))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::{InterArrival, Think, ThinkDistribution};
    use plimsoll_model::units::{Nanos, OpsPerSec};

    use super::*;

    fn closed(clients: u32) -> Load {
        let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
        Load::Closed {
            clients,
            think,
            start_delay_ns: Nanos::ZERO,
            starts_thinking: false,
            axis_think_ns: None,
        }
    }

    fn shared(clients: u32) -> Load {
        Load::Open {
            rate_ops_per_s: OpsPerSec::new(100.0).unwrap(),
            arrivals: Arrivals::Shared,
            gaps: InterArrival::Exponential,
            clients,
            backlog_ops_max: 10,
        }
    }

    fn scripts(load: &Load, workload: &AppWorkload) -> Vec<AppScript> {
        let segment = Segment::new(16.0, 1.0, workload.access_bytes, 1.0);
        let plan = Arc::new(ScriptPlan::new(7, load, workload, segment));
        let context = |client| ClientContext {
            client,
            endpoint: 0,
            seed: 7,
            op_timeout: Nanos::from_secs(1),
            nonce: 0,
        };
        (0..load.clients())
            .map(|client| AppScript::new(Arc::clone(&plan), &context(client)))
            .collect()
    }

    #[test]
    fn short_runs_hold_the_shares_of_the_mix() {
        let mut workload = AppWorkload::default();
        workload.mix.append = 0.05;
        for clients in [1, 4, 60] {
            let mut counts = [0_u32; AppKind::ALL.len()];
            let each = 1_200 / clients;
            for mut script in scripts(&closed(clients), &workload) {
                (0..each).for_each(|n| counts[script.op(u64::from(n)).kind as usize] += 1);
            }
            for (count, share) in counts.iter().zip(workload.mix.shares()) {
                let got = f64::from(*count) / f64::from(each * clients);
                assert!((got - share).abs() < 0.01, "{clients}: {counts:?}");
            }
        }
    }

    #[test]
    fn a_transaction_follows_from_seed_client_and_number() {
        let workload = AppWorkload::default();
        let ops = |order: &[u64]| {
            let mut scripts = scripts(&closed(3), &workload);
            order.iter().map(|n| scripts[1].op(*n)).collect::<Vec<_>>()
        };
        let mut backwards = ops(&[250, 101, 100, 99, 0]);
        backwards.reverse();
        assert_eq!(ops(&[0, 99, 100, 101, 250]), backwards);
        let mut all = scripts(&closed(3), &workload);
        assert_ne!(all[0].op(5).seed, all[1].op(5).seed);
    }

    #[test]
    fn what_a_shared_schedule_asks_for_does_not_depend_on_who_does_it() {
        let mut few = scripts(&shared(2), &AppWorkload::default());
        let mut many = scripts(&shared(64), &AppWorkload::default());
        for n in 0..300 {
            assert_eq!(few[0].op(n), many[63].op(n));
            assert_eq!(few[0].op(n).seed, shared_seed(7, n));
        }
    }

    #[test]
    fn random_blocks_reach_the_whole_segment() {
        let mut script = scripts(&closed(1), &AppWorkload::default()).remove(0);
        let blocks: Vec<u64> = (0..5_000)
            .map(|n| script.op(n))
            .filter(|op| op.kind == AppKind::RandomRead)
            .map(|op| op.block)
            .collect();
        assert!(blocks.iter().all(|block| *block < 2_048));
        assert!(
            blocks.iter().any(|block| *block < 20) && blocks.iter().any(|block| *block > 2_030)
        );
    }

    #[test]
    fn one_reply_in_so_many_is_compared() {
        let mut script = scripts(&closed(1), &AppWorkload::default()).remove(0);
        assert_eq!((0..1_600).filter(|n| script.op(*n).compare).count(), 100);
    }
}
