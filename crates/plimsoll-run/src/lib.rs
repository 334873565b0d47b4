//! Makes a run: starts its servers, has load made here or by agents, and keeps its bundle.
//!
//! | module | content |
//! | --- | --- |
//! | [`coordinator`] | conducts a run: set-up, load points, search, bundle; [`mod@derive`] derives its result |
//! | [`agent`] | makes the load, in this process or as `plimsoll agent` |
//! | [`fleet`] | the agents of a run: their processes, cores and orders |
//! | [`observers`] | who watches a run live; [`RunProgress`] is for the user who waits |
//! | [`protocols`] | the protocols of the program; [`secrets`] and [`load_file`] are of some of them |
//! | [`host_inventory`], [`systems`], [`certificates`] | what a disclosure has of hosts |
//! | [`clock`], [`dial`], [`level_commands`], [`text_file`] | time, sockets, commands and files |
//!
//! The program has the flags, the terminal and the exit codes.

#![warn(unreachable_pub)]

pub mod agent;
pub mod certificates;
pub mod clock;
pub mod coordinator;
pub mod derive;
pub mod dial;
mod failure;
pub mod fleet;
pub mod host_inventory;
pub mod level_commands;
pub mod load_file;
pub mod observers;
mod own_addresses;
mod progress;
pub mod protocols;
pub mod secrets;
mod signals;
pub mod systems;
pub mod testbed;
pub mod text_file;

pub use failure::{Failure, FailureKind};
pub use progress::{LoadUnit, RunProgress};
pub use signals::Signals;
