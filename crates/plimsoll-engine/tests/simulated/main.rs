//! The worker on a simulated clock and target, where every time is known exactly. One program for
//! all of it: it is linked once.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod accounts;
mod leaving;
mod pipelines;
mod preceded;
mod schedule;
mod sessions;
mod shapes;
mod support;
