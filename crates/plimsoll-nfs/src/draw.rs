//! What NFS scripts draw.

use plimsoll_protocol::draw::Stream;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Which op.
    Kind,
    /// Blocks of a READ.
    ReadBlocks,
    /// Blocks of a WRITE.
    WriteBlocks,
    /// Whether a WRITE appends.
    Append,
    /// File of an op without data.
    Named,
    /// File of a READ, by the place of its blocks in a suite.
    Read(u8),
    /// File of a WRITE over what is there, likewise.
    Overwrite(u8),
    /// File of a WRITE at the end.
    AppendTo,
    /// A directory or a link.
    Place,
    /// Bytes of a WRITE of less than a block.
    PartOfBlock,
}

impl From<Purpose> for Stream {
    fn from(purpose: Purpose) -> Self {
        use Purpose as P;
        Self(match purpose {
            P::Kind => 0,
            P::ReadBlocks => 1,
            P::WriteBlocks => 2,
            P::Append => 3,
            P::Named => 4,
            P::AppendTo => 5,
            P::Place => 6,
            P::PartOfBlock => 7,
            P::Read(place) => 0x100 + u64::from(place),
            P::Overwrite(place) => 0x200 + u64::from(place),
        })
    }
}
