//! The tables of the page: a line for each stage, a column for each client.

use std::fmt::Write as _;

use super::run::{Outcome, Seen};
use super::stages::{SLOW_S, Stage, Truth};
use super::told::Told;
use crate::clients::client::Found;

/// A time may differ by this much from the truth: machines are busy, and the faults are larger.
const OFF_MAX_RATIO: f64 = 0.15;
const OFF_MAX_MS: f64 = 5.0;
/// A time of a token, which is a mean of many.
const TOKEN_OFF_MAX_RATIO: f64 = 0.2;
/// A rate: the clients begin and end their time differently.
const RATE_OFF_MAX_RATIO: f64 = 0.35;
/// Words of a client that gave no report.
const WORDS_MAX: usize = 200;

/// What a client reports, in words, and whether it is the truth.
struct Cell {
    text: String,
    is_right: bool,
}

/// `rows` has the outcomes of each stage, in the order of `found`.
pub fn table(stages: &[Stage], found: &[Found], rows: &[Vec<Outcome>]) -> String {
    let names: Vec<String> =
        found.iter().map(|one| format!("{} {}", one.client.name(), one.version)).collect();
    let mut text = format!(
        "| fault | the server | the truth | {} |\n| --- | --- | --- |{}\n",
        names.join(" | "),
        " --- |".repeat(names.len())
    );
    let mut notes = Vec::new();
    for (stage, outcomes) in stages.iter().zip(rows) {
        let cells: Vec<String> = outcomes
            .iter()
            .zip(found)
            .map(|(outcome, one)| shown(stage, outcome, one.client.name(), &mut notes))
            .collect();
        let (fault, server) = (stage.fault, stage.server);
        let _ = writeln!(text, "| {fault} | {server} | {} | {} |", truth(stage), cells.join(" | "));
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = write!(text, "\n{}. {note}", number + 1);
    }
    text
}

fn truth(stage: &Stage) -> String {
    let requests = stage.load.requests;
    match stage.truth {
        Truth::Good(good) => format!("{good} good, {} failed", requests - good),
        Truth::FirstMs(any) => {
            let times: Vec<String> = any.iter().map(|ms| format!("{ms}")).collect();
            format!("first output {} ms", times.join(" or "))
        }
        Truth::TokenMs(Some(ms)) => format!("{ms} ms a token"),
        Truth::TokenMs(None) => "no time a token".to_owned(),
        Truth::Tokens(tokens) => format!("{tokens} tokens a request, or none"),
        Truth::GoodPerS(good) => {
            format!("{good} good, {} failed; and the rate of the good", requests - good)
        }
        Truth::Open(open) => format!("{open} streams"),
        Truth::Connections(connections) => format!("{connections} connections"),
    }
}

fn shown(stage: &Stage, outcome: &Outcome, client: &str, notes: &mut Vec<String>) -> String {
    match outcome {
        Outcome::Report(told, seen) => {
            let cell = cell(stage, told, seen);
            if cell.is_right { cell.text } else { format!("**{}**", cell.text) }
        }
        Outcome::Nothing(words) => {
            let words = words.replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ");
            let words: String = words.chars().take(WORDS_MAX).collect();
            format!("no report ({})", number_of(format!("{client}: “{words}”"), notes))
        }
        Outcome::NoEnd => "**no end**".to_owned(),
    }
}

/// Of a note, which may be there already.
fn number_of(note: String, notes: &mut Vec<String>) -> usize {
    let place = notes.iter().position(|one| *one == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    place + 1
}

fn cell(stage: &Stage, told: &Told, seen: &Seen) -> Cell {
    let requests = stage.load.requests as f64;
    match stage.truth {
        Truth::Good(good) => ended(told, good as f64, requests),
        Truth::FirstMs(any) => {
            let is_right = |ms: f64| {
                any.iter().any(|truth| (ms - truth).abs() <= OFF_MAX_MS + truth * OFF_MAX_RATIO)
            };
            time(told.first_ms, is_right)
        }
        Truth::TokenMs(Some(truth)) => {
            time(told.token_ms, |ms| (ms / truth - 1.0).abs() <= TOKEN_OFF_MAX_RATIO)
        }
        // A time of nothing is a fault too.
        Truth::TokenMs(None) => {
            let cell = time(told.token_ms, |_| false);
            Cell { is_right: told.token_ms.is_none(), ..cell }
        }
        Truth::Tokens(truth) => match told.tokens.filter(|tokens| *tokens > 0.0) {
            None => Cell { text: "none".to_owned(), is_right: true },
            Some(tokens) => {
                Cell { text: format!("{tokens:.0} tokens"), is_right: tokens == truth as f64 }
            }
        },
        Truth::GoodPerS(good) => {
            let truth = good as f64 / (seen.asking.as_secs_f64() + SLOW_S);
            let said = told.good_per_s.unwrap_or(0.0);
            let ended = ended(told, good as f64, requests);
            let is_right = ended.is_right && (said / truth - 1.0).abs() <= RATE_OFF_MAX_RATIO;
            Cell { text: format!("{}; {said:.1}/s of {truth:.1}/s", ended.text), is_right }
        }
        Truth::Open(open) => Cell { text: seen.open.to_string(), is_right: seen.open == open },
        Truth::Connections(most) => {
            let text = seen.connections.to_string();
            Cell { text, is_right: seen.connections <= most }
        }
    }
}

fn ended(told: &Told, good: f64, requests: f64) -> Cell {
    let (said_good, said_failed) = (told.good.unwrap_or(0.0), told.failed.unwrap_or(0.0));
    let is_right = said_good == good && said_failed == requests - good;
    Cell { text: format!("{said_good:.0} good, {said_failed:.0} failed"), is_right }
}

fn time(ms: Option<f64>, is_right: impl Fn(f64) -> bool) -> Cell {
    match ms {
        Some(ms) if ms < 10.0 => Cell { text: format!("{ms:.2} ms"), is_right: is_right(ms) },
        Some(ms) => Cell { text: format!("{ms:.0} ms"), is_right: is_right(ms) },
        None => Cell { text: "none".to_owned(), is_right: false },
    }
}
