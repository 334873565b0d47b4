//! Bytes behind the end of a reply, in the words of all protocols.

use std::fmt;

/// So many bytes came that belong to no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurplusBytes(pub usize);

impl fmt::Display for SurplusBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = if self.0 == 1 { "byte" } else { "bytes" };
        write!(f, "the server sent {} {bytes} behind the reply", self.0)
    }
}
