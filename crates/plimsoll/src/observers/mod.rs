//! Who looks on while a run goes.
//!
//! An observer never holds a run up: what it is told it hands to a thread of its own, through a
//! queue that is bounded, and drops what does not fit. That it failed is a warning at the end of
//! the run, never a failure of the run. Its threads keep off the workers' cores as all others of
//! this program do (`coordinator/point.rs`).

mod live;
mod otlp;

use std::net::SocketAddr;
use std::path::Path;

use plimsoll_analysis::PointTimes;
use plimsoll_fleet::message::SecondTotals;
use plimsoll_model::assignment::PointId;
use plimsoll_model::event::{Phase, PointRecord};
use plimsoll_model::outcome::OpNames;
use plimsoll_model::result::{PointResult, RunResult};

pub(crate) use otlp::ExportUrl;

use crate::exit::Failure;

#[derive(Clone, Debug, Default)]
pub(crate) struct ObserverWishes {
    /// Where a page shows the run while it goes: an address of loopback.
    pub live: Option<SocketAddr>,
    /// Collectors that seconds and finished load points go to.
    pub exports: Vec<ExportUrl>,
}

/// One full second of a load point, merged over workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SecondView {
    /// Counted from the start of the load point.
    pub second: u32,
    pub phase: Phase,
    /// When it began, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    pub end_unix_ns: u64,
    /// Finished without error.
    pub ops_per_s: f64,
    /// Application bytes moved, both ways.
    pub bytes_per_s: f64,
    /// Chunks of streamed replies; zero where replies are none.
    pub chunks_per_s: f64,
    pub errors: u64,
    pub response_p50_ns: Option<u64>,
    /// 99th percentile of response.
    pub response_p99_ns: Option<u64>,
    pub generator_busy_ratio: f64,
}

impl SecondView {
    /// Of a load point that began at that time.
    pub(crate) fn of(totals: &SecondTotals, started_unix_ns: u64) -> Self {
        let seconds = totals.length.as_secs_f64();
        let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Self {
            second: totals.second,
            phase: totals.phase,
            start_unix_ns: started_unix_ns.saturating_add(totals.start.0),
            end_unix_ns: started_unix_ns.saturating_add(totals.end.0),
            ops_per_s: per_second(totals.done.saturating_sub(totals.errors)),
            bytes_per_s: per_second(totals.bytes),
            chunks_per_s: per_second(totals.chunks),
            errors: totals.errors,
            response_p50_ns: totals.response.quantile_ns(0.5),
            response_p99_ns: totals.response.quantile_ns(0.99),
            generator_busy_ratio: totals.busy_ratio_max,
        }
    }
}

/// A load point that is about to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginningPoint<'a> {
    /// Its place in the run, for a person.
    pub title: &'a str,
    pub point: PointId,
    /// The load asked for, in the unit of the run's axis.
    pub requested: f64,
}

/// A load point that is in the bundle.
pub(crate) struct FinishedPoint<'a> {
    pub record: &'a PointRecord,
    pub times: &'a PointTimes,
    /// Names of the ops, in the order of the histograms.
    pub op_names: &'a OpNames,
    /// As the report will show it.
    pub point: &'a PointResult,
    /// The run as far as it has come.
    pub run: &'a RunResult,
}

pub(crate) trait Observer: Send {
    /// What the user is to know before the run.
    fn greeting(&self) -> Option<String> {
        None
    }
    /// The run begins; it has no load points yet.
    fn run_begins(&mut self, _run: &RunResult) {}
    fn point_begins(&mut self, point: &BeginningPoint<'_>);
    /// A second of it is over. Called while load is sent: it must take no time.
    fn second(&mut self, second: &SecondView);
    /// It is over. Called between load points.
    fn point_finished(&mut self, finished: &FinishedPoint<'_>);
    /// The run is over; `page` is its report.
    fn run_finished(&mut self, result: &RunResult, page: &Path);
    /// Nothing more comes; what went wrong, for the user.
    fn end(self: Box<Self>) -> Vec<String>;
}

#[derive(Default)]
pub(crate) struct Observers(Vec<Box<dyn Observer>>);

impl Observers {
    /// Opens what is wished for, before servers are started and before there is any load.
    pub(crate) fn open(wishes: &ObserverWishes) -> Result<Self, Failure> {
        let mut all: Vec<Box<dyn Observer>> = Vec::new();
        if let Some(address) = wishes.live {
            all.push(Box::new(live::LivePage::open(address)?));
        }
        all.extend(otlp::open(&wishes.exports)?);
        Ok(Self(all))
    }

    /// What the user is to know before the run.
    pub(crate) fn greetings(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|observer| observer.greeting())
    }

    pub(crate) fn tell(&mut self, mut what: impl FnMut(&mut dyn Observer)) {
        self.0.iter_mut().for_each(|observer| what(&mut **observer));
    }

    /// Nothing more comes; what went wrong.
    pub(crate) fn end(self) -> Vec<String> {
        self.0.into_iter().flat_map(Observer::end).collect()
    }
}
