//! The shape of throughput over load: asymptotes, knee, peak, scalability.

use serde::{Deserialize, Serialize};

/// The shape of a ladder's throughput over load. What its points do not show is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// For a person, in one line.
    pub text: String,
    /// Unit of every throughput here.
    pub unit: String,
    /// Of closed ladders.
    pub asymptotes: Option<Asymptotes>,
    /// Where growth breaks off; `null` where no knee was reached, and of open ladders.
    pub knee: Option<Knee>,
    /// Of open ladders: the lowest load from which throughput no longer follows the request.
    pub not_followed_from: Option<f64>,
    /// The highest throughput measured.
    pub peak: Option<Peak>,
    /// The universal scalability law, fitted to a closed ladder.
    pub scalability: Option<Scalability>,
}

/// The two bounds of a closed ladder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asymptotes {
    /// Throughput of each client while none waits for another: of the lowest load, 1/(D + Z).
    pub per_client: f64,
    /// The highest throughput measured.
    pub ceiling: f64,
    /// Clients at which the two cross: here queueing must begin. `null` where throughput left the
    /// first at no load.
    pub queueing_from: Option<f64>,
}

/// Where two straight lines that fit the points best meet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// The load.
    pub load: f64,
    /// Low end of its interval at 95 %.
    pub low: f64,
    /// High end.
    pub high: f64,
}

/// The highest throughput measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peak {
    /// The load point, from 1.
    pub position: u32,
    /// Its load.
    pub load: f64,
    /// Its throughput.
    pub throughput: f64,
    /// Does throughput fall beyond it by more than scatter?
    pub falls: bool,
}

/// X(N) = γ N / (1 + α (N − 1) + β N (N − 1)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names without a comment say it")]
pub struct Scalability {
    pub gamma: f64,
    pub alpha: f64,
    /// Its interval at 95 %, low and high.
    pub alpha_interval: [f64; 2],
    pub beta: f64,
    /// Its interval at 95 %, low and high.
    pub beta_interval: [f64; 2],
    /// The highest load it was fitted to.
    pub measured_to: f64,
    /// Does the fit include loads beyond a peak? Only then may it speak of higher loads.
    pub past_peak: bool,
}
