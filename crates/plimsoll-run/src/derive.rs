//! Derives the files of a bundle: `result.json`, `report.html`, `manifest.json`.

use std::path::{Path, PathBuf};

use plimsoll_analysis::{Analysis, PointTimes, not_started};
use plimsoll_model::assignment::PointId;
use plimsoll_model::bundle::{
    BundleReader, IntervalEntry, IntervalSlice, Manifest, REPORT_FILE, RESULT_FILE, SUITE_FILE,
    write_durably,
};
use plimsoll_model::event::{JournalRecord, OpTimes, add_times};
use plimsoll_model::outcome::OpNames;
use plimsoll_model::prices::PricedSystem;
use plimsoll_model::result::RunResult;
use plimsoll_model::suite::Suite;
use plimsoll_report::sentences::{SENTENCES, add_to_result};
use plimsoll_report::{Supplements, html_with_supplements};

use crate::failure::Failure;
use crate::protocols::parse_suite;

/// Analyses a bundle. Writes nothing.
pub fn result_of(dir: &Path) -> Result<RunResult, Failure> {
    let reader = BundleReader::open(dir)?;
    let suite_file = dir.join(SUITE_FILE).display().to_string();
    let suite = parse_suite(&suite_file, reader.suite_text(), &[])?;
    match analysis_of(&reader, &suite)? {
        Some(analysis) => Ok(analysis.finish()),
        None => Ok(not_started(&suite, reader.disclosure()?.as_ref())),
    }
}

/// Analyses a bundle, one load point after the other; `None` if not even the first record was
/// written.
pub(crate) fn analysis_of<'s>(
    reader: &BundleReader,
    suite: &'s Suite,
) -> Result<Option<Analysis<'s>>, Failure> {
    let Some(started) = reader.journal().started() else { return Ok(None) };
    let mut analysis = Analysis::begin(suite, SENTENCES, started.clone(), reader.disclosure()?);
    for record in reader.journal().records.iter().skip(1) {
        match record {
            JournalRecord::PointFinished(point) => {
                let times = point_times(reader, point.point, &started.op_names)?;
                analysis.add_point(point, Some(&times));
            }
            other => analysis.add_record(other),
        }
    }
    Ok(Some(analysis))
}

/// Histograms of a finished point, read back from its interval log.
pub fn point_times(
    reader: &BundleReader,
    point: PointId,
    op_names: &OpNames,
) -> Result<PointTimes, Failure> {
    let mut times = PointTimes::default();
    let mut open: Option<IntervalSlice> = None;
    reader.intervals(point, op_names, |entry| {
        let same = open.as_ref().is_some_and(|s| (s.start, s.phase) == (entry.start, entry.phase));
        if !same {
            let IntervalEntry { second, start, length, phase, .. } = entry;
            let next = IntervalSlice { second, start, length, phase, ops: Vec::new() };
            if let Some(full) = open.replace(next) {
                times.add(&full);
            }
        }
        if let Some(second) = &mut open {
            add_entry(second, entry, op_names.0.len());
        }
    })?;
    if let Some(last) = open {
        times.add(&last);
    }
    Ok(times)
}

fn add_entry(second: &mut IntervalSlice, entry: IntervalEntry, ops: usize) {
    if second.ops.is_empty() {
        second.ops.resize_with(ops, OpTimes::new);
    }
    let sum = entry.kind.of_mut(&mut second.ops[entry.op]);
    // A second may have several lines: a late worker's part has a line of its own.
    if sum.is_empty() {
        *sum = entry.times;
    } else {
        add_times(sum, &entry.times);
    }
}

/// `result.json` as text, with the sentences: the same result gives the same bytes.
pub fn result_text(result: &RunResult) -> String {
    let mut result = result.clone();
    add_to_result(&mut result);
    let mut text = serde_json::to_string_pretty(&result)
        .expect("a result holds only what JSON can say: no NaN, string keys");
    text.push('\n');
    text
}

/// Writes result and report of a finished run, and a manifest of every file in its bundle.
pub fn finish(dir: &Path) -> Result<(RunResult, PathBuf), Failure> {
    let result = result_of(dir)?;
    let report = write_derived(dir, &result)?;
    Manifest::from_bundle(dir)?.write(dir)?;
    Ok((result, report))
}

/// Writes result and report of a bundle again; the manifest's entries of raw files stay.
pub fn write_again(dir: &Path, result: &RunResult) -> Result<PathBuf, Failure> {
    let report = write_derived(dir, result)?;
    Manifest::refresh_derived(dir, &[RESULT_FILE, REPORT_FILE])?;
    Ok(report)
}

fn write_derived(dir: &Path, result: &RunResult) -> Result<PathBuf, Failure> {
    write_durably(&dir.join(RESULT_FILE), result_text(result).as_bytes())?;
    let page = own_page(result)?;
    let report = dir.join(REPORT_FILE);
    write_durably(&report, page.as_bytes())?;
    Ok(report)
}

/// The `report.html` of a bundle.
pub fn own_page(result: &RunResult) -> Result<String, Failure> {
    Ok(html_with_supplements(result, &supplements(result, None)?)?)
}

/// Supplements to a run that are not in its bundle.
pub fn supplements(
    result: &RunResult,
    price: Option<PricedSystem>,
) -> Result<Supplements, Failure> {
    let suite = result.suite.as_ref().map_or("", |suite| suite.name.as_str());
    let published = plimsoll_analysis::published::pages_for_suite(suite)
        .map_err(|e| Failure::bug(e.to_string()))?;
    Ok(Supplements { price, published })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::event::{Phase, TimeKind, new_times};
    use plimsoll_model::units::Nanos;

    use super::*;

    #[test]
    fn lines_of_one_second_add_up() {
        let phase = Phase::Measure;
        let (start, length) = (Nanos::ZERO, Nanos::from_secs(1));
        let mut second = IntervalSlice { second: 0, start, length, phase, ops: Vec::new() };
        for value in [5, 7] {
            let mut times = new_times();
            times.record(value).unwrap();
            let kind = TimeKind::Response;
            add_entry(
                &mut second,
                IntervalEntry { second: 0, start, length, phase, op: 0, kind, times },
                1,
            );
        }
        let response = &second.ops[0].response;
        assert_eq!((response.len(), response.min(), response.max()), (2, 5, 7));
    }
}
