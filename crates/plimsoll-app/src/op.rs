//! One transaction, as script and session see it; and the data on the server that it may touch.

use plimsoll_engine::rng;
use plimsoll_model::outcome::OpKind;
use plimsoll_protocol::content::ContentTable;

use super::wire::RequestType;

plimsoll_model::named! {
    fn name;
    /// Which kind of transaction; its number is its index in the op names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AppKind {
        /// A small request, a small reply.
        ClientServer = "client/server",
        /// Work in the server's memory.
        Processor = "processor",
        /// A large reply.
        ServerClient = "server/client",
        /// A block of the segment, anywhere.
        RandomRead = "random read",
        /// The same, written.
        RandomWrite = "random write",
        /// The block after the one read last.
        SequentialRead = "sequential read",
        /// The block after the one written last.
        SequentialWrite = "sequential write",
        /// A block after the one appended last; the server keeps the offset.
        Append = "append",
    }
}

impl AppKind {
    /// How it counts in the statistics.
    pub const fn op_kind(self) -> OpKind {
        OpKind(self as u8)
    }

    /// What goes over the wire for it.
    pub const fn request_type(self) -> RequestType {
        match self {
            Self::ClientServer => RequestType::ClientServer,
            Self::Processor => RequestType::Processor,
            Self::ServerClient => RequestType::ServerClient,
            Self::RandomRead | Self::SequentialRead => RequestType::Read,
            Self::RandomWrite | Self::SequentialWrite => RequestType::Write,
            Self::Append => RequestType::Append,
        }
    }

    /// The client needs a segment on the server for it.
    pub const fn needs_segment(self) -> bool {
        matches!(self.request_type(), RequestType::Read | RequestType::Write | RequestType::Append)
    }

    /// It needs a segment that is filled.
    pub const fn needs_content(self) -> bool {
        matches!(self.request_type(), RequestType::Read | RequestType::Write)
    }
}

/// One transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppOp {
    /// Which kind.
    pub kind: AppKind,
    /// Seed of its checksum: no answer from memory has the right one.
    pub seed: u32,
    /// Which block of the segment, for the random kinds. The others go on where the client is.
    pub block: u64,
    /// Compare the body of the reply if it is known in advance.
    pub compare: bool,
}

/// Blocks of the smallest segment; with fewer a random block would hardly be one.
const BLOCKS_MIN: u64 = 16;
/// Keeps the keys of segments apart from those of other files.
const STREAM: u64 = 0x0061_7070;
const MIB: f64 = 1_048_576.0;

/// Size and blocks of every client's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    block_bytes: u32,
    blocks: u64,
    blocks_used: u64,
}

impl Segment {
    /// `mib` times `scale` MiB in whole blocks, of which the first `access_ratio` is used.
    pub fn new(mib: f64, scale: f64, block_bytes: u32, access_ratio: f64) -> Self {
        let blocks = (mib * scale * MIB / f64::from(block_bytes)).round() as u64;
        let blocks = blocks.max(BLOCKS_MIN);
        let blocks_used = (blocks as f64 * access_ratio).round() as u64;
        Self { block_bytes, blocks, blocks_used: blocks_used.clamp(1, blocks) }
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.blocks * u64::from(self.block_bytes)
    }

    /// Size of a block.
    pub fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    /// Blocks that are read and written.
    pub fn blocks_used(&self) -> u64 {
        self.blocks_used
    }

    /// The same bytes in the largest blocks up to `bytes_max` that divide them, all used.
    pub fn in_blocks_of(&self, bytes_max: u32) -> Self {
        let most = u64::from(bytes_max / self.block_bytes);
        let joined = (1..=most).rev().find(|n| self.blocks.is_multiple_of(*n)).unwrap_or(1);
        let blocks = self.blocks / joined;
        Self { block_bytes: self.block_bytes * joined as u32, blocks, blocks_used: blocks }
    }

    /// Where the block begins; indexes beyond the last block wrap around.
    pub fn offset(&self, block: u64) -> u64 {
        block % self.blocks_used * u64::from(self.block_bytes)
    }

    /// Where a server writes the next block of a connection that has appended `appended` blocks.
    pub fn append_offset(&self, appended: u64) -> u64 {
        appended % self.blocks * u64::from(self.block_bytes)
    }
}

/// The key of a client's content in the table.
pub(crate) fn content_key(table: &ContentTable, client: u32) -> u64 {
    rng::key(&[table.seed(), STREAM, u64::from(client)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_kind_is_its_number() {
        for (at, kind) in AppKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.op_kind(), OpKind(at as u8));
        }
    }

    #[test]
    fn a_segment_is_whole_blocks_and_never_too_few() {
        let whole = Segment::new(16.0, 1.0, 8_192, 1.0);
        assert_eq!((whole.bytes(), whole.blocks_used()), (16 << 20, 2_048));
        let scaled = Segment::new(16.0, 1.0 / 64.0, 8_192, 0.5);
        assert_eq!((scaled.bytes(), scaled.blocks_used()), (256 << 10, 16));
        let tiny = Segment::new(0.1, 0.001, 8_192, 0.001);
        assert_eq!((tiny.bytes(), tiny.blocks_used()), (16 * 8_192, 1));
        assert_eq!(Segment::new(1.0, 1.0, 5_000, 1.0).bytes() % 5_000, 0);
    }

    #[test]
    fn the_same_bytes_in_larger_blocks_leave_none_out() {
        let large = |block_bytes, blocks| {
            let segment = Segment { block_bytes, blocks, blocks_used: 9 };
            let large = segment.in_blocks_of(65_536);
            assert_eq!(large.bytes(), segment.bytes());
            (large.block_bytes(), large.blocks_used())
        };
        assert_eq!(large(8_192, 2_048), (65_536, 256));
        assert_eq!(large(5_000, 630), (50_000, 63));
        assert_eq!(large(512, 131), (512, 131));
        assert_eq!(large(65_536, 16), (65_536, 16));
    }

    #[test]
    fn blocks_begin_anew_after_the_last_one() {
        let segment = Segment::new(16.0, 1.0 / 64.0, 8_192, 0.5);
        assert_eq!(segment.offset(15), 15 * 8_192);
        assert_eq!(segment.offset(16), 0);
        assert_eq!(segment.append_offset(31), 31 * 8_192);
        assert_eq!(segment.append_offset(32), 0);
    }
}
