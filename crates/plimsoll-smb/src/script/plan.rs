//! What the scripts of one load point share.

use std::sync::Arc;

use crate::loadfile::LoadFile;
use crate::parameters::{SizeTable, SmbWorkload};
use crate::workspace::Workspace;
use plimsoll_protocol::draw::Weights;

use super::cards::CardShares;

/// When a script's ops are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// When the one before has ended and the client has thought.
    Closed,
    /// When a schedule says.
    Open,
}

/// What the scripts of one load point share.
#[derive(Debug)]
pub(crate) struct ScriptPlan {
    /// Seed of the run.
    pub seed: u64,
    /// Clients of the load point.
    pub clients: u32,
    /// The parameters.
    pub workload: SmbWorkload,
    /// The seed files of every home.
    pub workspace: Workspace,
    /// When ops are sent.
    pub pacing: Pacing,
    /// Replayed in place of the pattern.
    pub replay: Option<Arc<LoadFile>>,
    pub(super) cards: CardShares,
    pub(super) read_sizes: Sizes,
    pub(super) write_sizes: Sizes,
}

impl ScriptPlan {
    /// The plan of a load point of `clients` clients at the profile's `scale`.
    pub(crate) fn new(seed: u64, clients: u32, workload: SmbWorkload, scale: f64) -> Self {
        Self {
            seed,
            clients,
            workspace: Workspace::new(workload.workspace_mib, scale),
            pacing: Pacing::Closed,
            replay: None,
            cards: CardShares::new(&workload),
            read_sizes: Sizes::new(&workload.model.read_sizes),
            write_sizes: Sizes::new(&workload.model.write_sizes),
            workload,
        }
    }
}

/// Sizes to draw from.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    rows: Weights,
    table: SizeTable,
}

impl Sizes {
    fn new(table: &SizeTable) -> Self {
        Self { rows: Weights::new(&table.percent), table: table.clone() }
    }

    /// The size in bytes at `quantile` (in 0..1).
    pub(super) fn at(&self, quantile: f64) -> u32 {
        let (row, within) = self.rows.within(quantile);
        let (min, max) = (self.table.bytes_min[row], self.table.bytes_max[row]);
        min + (within * f64::from(max - min + 1)) as u32
    }
}
