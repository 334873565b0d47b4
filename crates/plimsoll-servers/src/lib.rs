//! Servers in processes of their own: started, pinned, confined, watched, stopped; who listens on an
//! address of this host; and what reference servers have in common. Knows no protocol. Nothing here
//! prints.

#![warn(unreachable_pub)]

mod builtin;
pub mod clock;
pub mod configuration;
mod confine;
pub mod cores;
pub mod delay;
pub mod descriptors;
mod error;
pub mod listener;
pub mod log;
pub mod memory;
pub mod ports;
pub mod process;
pub mod programs;
pub mod software;
pub mod station;
mod stop;
mod trust;
pub mod work;

pub use builtin::{ANNOUNCEMENT, Builtin, PASSWORD_VARIABLE};
pub use confine::{Confined, Confinement};
pub use error::ServerError;
pub use process::{Login, ServerProcess, ServerState, Software};
pub use stop::Stop;
