//! The words of Plimsoll as types. No clock, no socket; every other crate speaks in these.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`units`] | nanoseconds, bytes, rates: a number never travels without its unit |
//! | [`suite`] | a benchmark method as data, read from TOML with every default explicit |
//! | [`target`] | the server under test, named by a URL |
//! | [`assignment`] | what the coordinator asks of an agent for one load point |
//! | [`event`] | what an agent and a run report back; the journal is a list of these |
//! | [`counters`] | what a load point counts, each counter declared once |
//! | [`outcome`] | how one op ended |
//! | [`nonconformity`] | where replies differ from their specification and mean the same |
//! | [`consumers`] | where the processor time of a host went, and its interrupts |
//! | [`core_user`] | who used a core that a worker or the server wanted |
//! | [`bundle`] | the directory that holds everything about a run |
//! | [`disclosure`] | what must be known to repeat the run |
//! | [`host`] | what a host is |
//! | [`inventory`] | what a host says of itself, and what people state beside it |
//! | [`calibrated`] | a server of known behaviour |
//! | [`certificate`] | how far the program's figures are from the truth on one host |
//! | [`stated`] | how a figure is written beside its uncertainty interval |
//! | [`hint`] | signs in the figures that point at a known cause |
//! | [`limit`] | what held a load point back |
//! | [`method`] | every parameter of a run beside the method's, and what departs from it |
//! | [`server_profile`] | the functions a server's processor time went to |
//! | [`sessions`] | sessions that clients open and keep |
//! | [`shape`] | the shape of throughput over load |
//! | [`capacity`] | how much load stays within limits: what was asked, each try, the answer |
//! | [`published`] | a report of old as it is shown, and two of them side by side |
//! | [`goodput`] | limits that a good op keeps, and how many were good |
//! | [`figure`] | mean, percentiles; the times within ops whose replies are streams |
//! | [`result`] | what analysis derives: `result.json`, format 1 |
//! | [`condition`] | the grammar of conditions on figures: `p99@4000 < 50ms` |
//! | [`comparison`] | groups of runs side by side |
//! | [`board`] | a table of results: runs and published systems, a line each |
//! | [`cost`] | what an op costs the hosts |
//! | [`prices`] | what systems cost, and what analysis makes of it beside a result |
//! | [`size`] | how big a server must be for a load |

#![warn(unreachable_pub)]

pub mod assignment;
pub mod board;
pub mod bundle;
pub mod calibrated;
pub mod capacity;
pub mod certificate;
pub mod comparison;
pub mod condition;
pub mod consumers;
pub mod core_user;
pub mod cost;
pub mod counters;
pub mod disclosure;
pub mod event;
pub mod experiment_file;
pub mod figure;
pub mod finding;
pub mod gate;
pub mod goodput;
pub mod hint;
pub mod host;
pub mod inventory;
pub mod limit;
pub mod method;
mod named;
pub mod nonconformity;
pub mod outcome;
pub mod prices;
pub mod published;
pub mod result;
pub mod server_profile;
pub mod sessions;
pub mod shape;
pub mod size;
pub mod stated;
pub mod suite;
pub mod target;
pub mod units;
