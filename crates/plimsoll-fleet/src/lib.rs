//! Many agents under one controller. An agent is `plimsoll agent`, a child process that speaks on
//! its standard input and output; a launcher that people already have (ssh, Slurm, Kubernetes, any
//! command) starts it. Plimsoll itself does not listen on the network.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`message`] | messages between controller and agent |
//! | [`frame`] | messages as bytes |
//! | [`clock`] | the offset between two monotonic clocks, with its bound |
//! | [`pulse`] | how often both sides show that they live, and how long one may be silent |
//! | [`controller`], [`agent`] | the two state machines; time is passed in, nothing waits |
//! | [`launcher`] | `--agents`: which program starts an agent, and its child process |

#![warn(unreachable_pub)]

pub mod agent;
pub mod clock;
pub mod controller;
pub mod frame;
pub mod launcher;
pub mod message;
pub mod pulse;
#[cfg(test)]
mod testing;
