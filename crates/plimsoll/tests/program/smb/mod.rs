//! SMB from the command line to the bundle: on a real Samba, on the reference server where none is
//! needed, and on bad days.

mod foreign;
mod ladder;
mod losses;
mod refusals;
mod room;
mod runs;
mod setup;
mod suites;
