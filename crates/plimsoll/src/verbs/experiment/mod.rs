//! Experiments: one suite over the levels of factors, repeated, in an order that drift hits evenly.
//! `plimsoll experiment`, `versus` and `scale` all come here.
//!
//! | module | what it does |
//! | --- | --- |
//! | `perform` | `plimsoll experiment` itself |
//! | `conduct` | an experiment as a verb asks for it, from the first run to the page |
//! | `design` | factors, cells, and the order of runs |
//! | `file` | reads factors and options |
//! | `cells` | makes the request of each cell's runs |
//! | `series` | sets levels, makes the runs, keeps the journal |
//! | `hand` | asks the user to set a level |
//! | `records` | the journal, `experiment.jsonl` |
//! | `bench` | makes a run on real servers |
//! | `outcome` | the comparison of the cells |
//! | `joined` | cells of bundles that were made elsewhere |

mod bench;
mod cells;
mod conduct;
pub(crate) mod design;
pub(crate) mod file;
mod hand;
mod joined;
mod outcome;
mod perform;
mod records;
mod series;
#[cfg(test)]
mod tests;

pub(crate) use cells::{refuse_ladders, requests};
pub(crate) use conduct::{Asked, Begin, refuse_occupied, split_conditions};
pub(crate) use perform::perform;
pub(crate) use records::started_in;
