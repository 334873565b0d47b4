//! Conducts a run: finds the targets, starts servers, climbs the ladder, keeps the bundle.

pub mod clock;
pub mod dial;
mod disclose;
pub mod setup;
mod held;
mod jitter;
mod kept;
pub mod ladder;
mod merge;
mod run_setup;
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
pub use run_setup::{RunRequest, cores_of_program};
pub use run::{RunEnd, resume, run};
