//! Where a client appends. Each accessed file is appended to by one client only, which knows
//! therefore where it ends; so no two appends overlap and none needs to ask the server.

use super::popularity::Popularity;
use crate::op::Accessed;
use plimsoll_engine::rng;
use plimsoll_protocol::draw::{Owner, Sample};

/// A file that has grown to this is written from the end of its first content again. Within what
/// every server and version can address.
const GROWN_KIB_MAX: u32 = 1_024 * 1_024;

/// The files a client appends to.
#[derive(Clone, Debug)]
pub(super) struct Appends {
    /// In the order of their groups.
    owned: Vec<Accessed>,
    /// Where in `owned` each group begins; the last is the end.
    starts: Vec<u32>,
    /// Size of each as far as this client's appends have gone.
    grown_kib: Vec<u32>,
}

/// One of the files a client appends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnFile(u32);

impl Appends {
    /// Every `clients`th of the `accessed` files.
    pub(super) fn new(owner: Owner, accessed: u32, groups: u32) -> Self {
        let every = (owner.client..accessed).step_by(owner.clients.max(1) as usize);
        let mut owned: Vec<Accessed> = every.map(Accessed).collect();
        owned.sort_by_key(|file| file.group(groups));
        let start = |group| owned.partition_point(|file| file.group(groups) < group) as u32;
        let starts = (0..=groups).map(start).collect();
        let grown_kib = owned.iter().map(|file| first_kib(*file)).collect();
        Self { owned, starts, grown_kib }
    }

    /// A file by the groups' weights. A client that owns none of a group takes one of the next.
    pub(super) fn pick(&self, popularity: &Popularity, sample: Sample) -> Option<OwnFile> {
        let groups = popularity.groups();
        let (first, count) = (groups.at(sample.quantile), groups.count());
        let mut ranges = (first..first + count).map(|group| {
            let group = group % count;
            (self.starts[group], self.starts[group + 1])
        });
        let (start, end) = ranges.find(|(start, end)| start < end)?;
        Some(OwnFile(start + rng::below(sample.bits, u64::from(end - start)) as u32))
    }

    /// Some file of the client.
    pub(super) fn any(&self) -> Option<Accessed> {
        self.owned.first().copied()
    }

    /// Takes the next `kib` at the end of a file: which it is, and their offset in bytes.
    pub(super) fn extend(&mut self, own: OwnFile, kib: u32) -> (Accessed, u64) {
        let file = self.owned[own.0 as usize];
        let grown = &mut self.grown_kib[own.0 as usize];
        if *grown + kib > GROWN_KIB_MAX {
            *grown = first_kib(file);
        }
        let offset = u64::from(*grown) * 1_024;
        *grown += kib;
        (file, offset)
    }
}

fn first_kib(file: Accessed) -> u32 {
    (file.bytes() / 1_024) as u32
}
