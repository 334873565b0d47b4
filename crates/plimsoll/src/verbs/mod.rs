//! One file per verb of the command line.

pub mod analyse;
pub mod calibrate;
pub mod capacity;
pub mod check;
pub mod clean;
pub mod compare;
pub mod demo;
pub mod inventory;
pub mod prepare;
pub mod published;
pub mod report;
pub mod resume;
pub mod run;
pub mod scale;
pub mod serve;
pub mod suites;
pub mod verify;
