//! Tables of the page.

use std::fmt::Write as _;

use xtask::verb::Result;

use super::client::InstalledClient;
use super::report::LimitNotice;
use super::run::{Row, Run};
use super::server::Law;

const HEAD: &str = "| client | streams | it reports: first output p50 / p99 ms | the server's log: p50 / \
    p99 ms | late by, p50 / p99 ms | requests/s | chunks/s | CPU µs per chunk | cores used | memory MB \
    | does it say that it is late or the limit? |\n\
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

/// Medians of all rounds, a line for each client and number of streams, and their notices in full.
pub fn table(law: &Law, rows: &[Row]) -> String {
    let Law { first_ms, step_ms, chunks } = law;
    let mut text = format!(
        "Law of the server: first chunk {first_ms} ms after the request, {chunks} chunks {step_ms} ms \
         apart.\n\n{HEAD}"
    );
    let mut notes = Vec::new();
    for row in rows {
        let limit = limit_cell(row, &mut notes);
        let _ = writeln!(text, "{}", line(row, &limit));
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = write!(text, "\n{}. {note}", number + 1);
    }
    text.push_str(&every_run(rows));
    text
}

fn line(row: &Row, limit: &str) -> String {
    let name = match row.failures.len() {
        0 => row.client.name().to_owned(),
        failed => format!("{} ({failed} rounds failed)", row.client.name()),
    };
    if row.runs.is_empty() {
        return format!("| {name} | {} | failed | | | | | | | | |", row.streams);
    }
    let shown = |of: &dyn Fn(&Run) -> Option<f64>, decimals: usize| match row.median(of) {
        Some(value) => format!("{value:.decimals$}"),
        None => "–".to_owned(),
    };
    let cells = [
        name,
        row.streams.to_string(),
        format!(
            "{} / {}",
            shown(&|run| Some(run.report.first_p50_ms), 1),
            shown(&|run| run.report.first_p99_ms, 1)
        ),
        format!(
            "{} / {}",
            shown(&|run| Some(run.truth.first_p50_ms), 2),
            shown(&|run| Some(run.truth.first_p99_ms), 2)
        ),
        format!("{} / {}", shown(&late_p50_ms, 2), shown(&late_p99_ms, 2)),
        shown(&|run| Some(run.truth.requests_per_s()), 1),
        shown(&|run| Some(run.truth.chunks_per_s()), 0),
        shown(&Run::cpu_us_per_chunk, 1),
        shown(&Run::cores_used, 2),
        shown(&|run| Some(run.peak_bytes as f64 / 1e6), 0),
        limit.to_owned(),
    ];
    format!("| {} |", cells.join(" | "))
}

/// By how much the report is above the truth.
fn late_p50_ms(run: &Run) -> Option<f64> {
    Some(run.report.first_p50_ms - run.truth.first_p50_ms)
}

fn late_p99_ms(run: &Run) -> Option<f64> {
    Some(run.report.first_p99_ms? - run.truth.first_p99_ms)
}

/// In short, with the number of the note that has the text of its last run.
fn limit_cell(row: &Row, notes: &mut Vec<String>) -> String {
    let spoke: Vec<&LimitNotice> = row.runs.iter().map(|run| &run.report.limit).collect();
    let Some(last) = spoke.iter().rev().find(|notice| ***notice != LimitNotice::Nothing) else {
        return "no".to_owned();
    };
    let (short, message) = match last {
        LimitNotice::Nothing => return "no".to_owned(),
        LimitNotice::InReport(message) => ("yes, in its report".to_owned(), message),
        LimitNotice::InLog(lines, message) => (
            format!("only in its log, {lines} {}", if *lines == 1 { "line" } else { "lines" }),
            message,
        ),
    };
    let silent = spoke.iter().filter(|notice| ***notice == LimitNotice::Nothing).count();
    let of = match silent {
        0 => String::new(),
        silent => format!(" ({} of {} runs)", spoke.len() - silent, spoke.len()),
    };
    let note = format!("{}: “{message}”", row.client.name());
    let number = match notes.iter().position(|one| *one == note) {
        Some(index) => index + 1,
        None => {
            notes.push(note);
            notes.len()
        }
    };
    format!("{short}{of} ({number})")
}

/// One line for each run.
fn every_run(rows: &[Row]) -> String {
    let mut text =
        "\n\nEvery run:\n\n| client | streams | it reports: p50 / p99 ms | its intervals ms \
        | from sending ms | the server's log: p50 / p99 ms | chunks/s | CPU µs per chunk |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for row in rows {
        for run in &row.runs {
            let Run { report, truth, .. } = run;
            let [p50, p99] = report.intervals_ms.map(|interval| {
                interval.map_or_else(|| "–".to_owned(), |[low, high]| format!("{low:.2}–{high:.2}"))
            });
            let figure = |value: Option<f64>, decimals: usize| match value {
                Some(value) => format!("{value:.decimals$}"),
                None => "–".to_owned(),
            };
            let [sent_p50, sent_p99] = report.from_sent_ms.map(|value| figure(value, 2));
            let _ = writeln!(
                text,
                "| {} | {} | {:.2} / {} | {p50} / {p99} | {sent_p50} / {sent_p99} | {:.2} / {:.2} \
                 | {:.0} | {} |",
                row.client.name(),
                row.streams,
                report.first_p50_ms,
                figure(report.first_p99_ms, 2),
                truth.first_p50_ms,
                truth.first_p99_ms,
                truth.chunks_per_s(),
                figure(run.cpu_us_per_chunk(), 1),
            );
        }
    }
    text
}

/// Versions and command lines, for 100 streams on one core.
pub fn commands(installed: &[InstalledClient]) -> Result<String> {
    let mut text = "| client | version |\n| --- | --- |\n".to_owned();
    for one in installed {
        let _ = writeln!(text, "| {} | {} |", one.client.name(), one.version);
    }
    text.push_str("\n```sh\n");
    for one in installed {
        let _ = writeln!(text, "{}", one.shown()?);
    }
    text.push_str("```\n");
    Ok(text)
}
