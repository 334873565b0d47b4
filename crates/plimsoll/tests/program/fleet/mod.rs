//! Runs whose load many agents make: the real program, its launchers, real servers and other
//! programs as checks.

mod access_log;
pub mod agents;
mod histograms;
mod losses;
mod reports;
mod same_work;
mod starts;
mod watched_server;
