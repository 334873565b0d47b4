//! `scale.json`, format 1: one suite on a server that gets more at each step.

use serde::{Deserialize, Serialize};

use crate::event::Bound;
use crate::limit::Limit;

/// Version of the document.
pub const SCALING_FORMAT: u32 = 1;

/// The steps of one scaling, in the order they were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    /// Version of this format.
    pub format: u32,
    /// Name of the suite.
    pub suite: String,
    /// What the server got more of: `cores`, `memory` (in bytes) or `threads`.
    pub over: String,
    /// Unit of `throughput`.
    pub unit: String,
    /// The sizes of the server.
    pub steps: Vec<ScalingStep>,
}

/// One size of the server, and what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalingStep {
    /// For a person: `memory 64 MiB`.
    pub name: String,
    /// What the server got.
    pub value: f64,
    /// The headline of its run; `null` without a valid load point.
    pub throughput: Option<f64>,
    /// Stated interval of the throughput.
    pub interval: Option<[f64; 2]>,
    /// Is the throughput the server's, or no more than what was asked of it?
    pub bound: Bound,
    /// Throughput over that of the first step that has one.
    pub ratio: Option<f64>,
    /// `ratio` over that of the sizes: 1 is straight growth.
    pub efficiency: Option<f64>,
    /// What held the server back at the run's highest throughput.
    pub limit: Limit,
    /// The run's own sentence of it.
    pub limit_text: Option<String>,
    /// The run's verdict.
    pub valid: bool,
    /// Directory of its bundle, below that of this document.
    pub bundle: String,
}

impl Scaling {
    /// Fills in ratio and efficiency from sizes and throughputs.
    pub fn compare(&mut self) {
        let first = self.steps.iter().find_map(|step| Some((step.value, step.throughput?)));
        for step in &mut self.steps {
            step.ratio = first.zip(step.throughput).map(|((_, first), value)| value / first);
            let grown = first.map(|(size, _)| step.value / size);
            step.efficiency = step.ratio.zip(grown).map(|(ratio, grown)| ratio / grown);
        }
    }
}
