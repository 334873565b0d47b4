//! Plimsoll's data types, shared by every other crate. No clock, no socket.
//!
//! | module | content |
//! | --- | --- |
//! | [`units`] | nanoseconds, bytes, rates: a number never travels without its unit |
//! | [`suite`] | a benchmark method as data, read from TOML with every default explicit |
//! | [`target`] | the server under test, named by a URL |
//! | [`assignment`] | the coordinator's request to an agent for one load point |
//! | [`event`] | what an agent and a run report back; the journal is a list of these |
//! | [`counters`] | what a load point counts, each counter declared once |
//! | [`outcome`] | how one op ended |
//! | [`nonconformity`] | where replies differ from their specification and mean the same |
//! | [`consumers`] | where the processor time of a host and its server went, and who used a core |
//! | [`bundle`] | the directory that contains everything about a run |
//! | [`disclosure`] | what must be known to repeat the run |
//! | [`host`] | what a host is, its inventory, and facts that people state |
//! | [`calibrated`] | a server of known behaviour |
//! | [`certificate`] | how far the program's figures are from the truth on one host |
//! | [`reported`] | how a figure is written with its uncertainty interval |
//! | [`hint`] | signs in the figures that point at a known cause |
//! | [`late`] | ops of a recording that were sent late |
//! | [`limit`] | what limited a load point |
//! | [`load_shape`] | a load that changes during a load point |
//! | [`method`] | every parameter of a run and of its method, and the deviations |
//! | [`sentences`] | the sentences that analysis needs, which `plimsoll-report` writes |
//! | [`sessions`] | sessions that clients open and keep |
//! | [`shape`] | the shape of throughput over load |
//! | [`capacity`] | how much load stays within limits: the request, each try, the answer |
//! | [`published`] | a published report as it is shown, and two of them side by side |
//! | [`goodput`] | limits that a good op keeps, and how many were good |
//! | [`figure`] | mean, percentiles; the times within ops whose replies are streams |
//! | [`result`] | what analysis derives: `result.json`, format 1 |
//! | [`precision`] | how precise the figure of a load point is |
//! | [`until`] | the precision that load points are measured to |
//! | [`recovery`] | whether a server recovers from a pulse: the request, and what was observed |
//! | [`condition`] | the grammar of conditions on figures: `p99@4000 < 50ms` |
//! | [`comparison`] | groups of runs side by side |
//! | [`board`] | a table of results: runs and published systems, a line each |
//! | [`disks`] | what disks are for, and their use |
//! | [`page_cache`] | how often a server reads its disks instead of its memory |
//! | [`cost`] | what an op costs the hosts |
//! | [`prices`] | what systems cost, and figures that analysis derives from cost and result |
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
pub mod cost;
pub mod counters;
pub mod disclosure;
pub mod disks;
pub mod event;
pub mod experiment_file;
pub mod figure;
pub mod finding;
pub mod gate;
pub mod goodput;
pub mod hint;
pub mod host;
pub mod late;
pub mod limit;
pub mod load_shape;
pub mod method;
pub mod monitored;
mod named;
pub mod nonconformity;
mod open_end;
pub mod outcome;
pub mod page_cache;
pub mod precision;
pub mod prices;
pub mod published;
pub mod recovery;
pub mod reported;
pub mod result;
pub mod sentences;
pub mod sessions;
pub mod shape;
pub mod size;
pub mod suite;
pub mod target;
pub mod units;
pub mod until;

// Older paths of the same types.
pub use consumers as server_profile;
pub use host as inventory;
