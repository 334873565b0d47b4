//! The servers that Plimsoll starts itself: the reference servers (`plimsoll serve`, `builtin:`)
//! and real servers with a temporary configuration (`managed:NAME`). Nothing here prints.

pub mod app;
mod builtin;
mod clock;
mod confine;
pub mod cores;
pub mod delay;
mod error;
pub mod listener;
pub mod managed;
pub mod nfs;
mod process;
pub mod smb;
mod stop;
pub mod web;

pub use builtin::{
    ANNOUNCEMENT, BuiltinApp, BuiltinNfs, BuiltinSmb, BuiltinWeb, PASSWORD_VARIABLE,
};
pub use confine::{Confined, Confinement};
pub use error::ServerError;
pub use process::{Login, ServerProcess, ServerState, Software};
pub use stop::Stop;
