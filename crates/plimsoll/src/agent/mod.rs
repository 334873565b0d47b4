//! What makes the load: workers of this program and the book that is kept of them. A local run has
//! it in its own process, a remote one in `plimsoll agent`.

mod greeting;
mod kept;
mod load;
mod merge;
mod serve;
mod tally;

pub(crate) use greeting::greeting;
pub(crate) use kept::KeptSlices;
pub(crate) use serve::serve;
pub(crate) use tally::{Heard, Tally};
