//! From a bundle to its result. Pure functions: no I/O, no clock; the same bundle gives a
//! byte-identical result.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`Analysis`] | the whole result of a run, record by record |
//! | [`raw`] | what analysis reads: the times of a load point, and what the journal says |
//! | [`times`] | merged histograms, and what a sample of a given size can say |
//! | [`validity`] | can the figures be trusted; the rules are explained in `docs/validity.md` |
//! | [`overall`] | overall response time, by both published definitions |
//! | [`curve`] | the result of a curve measured elsewhere |
//! | [`compare`] | groups of runs side by side, with intervals, or why not |
//! | [`board`] | the lines of a table of results |
//! | [`experiment`] | what the factors of an experiment do, with intervals |
//! | `cost` | what an op cost the hosts that were watched |
//! | `generation` | what a load point generated, and how many of its ops were good ones |
//! | `tokens` | output tokens a second, by the answers and by the server's counter |
//! | [`score`] | the score of a mix, and of a ladder of mixes |
//! | `sessions` | what came of the sessions that clients opened and kept |
//! | [`shape`] | asymptotes, knee and peak of throughput over load, and what it is beyond them |
//! | `endpoints` | a ladder of streams by the rules of MLPerf Endpoints |
//! | [`climb`] | the way of every search to the highest load that holds |
//! | [`search`] | which load to try next when the peak is unknown |
//! | [`capacity`] | which load to try next when the capacity within limits is unknown, and the answer |
//! | [`size`] | how big a server must be for a load |
//! | [`price`] | price per unit of peak and capacity, both ways; what one item moves |
//! | [`published`] | transcribed results of the source reports |
//!
//! Histograms merge; percentiles are never averaged.

#![warn(unreachable_pub)]

mod agents;
mod analyse;
mod beside;
mod blocks;
pub mod board;
mod bursts;
pub mod capacity;
pub mod climb;
pub mod compare;
mod consumers;
mod cost;
pub mod curve;
mod endpoints;
pub mod experiment;
mod gate;
mod generation;
mod health;
mod hints;
mod limit;
mod metric;
pub mod overall;
mod point;
pub mod price;
pub mod published;
pub mod raw;
mod sampling;
pub mod score;
pub mod search;
mod sessions;
pub mod shape;
pub mod size;
mod stated;
mod summary;
#[cfg(test)]
mod testing;
mod timeline;
pub mod times;
mod tokens;
pub mod validity;

pub use analyse::{Analysis, JudgedPoint, not_started};
pub use raw::PointTimes;
#[cfg(test)]
use testing::analyse;
