//! What makes the load: workers of this program and the book that is kept of them. A local run has
//! it in its own process, a remote one in `plimsoll agent`.

mod kept;
mod merge;
mod tally;

pub(crate) use kept::KeptSlices;
pub(crate) use tally::{Heard, Tally};
