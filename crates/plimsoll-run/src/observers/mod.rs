//! Who watches a run live.
//!
//! An observer never delays a run. It passes messages to its own thread through a bounded queue,
//! and drops what does not fit. Its failure is a warning at the end of the run, never a failure of
//! the run. Its threads keep off the workers' cores like all others of this program
//! (`coordinator/point.rs`).

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

pub use otlp::ExportUrl;

use crate::failure::Failure;

/// Who is to watch a run.
#[derive(Clone, Debug, Default)]
pub struct ObserverOptions {
    /// Loopback address of the page that shows the run live.
    pub live: Option<SocketAddr>,
    /// Collectors that seconds and finished load points go to.
    pub exports: Vec<ExportUrl>,
}

/// One full second of a load point, merged over workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SecondView {
    /// Counted from the start of the load point.
    pub second: u32,
    /// Phase of the load point.
    pub phase: Phase,
    /// Start of the second, nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// Its end.
    pub end_unix_ns: u64,
    /// Rate of ops that ended without error.
    pub ops_per_s: f64,
    /// Application bytes moved, both ways.
    pub bytes_per_s: f64,
    /// Chunks of streamed replies; zero without streams.
    pub chunks_per_s: f64,
    /// Ops that failed.
    pub errors: u64,
    /// Median of response.
    pub response_p50_ns: Option<u64>,
    /// 99th percentile of response.
    pub response_p99_ns: Option<u64>,
    /// Share of the time in which the busiest worker was busy.
    pub generator_busy_ratio: f64,
}

impl SecondView {
    /// From the totals of a second, for a load point that began at that time.
    pub(crate) fn from_totals(totals: &SecondTotals, started_unix_ns: u64) -> Self {
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

/// A load point that will begin next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginningPoint<'a> {
    /// Its position in the run, for a person.
    pub title: &'a str,
    pub point: PointId,
    /// The requested load, in the unit of the run's axis.
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
    /// The run so far.
    pub run: &'a RunResult,
}

pub(crate) trait Observer: Send {
    /// Information for the user before the run.
    fn greeting(&self) -> Option<String> {
        None
    }
    /// The run begins; it has no load points yet.
    fn run_begins(&mut self, _run: &RunResult) {}
    fn point_begins(&mut self, point: &BeginningPoint<'_>);
    /// A second of the load point has ended. Called while load is sent: it must take no time.
    fn second(&mut self, second: &SecondView);
    /// The load point has ended. Called between load points.
    fn point_finished(&mut self, finished: &FinishedPoint<'_>);
    /// The run has ended; `page` is its report.
    fn run_finished(&mut self, result: &RunResult, page: &Path);
    /// Ends the observer; returns its problems, for the user.
    fn end(self: Box<Self>) -> Vec<String>;
}

#[derive(Default)]
pub(crate) struct Observers(Vec<Box<dyn Observer>>);

impl Observers {
    /// Opens the requested observers, before servers are started and before there is any load.
    pub(crate) fn open(options: &ObserverOptions) -> Result<Self, Failure> {
        let mut all: Vec<Box<dyn Observer>> = Vec::new();
        if let Some(address) = options.live {
            all.push(Box::new(live::LivePage::open(address)?));
        }
        all.extend(otlp::open(&options.exports)?);
        Ok(Self(all))
    }

    /// Information for the user before the run.
    pub(crate) fn greetings(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|observer| observer.greeting())
    }

    pub(crate) fn notify(&mut self, mut what: impl FnMut(&mut dyn Observer)) {
        self.0.iter_mut().for_each(|observer| what(&mut **observer));
    }

    /// Ends all observers; returns their problems.
    pub(crate) fn end(self) -> Vec<String> {
        self.0.into_iter().flat_map(Observer::end).collect()
    }
}
