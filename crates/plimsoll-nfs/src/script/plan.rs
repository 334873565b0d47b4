//! What the scripts of one load point share.

use plimsoll_model::outcome::OpKind;

use super::popularity::Popularity;
use crate::fileset::FileSet;
use crate::mix::MixOp;
use crate::op::Stability;
use crate::parameters::NfsWorkload;
use plimsoll_protocol::draw::Weights;

/// What the scripts of one load point share.
#[derive(Debug)]
pub struct ScriptPlan {
    pub(super) seed: u64,
    pub(super) clients: u32,
    pub(super) files: FileSet,
    /// By kind.
    pub(super) ops: Vec<MixOp>,
    /// Kind of CREATE, where the mix has it.
    pub(super) create: Option<OpKind>,
    pub(super) kinds: Weights,
    pub(super) popularity: Popularity,
    pub(super) stability: Stability,
    pub(super) workload: NfsWorkload,
}

/// Why clients cannot share a file set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// A client would have no file to append to, or no name to create.
    #[error(
        "{clients} clients (load.clients) are too many for {files} files, which serve \
         {most}; ask with fewer clients, or raise the load or workload_scale"
    )]
    TooManyClients {
        /// Clients of the load point.
        clients: u32,
        /// Files of the set.
        files: u32,
        /// Clients that the set has enough for.
        most: u32,
    },
}

impl ScriptPlan {
    /// The plan of a load point with `clients` clients on `files`.
    pub fn new(
        workload: &NfsWorkload,
        files: FileSet,
        seed: u64,
        clients: u32,
    ) -> Result<Self, ScriptError> {
        let most = files.accessed().min(files.slots());
        if clients > most {
            return Err(ScriptError::TooManyClients { clients, files: files.files(), most });
        }
        let groups = workload.access_groups;
        let ops: Vec<MixOp> = workload.ops().map(|(op, _)| op).collect();
        let create = ops.iter().position(|op| *op == MixOp::Create);
        Ok(Self {
            seed,
            clients,
            files,
            // At most thirteen ops.
            create: create.map(|at| OpKind(at as u8)),
            ops,
            kinds: Weights::new(&workload.draw_weights()),
            popularity: Popularity::new(files, groups, workload.access_poisson_mean),
            stability: workload.stability(),
            workload: workload.clone(),
        })
    }

    /// What lies on the server.
    pub fn files(&self) -> FileSet {
        self.files
    }
}
