//! How often the server read its disks instead of its memory: measured and predicted.

use plimsoll_model::page_cache::{DiskReader, PageCacheUse};
use plimsoll_model::result::{PointResult, RunResult};
use serde::Serialize;

use crate::table::{Mark, Rows, Table};
use crate::text::{ResourceUnit, number, three_digits};

const NOTE: &str = "Misses are the bytes read from the server's disks, as a share of the bytes that \
    it sent.";
const PREDICTION_NOTE: &str = "The prediction is Che's approximation for a cache that replaces the \
    least recently used page, with the files and the popularity of this load. It assumes \
    independent reads and a cache that has long been full; Linux replaces pages by another rule \
    and reads ahead.";
const NO_PREDICTION_NOTE: &str = "There is no prediction, because the access pattern is not ours.";

/// A table of load points, and what it means.
#[derive(Debug, Serialize)]
pub(crate) struct PageCacheView {
    pub(crate) table: Table,
    pub(crate) note: String,
}

pub(super) fn view(run: &RunResult) -> PageCacheView {
    let all = || run.points.iter().filter_map(|point| Some((point, point.page_cache.as_ref()?)));
    let predicts = all().any(|(_, cache)| cache.predicted.is_some());
    let note = [NOTE, if predicts { PREDICTION_NOTE } else { NO_PREDICTION_NOTE }].join(" ");
    PageCacheView { table: table(run, &all().collect::<Vec<_>>()), note }
}

type Line<'r> = (&'r PointResult, &'r PageCacheUse);

fn table(run: &RunResult, lines: &[Line<'_>]) -> Table {
    let sizes = lines.iter().flat_map(|(_, cache)| {
        [cache.available_bytes, cache.predicted.as_ref().map(|it| it.full_bytes)]
    });
    let size = ResourceUnit::for_largest("bytes", sizes.flatten().fold(0.0, f64::max));
    let size_text = |bytes: Option<f64>| bytes.map(|bytes| size.text(bytes));
    let percent = |ratio: Option<f64>| ratio.map(|ratio| three_digits(ratio * 100.0));
    let marked = lines.iter().copied();
    Rows::new("Reads of disks instead of memory.", marked)
        .marked(|(point, _)| Mark::of_point(point))
        .figures("requested", &run.axis.unit, |(point, _)| number(Some(point.requested)))
        .figures("memory for files", &size.name, |(_, cache)| size_text(cache.available_bytes))
        .figures("memory for all that is read", &size.name, |(_, cache)| {
            size_text(cache.predicted.as_ref().map(|it| it.full_bytes))
        })
        .figures("misses", "%", |(_, cache)| percent(Some(cache.miss_ratio)))
        .figures("misses predicted", "%", |(_, cache)| {
            percent(cache.predicted.as_ref()?.miss_ratio)
        })
        .figures("hits of reads predicted", "%", |(_, cache)| {
            percent(cache.predicted.as_ref()?.hit_ratio)
        })
        .figures("refaults", "1/s", |(_, cache)| cache.refaults_per_s.map(three_digits))
        .figures("major faults", "1/s", |(_, cache)| cache.major_faults_per_s.map(three_digits))
        .text("disks read by", |(_, cache)| match cache.reads_of {
            DiskReader::ControlGroup => "the server's control group",
            DiskReader::Host => "all programs of its host",
        })
        .table()
        .without_empty_columns()
}
