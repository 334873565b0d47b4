//! Conducts a run: finds the targets, starts servers, climbs the ladder, keeps the bundle.

pub mod clock;
mod disclose;
mod fetch;
mod ladder;
mod merge;
mod outset;
mod placement;
mod point;
mod reach;
mod run;
mod servers;
pub mod signals;
mod watcher;

pub use merge::SecondView;
pub use outset::RunRequest;
pub use run::{RunEnd, resume, run};
