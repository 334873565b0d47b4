//! A load point on the simulated clock, and what came of it.

pub mod streamed;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use plimsoll_engine::fresh::FreshTimes;
use plimsoll_engine::worker::{Seat, SeatDriver};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{
    Assignment, Endpoint, Load, Pacing, Phases, PointId, Priority, Purpose,
};
use plimsoll_model::event::{AgentEvent, Interval, Phase, Times, WorkerTotals, new_times};
use plimsoll_model::suite::{Arrivals, Gaps, OnClientFailure, Think, ThinkDistribution};
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_testkit::sim::{SimDriver, Target};

pub struct Seen {
    pub totals: WorkerTotals,
    pub intervals: Vec<Interval>,
    pub samples: Vec<String>,
    pub requests: Vec<u64>,
    /// Clients that left, with their reasons.
    pub lost: Vec<(u32, String)>,
}

impl Seen {
    pub fn merged(&self, pick: impl Fn(&Interval) -> &Times) -> Times {
        let mut all = new_times();
        for interval in self.intervals.iter().filter(|i| i.record.phase != Phase::WarmUp) {
            all.add(pick(interval)).unwrap();
        }
        all
    }

    pub fn response(&self) -> Times {
        self.merged(|i| &i.ops[0].response)
    }

    /// Of one kind of op.
    pub fn response_of(&self, kind: usize) -> Times {
        self.merged(|i| &i.ops[kind].response)
    }

    pub fn lateness(&self) -> Times {
        self.merged(|i| &i.ops[0].lateness)
    }

    pub fn send_lag(&self) -> Times {
        self.merged(|i| &i.ops[0].send_lag)
    }
}

pub fn open(rate: f64, clients: u32, arrivals: Arrivals, gaps: Gaps) -> Load {
    let rate_ops_per_s = OpsPerSec::new(rate).unwrap();
    Load::Open { rate_ops_per_s, arrivals, gaps, clients, backlog_ops_max: 65_536 }
}

pub fn closed(clients: u32, think: Nanos) -> Load {
    let think = Think { mean: think, distribution: ThinkDistribution::Exponential };
    Load::Closed { clients, think, start_delay_ns: Nanos::ZERO, axis_think_ns: None }
}

pub fn assignment(load: Load) -> Assignment {
    Assignment {
        point: PointId { ordinal: 1, purpose: Purpose::Ladder },
        load,
        phases: Phases {
            warm_up_ns: Nanos::from_secs(2),
            measure_ns: Nanos::from_secs(10),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::from_secs(5),
            ops: None,
        },
        seed: 11,
        workers: 1,
        cores: vec![],
        pacing: Pacing::Precise,
        own_cores: false,
        priority: Priority::Normal,
        op_timeout: Nanos::from_secs(10),
        endpoints: vec![Endpoint {
            target: "sim".into(),
            address: "127.0.0.1:1".parse().unwrap(),
            unix: None,
        }],
        sources: vec![],
        reserved_ports: false,
        nonce: 0,
        on_client_failure: OnClientFailure::Drop,
        goodput: None,
        counts_clients: false,
        crew: None,
        files: None,
    }
}

pub fn run(
    workload: &dyn Workload,
    assignment: &Assignment,
    worker: u32,
    driver: &mut SimDriver<impl Target>,
) -> Seen {
    run_until(&AtomicBool::new(false), workload, assignment, worker, driver)
}

/// To the end, or until `stop` is set.
pub fn run_until(
    stop: &AtomicBool,
    workload: &dyn Workload,
    assignment: &Assignment,
    worker: u32,
    driver: &mut SimDriver<impl Target>,
) -> Seen {
    let (events, received) = sync_channel(10_000);
    workload.run_worker(Seat {
        assignment,
        worker,
        op_names: workload.op_names(),
        ops_per_arrival: workload.ops_per_arrival(),
        clients_per_session: workload.clients_per_session(),
        recorded: workload.recorded(),
        events: &events,
        fresh: FreshTimes::on_the_spot(workload.op_names().0.len()),
        stop,
        driver: SeatDriver::Simulated(driver),
    });
    drop(events);
    let mut seen = Seen {
        totals: WorkerTotals::default(),
        intervals: vec![],
        samples: vec![],
        requests: std::mem::take(&mut driver.requests),
        lost: vec![],
    };
    for event in received {
        match event {
            AgentEvent::Interval(interval) => seen.intervals.push(*interval),
            AgentEvent::WorkerFinished(totals) => seen.totals = *totals,
            AgentEvent::ErrorSample(sample) => seen.samples.push(sample.detail),
            AgentEvent::ClientLost { client, reason, .. } => seen.lost.push((client, reason)),
            other => panic!("unexpected {other:?}"),
        }
    }
    seen
}
