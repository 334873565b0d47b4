//! The picture: what each client reports of the first output, next to the truth.

use std::fmt::Write as _;

use super::client::Client;
use super::report::LimitNotice;
use super::run::Row;
use super::server::Law;

const WIDTH: f64 = 900.0;
/// Where the axis begins and ends.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 640.0;
/// Where the text begins.
const TEXT_LEFT: f64 = 655.0;
const LINE: f64 = 24.0;
const TOP: f64 = 74.0;
const FROM_MS: f64 = 60.0;
const TO_MS: f64 = 6_000.0;
const TICKS_MS: [u32; 6] = [100, 200, 500, 1_000, 2_000, 5_000];
const OURS: &str = "#0b7a3e";
const THEIRS: &str = "#b3541e";

/// A dot at each p50, a line to its p99, grouped by streams.
pub fn svg(law: &Law, rows: &[Row]) -> String {
    let mut body = String::new();
    let mut y = TOP;
    let mut streams = None;
    for row in rows.iter().filter(|row| row.client != Client::PlimsollAsleep) {
        if streams != Some(row.streams) {
            streams = Some(row.streams);
            y += LINE * 0.5;
            heading(&mut body, row.streams, y);
            y += LINE;
        }
        bar(&mut body, row, y);
        y += LINE;
    }
    let height = y + 34.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\" \
         aria-label=\"Time to first output that each client reports\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#ffffff\"/>\n"
    );
    text(
        &mut out,
        (16.0, 28.0),
        "font-size=\"16\" font-weight=\"600\" fill=\"#1c2128\"",
        &format!(
            "A server whose first chunk comes {} ms after the request, and what clients on one core report",
            law.first_ms
        ),
    );
    text(
        &mut out,
        (16.0, 48.0),
        "fill=\"#57606a\"",
        "Dot: median time to first output. Line: to its 99th percentile. Logarithmic.",
    );
    axis(&mut out, law, y);
    out.push_str(&body);
    out.push_str("</svg>\n");
    out
}

fn axis(out: &mut String, law: &Law, bottom: f64) {
    for tick in TICKS_MS {
        let x = x_of(f64::from(tick));
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#e4e7eb\"/>"
        );
        let label = if tick < 1_000 { format!("{tick} ms") } else { format!("{} s", tick / 1_000) };
        text(out, (x, bottom + 18.0), "text-anchor=\"middle\" fill=\"#57606a\"", &label);
    }
    let x = x_of(law.first_ms as f64);
    let _ = writeln!(
        out,
        "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#1c2128\" \
         stroke-width=\"2\"/>",
        TOP - 4.0
    );
    let label = format!("true: {} ms", law.first_ms);
    text(out, (x, TOP - 8.0), "text-anchor=\"middle\" fill=\"#1c2128\"", &label);
    let caption = "does it say that it is late or the limit?";
    text(out, (TEXT_LEFT, TOP - 8.0), "fill=\"#57606a\" font-size=\"12\"", caption);
}

fn heading(out: &mut String, streams: u32, y: f64) {
    let label = if streams == 1 { "1 stream".to_owned() } else { format!("{streams} streams") };
    text(out, (16.0, y + 4.0), "font-weight=\"600\" fill=\"#1c2128\"", &label);
}

fn bar(out: &mut String, row: &Row, y: f64) {
    let is_ours = row.client == Client::Plimsoll;
    let colour = if is_ours { OURS } else { THEIRS };
    text(out, (28.0, y + 4.0), &format!("fill=\"{colour}\""), row.client.name());
    let p50 = row.median(|run| Some(run.report.first_p50_ms));
    let p99 = row.median(|run| run.report.first_p99_ms);
    let Some(p50) = p50 else {
        return text(out, (LEFT, y + 4.0), "fill=\"#57606a\"", "failed");
    };
    let p99 = p99.unwrap_or(p50);
    let (from, to) = (x_of(p50), x_of(p99));
    let _ = writeln!(
        out,
        "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
         stroke-width=\"3\" stroke-opacity=\"0.45\"/>\n\
         <circle cx=\"{from:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>"
    );
    let figure = format!("{p50:.0}");
    text(out, (to.max(from) + 9.0, y + 4.0), "fill=\"#1c2128\" font-size=\"12\"", &figure);
    text(out, (TEXT_LEFT, y + 4.0), "fill=\"#1c2128\" font-size=\"12\"", limit_text(row));
}

/// The notice of the last run.
fn limit_text(row: &Row) -> &'static str {
    match row.runs.last().map(|run| &run.report.limit) {
        None | Some(LimitNotice::Nothing) => "no",
        Some(LimitNotice::InReport(_)) => "yes, in its report",
        Some(LimitNotice::InLog(..)) => "only in its log",
    }
}

fn x_of(ms: f64) -> f64 {
    let part = (ms.clamp(FROM_MS, TO_MS) / FROM_MS).ln() / (TO_MS / FROM_MS).ln();
    LEFT + (RIGHT - LEFT) * part
}

fn text(out: &mut String, (x, y): (f64, f64), how: &str, content: &str) {
    let escaped = content.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" {how}>{escaped}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_value_and_every_client_stand_in_the_picture() {
        let row = |client| Row { client, streams: 100, runs: Vec::new(), failures: Vec::new() };
        let rows = [row(Client::Plimsoll), row(Client::AiPerf)];
        let picture = svg(&crate::clients::FAST, &rows);
        for expected in [">true: 80 ms<", ">Plimsoll<", ">AIPerf<", ">100 streams<", "80 ms after"]
        {
            assert!(picture.contains(expected), "{expected}: {picture}");
        }
        assert!((x_of(FROM_MS) - LEFT).abs() < 1e-9 && (x_of(1e9) - RIGHT).abs() < 1e-9);
    }
}
