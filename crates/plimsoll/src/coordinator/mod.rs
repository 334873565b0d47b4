//! Conducts a run: finds the targets, starts servers, climbs the ladder, keeps the bundle.

pub mod clock;
pub mod dial;
mod disclose;
pub mod errand;
mod held;
mod jitter;
mod kept;
pub mod ladder;
mod merge;
mod outset;
pub mod placement;
mod point;
mod run;
mod server_status;
mod servers;
pub mod signals;
pub mod sources;
mod watcher;

pub use held::Held;
pub use merge::SecondView;
pub use outset::{RunRequest, cores_of_program};
pub use run::{RunEnd, resume, run};
