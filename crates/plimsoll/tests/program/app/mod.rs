//! Application transactions from the command line to the bundle: on a server that is not ours, and
//! on bad days.

mod bad_days;
mod flips;
mod python;
mod watched;
