//! What the scripts of one load point share: the mix, and which of the accessed files is chosen how
//! often.

use plimsoll_engine::rng;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::page_cache::{AccessClass, AccessPattern};
use plimsoll_protocol::draw::{self, Sample, Weights};

use crate::fileset::{BLOCK_BYTES, FileSet, SIZE_CLASSES, class_of_read};
use crate::op::{Accessed, Stability};
use crate::parameters::{MixOp, NfsWorkload, READ_BLOCKS};

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

    /// How often each block of the accessed files is read; each of `servers` has the set. Blocks
    /// of one file count as equally popular. Writes are left out.
    pub fn access_pattern(&self, servers: u64) -> AccessPattern {
        let popularity = &self.popularity;
        let groups = 0..popularity.starts.len();
        let mut reads = vec![[0.0; SIZE_CLASSES.len()]; groups.len()];
        for (percent, blocks) in self.workload.read_blocks.iter().zip(READ_BLOCKS) {
            let smallest = class_of_read(blocks);
            for drawn in groups.clone() {
                let group = popularity.group_with(drawn, smallest);
                let blocks =
                    popularity.groups.share(drawn) * f64::from(u32::from(*percent) * blocks);
                let of_file = blocks / popularity.count(group, smallest).max(1.0);
                for (class, reads) in reads[group].iter_mut().enumerate().skip(smallest) {
                    *reads += of_file * popularity.count_of_class(group, class);
                }
            }
        }
        let whole: f64 = reads.iter().flatten().sum();
        let of_class = |group: usize, class: usize| {
            let bytes = u64::from(SIZE_CLASSES[class].kib) * 1_024;
            let blocks = bytes.div_ceil(u64::from(BLOCK_BYTES)) * servers;
            AccessClass {
                items: popularity.count_of_class(group, class) as u64 * blocks,
                bytes: bytes.min(u64::from(BLOCK_BYTES)),
                share: reads[group][class] / whole,
            }
        };
        let of_group = |group| (0..SIZE_CLASSES.len()).map(move |class| (group, class));
        let all = groups.flat_map(of_group).map(|(group, class)| of_class(group, class));
        AccessPattern { classes: all.filter(|class| class.items > 0).collect() }
    }

    /// What lies on the server.
    pub fn files(&self) -> FileSet {
        self.files
    }
}

/// Which of the accessed files is chosen, and how often. The files are in the order of their
/// groups, and in a group in the order of their sizes.
///
/// The accessed files are divided into groups of equal size, and a group is chosen by Poisson
/// weights. The method has such groups too; their number, sizes and weights are unpublished. A
/// quantile decides the group and, within it, the size, so that popularity and bytes hold their
/// shares in short runs. Among equal files the choice is random, so that files recur in random
/// order.
#[derive(Clone, Debug)]
pub(super) struct Popularity {
    groups: Weights,
    order: Vec<u32>,
    /// Where in `order` each size class of a group begins; the last is the group's end.
    starts: Vec<[u32; SIZE_CLASSES.len() + 1]>,
}

impl Popularity {
    /// Of the accessed files of `files`, in `groups` groups with Poisson(`mean`) weights.
    pub(super) fn new(files: FileSet, groups: u32, mean: f64) -> Self {
        let mut weights = vec![0.0; groups as usize];
        draw::poisson(mean, &mut weights);
        let sort_key = |a: &u32| (Accessed(*a).group(groups), Accessed(*a).file().class());
        let mut order: Vec<u32> = (0..files.accessed()).collect();
        order.sort_by_key(sort_key);
        let start = |group: u32, class: usize| {
            order.partition_point(|a| sort_key(a) < (group, class)) as u32
        };
        let starts = (0..groups).map(|group| std::array::from_fn(|class| start(group, class)));
        Self { groups: Weights::new(&weights), starts: starts.collect(), order }
    }

    /// The weights of the groups.
    pub(super) fn groups(&self) -> &Weights {
        &self.groups
    }

    /// A file of size class `smallest` or above. If the group has none that large, it is one of the
    /// next group that has.
    pub(super) fn pick(&self, sample: Sample, smallest: usize) -> Accessed {
        let (group, within) = self.groups.within(sample.quantile);
        let group = self.group_with(group, smallest);
        let at = self.starts[group][smallest] + (within * self.count(group, smallest)) as u32;
        let starts = &self.starts[group];
        let class = starts.partition_point(|start| *start <= at).clamp(1, SIZE_CLASSES.len()) - 1;
        let alike = u64::from(starts[class + 1] - starts[class]);
        Accessed(self.order[starts[class] as usize + rng::below(sample.bits, alike) as usize])
    }

    /// The next group, from `group` on, with a file of size class `smallest` or above.
    fn group_with(&self, group: usize, smallest: usize) -> usize {
        let count = self.starts.len();
        let has = |group: &usize| self.count(*group, smallest) > 0.0;
        (group..group + count).map(|g| g % count).find(has).unwrap_or(group)
    }

    fn count_of_class(&self, group: usize, class: usize) -> f64 {
        f64::from(self.starts[group][class + 1] - self.starts[group][class])
    }

    /// Files of a group of size class `smallest` or above.
    fn count(&self, group: usize, smallest: usize) -> f64 {
        f64::from(self.starts[group][SIZE_CLASSES.len()] - self.starts[group][smallest])
    }
}
