//! Conducts a run: finds the targets, starts servers, climbs the ladder, keeps the bundle.

mod conditioning;
mod disclose;
mod disk_sets;
mod fleet_point;
mod jitter;
pub mod ladder;
mod parts;
pub mod placement;
mod point;
mod recorder;
mod run;
mod run_setup;
mod server_status;
mod servers;
pub mod setup;
pub mod sources;
mod watcher;

pub use run::{RunEnd, like, resume, run};
pub use run_setup::{RunRequest, cores_of_program};
