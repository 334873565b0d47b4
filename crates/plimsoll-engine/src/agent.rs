//! stub
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use plimsoll_model::assignment::Assignment;
use plimsoll_model::event::AgentEvent;

use crate::seam::Workload;

/// Why an agent cannot work on a point.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The host refused something the agent needs.
    #[error("cannot {doing}: {source}; {remedy}")]
    Host {
        /// What was tried.
        doing: &'static str,
        /// The host's answer.
        source: std::io::Error,
        /// The next move.
        remedy: &'static str,
    },
}

/// Works on one load point and reports through `events`; returns when every worker has drained.
/// Setting `stop` ends the point early, within milliseconds.
pub fn run_point(
    assignment: &Assignment,
    workload: &dyn Workload,
    events: &Sender<AgentEvent>,
    stop: &AtomicBool,
) -> Result<(), AgentError> {
    let _ = (assignment, workload, events, stop);
    unimplemented!("in progress")
}
