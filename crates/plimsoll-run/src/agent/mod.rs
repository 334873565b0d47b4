//! Makes the load: the workers of this program and the record of their results. A local run has it
//! in its own process, a remote one in `plimsoll agent`.

mod collector;
mod load;
mod serve;
mod workers;

pub use serve::{greeting, serve};
pub(crate) use workers::{Next, PointEvent, WorkerEvents, cannot_keep, make_load};
