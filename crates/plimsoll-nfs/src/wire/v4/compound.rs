//! Requests and replies as lists of operations. RFC 8881 §16.2

use super::{MINOR_VERSION, OPAQUE_BYTES_MAX, Operation, Status4};
use crate::wire::xdr::{Decode, Encode, XdrError, XdrIn, encode_opaque};

/// Most operations of a compound that are read.
pub const OPERATIONS_MAX: u32 = 1_024;

/// Writes a compound, or the results of one, operation by operation.
#[derive(Debug)]
pub struct CompoundWriter<'o> {
    out: &'o mut Vec<u8>,
    count_at: usize,
    count: u32,
}

impl<'o> CompoundWriter<'o> {
    /// Begins the arguments of a COMPOUND, without a tag.
    #[inline]
    pub fn request(out: &'o mut Vec<u8>) -> Self {
        let head = [0, MINOR_VERSION].map(u32::to_be_bytes);
        out.extend_from_slice(head.as_flattened());
        Self::list(out)
    }

    /// Begins the list of operations that follows the head.
    #[inline]
    pub(super) fn list(out: &'o mut Vec<u8>) -> Self {
        let count_at = out.len();
        out.extend_from_slice(&[0; 4]);
        Self { out, count_at, count: 0 }
    }

    /// Adds an operation. Returns this, for the next one.
    #[inline]
    pub fn op(mut self, operation: Operation, arguments: &impl Encode) -> Self {
        self.count += 1;
        operation.number().encode(self.out);
        arguments.encode(self.out);
        self
    }

    /// The list is complete.
    #[inline]
    pub fn finish(self) {
        let Self { out, count_at, count } = self;
        out[count_at..count_at + 4].copy_from_slice(&count.to_be_bytes());
    }
}

/// Head of a compound, as a server sees it; the operations follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompoundHead<'a> {
    /// Any text; the reply has it again.
    pub tag: &'a [u8],
    /// Minor version.
    pub minor_version: u32,
    /// Operations that follow.
    pub operations: u32,
}

impl<'a> Decode<'a> for CompoundHead<'a> {
    fn decode(input: &mut XdrIn<'a>) -> Result<Self, XdrError> {
        let tag = input.opaque(OPAQUE_BYTES_MAX)?;
        Ok(Self { tag, minor_version: input.u32()?, operations: input.u32()? })
    }
}

impl Encode for CompoundHead<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_opaque(self.tag, out);
        self.minor_version.encode(out);
        self.operations.encode(out);
    }
}

/// Reads the reply to a compound: its head, then the operations in their order.
#[derive(Clone, Copy, Debug)]
pub struct CompoundReply<'a> {
    /// Status of the operation that was executed last.
    pub status: Status4,
    /// Results that follow.
    pub results: u32,
    /// The results that have not been read.
    pub input: XdrIn<'a>,
}

impl<'a> CompoundReply<'a> {
    /// Reads the head.
    #[inline]
    pub fn read(mut input: XdrIn<'a>) -> Result<Self, XdrError> {
        let status = Status4::decode(&mut input)?;
        input.opaque(OPAQUE_BYTES_MAX)?;
        let results = input.u32()?;
        if results > OPERATIONS_MAX {
            return Err(XdrError::TooLong { bytes: results, max: OPERATIONS_MAX });
        }
        Ok(Self { status, results, input })
    }

    /// `operation` is the next whose result there is.
    #[inline]
    pub fn is_next(&self, operation: Operation) -> bool {
        self.results > 0 && self.input.rest().starts_with(&operation.number().to_be_bytes())
    }

    /// Begins to read the result of `operation`, which is next: its status. What follows is its
    /// value, if that is OK. A reply that ends before this operation answers with the status of the
    /// whole.
    #[inline]
    pub fn next(&mut self, operation: Operation) -> Result<Status4, XdrError> {
        let Some(left) = self.results.checked_sub(1) else {
            return match self.status {
                Status4::OK => Err(XdrError::Truncated),
                failed => Ok(failed),
            };
        };
        self.results = left;
        match self.input.u32()? {
            number if number == operation.number() => Status4::decode(&mut self.input),
            // What a server answers that does not know the number.
            number if number == Operation::Illegal.number() => Status4::decode(&mut self.input),
            value => Err(XdrError::Value { what: "the operations of the call", value }),
        }
    }
}
