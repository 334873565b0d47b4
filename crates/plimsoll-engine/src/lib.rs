//! Clock, pacer, worker loop, driver, recorder, phases, events. Knows no protocol, prints nothing.

#![warn(unreachable_pub)]

pub mod agent;
pub mod clock;
pub mod driver;
mod due;
pub mod fresh;
pub mod jitter;
pub mod pacer;
pub mod recorder;
pub mod rng;
pub mod seam;
mod signs;
mod ticks;
pub mod worker;
pub mod workload;
