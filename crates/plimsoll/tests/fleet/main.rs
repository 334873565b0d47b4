//! Runs whose load many agents make: the real program, its launchers, real servers and other
//! programs as judges.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod access_log;
mod agents;
mod histograms;
mod losses;
mod reports;
mod same_work;
mod starts;
