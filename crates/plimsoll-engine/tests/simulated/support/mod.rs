//! A load point on the simulated clock, and what came of it.

pub mod streamed;

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;

use plimsoll_engine::fresh::FreshTimes;
use plimsoll_engine::worker::{WorkerContext, WorkerDriver};
use plimsoll_engine::workload::Workload;
use plimsoll_model::assignment::{
    Assignment, Endpoint, Load, Pacing, Phases, PointId, Priority, Purpose,
};
use plimsoll_model::event::{AgentEvent, Interval, Phase, Times, WorkerTotals, new_times};
use plimsoll_model::suite::{Arrivals, InterArrival, OnClientFailure, Think, ThinkDistribution};
use plimsoll_model::units::{Nanos, OpsPerSec};
use plimsoll_testkit::sim::{SimDriver, Target};

pub struct Observation {
    /// Of the last window.
    pub totals: WorkerTotals,
    /// Of each window.
    pub windows: Vec<WorkerTotals>,
    pub intervals: Vec<Interval>,
    pub samples: Vec<String>,
    pub requests: Vec<u64>,
    /// Clients that left, with their reasons.
    pub lost: Vec<(u32, String)>,
}

impl Observation {
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

pub fn open(rate: f64, clients: u32, arrivals: Arrivals, inter_arrival: InterArrival) -> Load {
    let rate_ops_per_s = OpsPerSec::new(rate).unwrap();
    Load::Open { rate_ops_per_s, arrivals, gaps: inter_arrival, clients, backlog_ops_max: 65_536 }
}

pub fn closed(clients: u32, think: Nanos) -> Load {
    let think = Think { mean: think, distribution: ThinkDistribution::Exponential };
    Load::Closed {
        clients,
        think,
        start_delay_ns: Nanos::ZERO,
        starts_thinking: false,
        axis_think_ns: None,
    }
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
        shape: None,
        crew: None,
        files: None,
    }
}

pub fn run(
    workload: &dyn Workload,
    assignment: &Assignment,
    worker: u32,
    driver: &mut SimDriver<impl Target>,
) -> Observation {
    run_until(&AtomicBool::new(false), workload, assignment, worker, driver)
}

/// To the end, or until `stop` is set.
pub fn run_until(
    stop: &AtomicBool,
    workload: &dyn Workload,
    assignment: &Assignment,
    worker: u32,
    driver: &mut SimDriver<impl Target>,
) -> Observation {
    let (events, received) = sync_channel(10_000);
    workload.run_worker(WorkerContext {
        assignment,
        worker,
        op_names: workload.op_names(),
        ops_per_arrival: workload.ops_per_arrival(),
        clients_per_session: workload.clients_per_session(),
        spare_links: u32::MAX,
        recorded: workload.recorded(),
        events: &events,
        fresh: FreshTimes::on_the_spot(workload.op_names().0.len()),
        stop,
        driver: WorkerDriver::Simulated(driver),
    });
    drop(events);
    let mut observed = Observation {
        totals: WorkerTotals::default(),
        windows: vec![],
        intervals: vec![],
        samples: vec![],
        requests: std::mem::take(&mut driver.requests),
        lost: vec![],
    };
    for event in received {
        match event {
            AgentEvent::Interval(interval) => observed.intervals.push(*interval),
            AgentEvent::WorkerFinished { window, totals } => {
                assert_eq!(window, observed.windows.len(), "in order");
                observed.windows.push((*totals).clone());
                observed.totals = *totals;
            }
            AgentEvent::ErrorSample(sample) => observed.samples.push(sample.detail),
            AgentEvent::ClientLost { client, reason, .. } => observed.lost.push((client, reason)),
            other => panic!("unexpected {other:?}"),
        }
    }
    observed
}
