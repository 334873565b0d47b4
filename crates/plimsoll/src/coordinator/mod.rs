//! Conducts a run: finds the targets, starts servers, climbs the ladder, keeps the bundle.

mod app_status;
pub mod clock;
pub mod dial;
mod disclose;
pub mod errand;
mod fetch;
mod held;
mod hosting;
mod jitter;
mod kept;
pub mod ladder;
mod merge;
mod outset;
pub mod placement;
mod point;
pub mod reach;
mod run;
mod servers;
pub mod signals;
pub mod sources;
mod watcher;

pub use held::Held;
pub use merge::SecondView;
pub use outset::{RunRequest, cores_of_program};
pub use run::{RunEnd, resume, run};
