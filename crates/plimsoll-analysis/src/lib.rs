//! From a bundle to its result. Pure functions: no I/O, no clock; the same bundle gives a
//! byte-identical result.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`Analysis`] | the whole result of a run, record by record |
//! | [`raw`] | inputs of the analysis: the times of a load point, and the records of the journal |
//! | [`times`] | merged histograms, and which figures a sample of a given size supports |
//! | [`validity`] | can the figures be trusted; the rules are explained in `docs/validity.md` |
//! | [`curve`] | the result of a curve measured elsewhere; overall response time, by both published definitions |
//! | [`compare`] | groups of runs side by side, with intervals, or why not |
//! | [`board`] | the lines of a table of results |
//! | [`experiment`] | the effects of the factors of an experiment, with intervals |
//! | `point` | one load point: figures, charts, sessions, processor time |
//! | `cost` | costs of an op on the monitored hosts |
//! | `disks` | use of disks by role |
//! | [`cache_model`] | the hit ratio of a cache for a known access pattern |
//! | [`precision`] | how long a load point is measured until its figure is precise |
//! | `page_cache` | how often a server read its disks instead of its memory |
//! | `uncertainty` | the intervals of figures, from `standard_error`s of slices of the window |
//! | `generation` | output of a load point, and how many of its ops were good ones |
//! | `recovery` | whether the server recovered from a pulse |
//! | [`score`] | the score of a mix, and of a ladder of mixes |
//! | [`shape`] | asymptotes, knee and peak of throughput over load, and predictions beyond them |
//! | `endpoints` | a ladder of streams by the rules of MLPerf Endpoints |
//! | [`climb`] | the climb of every search to the highest load that holds |
//! | [`search`] | which load to try next when the peak is unknown |
//! | [`capacity`] | which load to try next when the capacity is unknown, and the answer |
//! | [`size`] | how big a server must be for a load |
//! | [`price`] | price per unit of peak and capacity, in both directions; the effect of one item |
//! | [`published`] | transcribed results of the source reports |
//!
//! Histograms merge; percentiles are never averaged.

#![warn(unreachable_pub)]

mod analyse;
pub mod board;
pub mod cache_model;
pub mod capacity;
pub mod climb;
mod coarse;
pub mod compare;
mod cost;
pub mod curve;
mod disks;
mod endpoints;
mod equations;
pub mod experiment;
mod gate;
mod generation;
mod health;
mod hints;
mod host_roles;
mod journeys;
mod limit;
mod page_cache;
mod point;
pub mod precision;
pub mod price;
pub mod published;
pub mod raw;
mod recovery;
mod sampling;
pub mod score;
pub mod search;
pub mod shape;
pub mod size;
mod standard_error;
mod summary;
#[cfg(test)]
mod testing;
pub mod times;
mod uncertainty;
pub mod validity;

pub use analyse::{Analysis, EvaluatedPoint, not_started};
pub use raw::PointTimes;
pub use sampling::{binomial_at_most, normal_above};
#[cfg(test)]
use testing::analyse;
