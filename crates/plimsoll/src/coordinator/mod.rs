//! Conducts a run: finds the targets, starts servers, climbs the ladder, keeps the bundle.

mod book;
mod conditioning;
mod disclose;
mod fleet_point;
mod jitter;
pub(crate) mod ladder;
mod parts;
pub(crate) mod placement;
mod point;
mod run;
mod run_setup;
mod server_status;
mod servers;
pub(crate) mod setup;
pub(crate) mod sources;
mod watcher;

pub(crate) use run::{RunEnd, like, resume, run};
pub(crate) use run_setup::{RunRequest, cores_of_program};
