//! What tests of several modules need.

use plimsoll_model::assignment::{Assignment, Load, Pacing, Phases, PointId, Priority, Purpose};
use plimsoll_model::suite::{OnClientFailure, Think, ThinkDistribution};
use plimsoll_model::units::Nanos;

/// A load point of four seconds for one worker, one client.
pub(crate) fn assignment(ordinal: u32) -> Assignment {
    let think = Think { mean: Nanos::ZERO, distribution: ThinkDistribution::Constant };
    Assignment {
        point: PointId { ordinal, purpose: Purpose::Ladder },
        load: Load::Closed {
            clients: 1,
            think,
            start_delay_ns: Nanos::ZERO,
            starts_thinking: false,
            axis_think_ns: None,
        },
        phases: Phases {
            warm_up_ns: Nanos::from_secs(1),
            measure_ns: Nanos::from_secs(3),
            ramp_down_ns: Nanos::ZERO,
            drain_ns: Nanos::from_millis(500),
            ops: None,
        },
        seed: 1,
        workers: 1,
        crew: None,
        files: None,
        cores: Vec::new(),
        pacing: Pacing::Auto,
        own_cores: false,
        priority: Priority::Auto,
        op_timeout: Nanos::from_secs(1),
        endpoints: Vec::new(),
        sources: Vec::new(),
        reserved_ports: false,
        nonce: 0,
        on_client_failure: OnClientFailure::default(),
        goodput: None,
        counts_clients: false,
        shape: None,
    }
}
