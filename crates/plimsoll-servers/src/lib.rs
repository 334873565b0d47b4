//! Servers in processes of their own: started, pinned, confined, watched, stopped; who listens on
//! an address of this host; and what reference servers have in common. Knows no protocol. Nothing
//! here prints.

#![warn(unreachable_pub)]

mod bounded;
mod builtin;
pub mod clock;
mod confine;
pub mod cores;
pub mod delay;
mod error;
mod link;
pub mod listener;
pub mod log;
pub mod memory;
pub mod process;
pub mod programs;
pub mod queue;
pub mod software;
pub mod timed;
pub mod web;

pub use bounded::Bounded;
pub use builtin::{ANNOUNCEMENT, Builtin, PASSWORD_VARIABLE, Stop, listen, raise_descriptor_limit};
pub use confine::{Confined, Confinement};
pub use error::ServerError;
pub use link::ServerLink;
pub use process::{Login, ServerProcess, ServerState, Software};
