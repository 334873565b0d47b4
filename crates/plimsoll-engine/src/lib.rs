//! Clock, pacer, worker loop, driver, recorder, phases, events. Contains no protocol, prints
//! nothing.

#![warn(unreachable_pub)]

pub mod agent;
pub mod clock;
pub mod driver;
mod flight;
pub mod fresh;
pub mod interface;
pub mod jitter;
pub mod pacer;
pub mod recorder;
pub mod rng;
mod signs;
pub mod summed_rate;
pub mod worker;
pub mod workload;
