//! The ops of the mix and what their weights mean.
//!
//! The mix is defined by RPCs, and a read of sixteen blocks is sixteen RPCs. The weights of reads
//! and writes are therefore divided by their mean number of blocks, and each further block is a
//! follow-on op of the session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An op of the mix.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MixOp {
    /// LOOKUP.
    Lookup,
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// GETATTR.
    GetAttr,
    /// READLINK.
    ReadLink,
    /// READDIR.
    ReadDir,
    /// CREATE.
    Create,
    /// REMOVE.
    Remove,
    /// FSSTAT; in version 2 STATFS.
    FsStat,
    /// SETATTR.
    SetAttr,
    /// READDIRPLUS.
    ReadDirPlus,
    /// ACCESS.
    Access,
    /// COMMIT.
    Commit,
}

impl MixOp {
    /// All of them, in the order of the method's table.
    pub const ALL: [Self; 13] = [
        Self::Lookup,
        Self::Read,
        Self::Write,
        Self::GetAttr,
        Self::ReadLink,
        Self::ReadDir,
        Self::Create,
        Self::Remove,
        Self::FsStat,
        Self::SetAttr,
        Self::ReadDirPlus,
        Self::Access,
        Self::Commit,
    ];

    /// Its key in a suite and its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Read => "read",
            Self::Write => "write",
            Self::GetAttr => "getattr",
            Self::ReadLink => "readlink",
            Self::ReadDir => "readdir",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::FsStat => "fsstat",
            Self::SetAttr => "setattr",
            Self::ReadDirPlus => "readdirplus",
            Self::Access => "access",
            Self::Commit => "commit",
        }
    }

    /// The version has it.
    pub const fn is_in(self, version: NfsVersion) -> bool {
        match version {
            NfsVersion::V2 => !matches!(self, Self::ReadDirPlus | Self::Access | Self::Commit),
            NfsVersion::V3 => true,
        }
    }
}

/// Version of the NFS protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum NfsVersion {
    /// RFC 1094.
    V2,
    /// RFC 1813.
    V3,
}

impl NfsVersion {
    /// The version of that number.
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            2 => Some(Self::V2),
            3 => Some(Self::V3),
            _ => None,
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}

impl From<NfsVersion> for u8 {
    fn from(version: NfsVersion) -> Self {
        version.number()
    }
}

impl TryFrom<u8> for NfsVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        Self::new(number).ok_or_else(|| format!("NFS version {number} is not 2 or 3"))
    }
}

/// Blocks of a READ, by the place of their percentage in a suite.
pub(crate) const READ_BLOCKS: [u32; 5] = [1, 2, 4, 8, 16];
/// Blocks of a WRITE, by the place of their percentage in a suite; 0 is a part of one.
pub(crate) const WRITE_BLOCKS: [u32; 6] = [0, 1, 2, 4, 8, 16];

/// RPCs that a draw takes on average: one for each block, or part of one.
pub(crate) fn mean_rpcs(blocks: &[u32], percents: &[u8]) -> f64 {
    let rpcs = blocks.iter().map(|n| f64::from((*n).max(1)));
    rpcs.zip(percents).map(|(n, percent)| n * f64::from(*percent) / 100.0).sum()
}
