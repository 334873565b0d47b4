//! One transaction, as script and session see it.

use plimsoll_model::outcome::OpKind;

use super::wire::RequestType;

/// Which kind of transaction; its number is its place among the op names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppKind {
    /// A small request, a small reply.
    ClientServer,
    /// Work in the server's memory.
    Processor,
    /// A large reply.
    ServerClient,
    /// A block of the segment, anywhere.
    RandomRead,
    /// The same, written.
    RandomWrite,
    /// The block after the one read last.
    SequentialRead,
    /// The block after the one written last.
    SequentialWrite,
    /// A block after the one appended last; the server keeps the place.
    Append,
}

impl AppKind {
    /// All, in the order of their numbers. The first five are the method's.
    pub const ALL: [Self; 8] = [
        Self::ClientServer,
        Self::Processor,
        Self::ServerClient,
        Self::RandomRead,
        Self::RandomWrite,
        Self::SequentialRead,
        Self::SequentialWrite,
        Self::Append,
    ];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClientServer => "client/server",
            Self::Processor => "processor",
            Self::ServerClient => "server/client",
            Self::RandomRead => "random read",
            Self::RandomWrite => "random write",
            Self::SequentialRead => "sequential read",
            Self::SequentialWrite => "sequential write",
            Self::Append => "append",
        }
    }

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
    /// Compare the body of the reply, where it is known beforehand.
    pub compare: bool,
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
}
