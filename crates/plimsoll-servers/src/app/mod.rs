//! The transaction server, and the calibrated one.

pub mod calibrated;
