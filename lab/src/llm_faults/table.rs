//! The tables of the page: a line for each scenario, a column for each client.

use std::fmt::Write as _;

use super::reports::ReportedFigures;
use super::run::{Observation, Outcome};
use super::scenarios::{SLOW_S, Scenario, Truth};
use crate::clients::client::InstalledClient;

/// A time may differ by this much from the truth: machines are busy, and the faults are larger.
const OFF_MAX_RATIO: f64 = 0.15;
const OFF_MAX_MS: f64 = 5.0;
/// A time of a token, which is a mean of many.
const TOKEN_OFF_MAX_RATIO: f64 = 0.2;
/// A rate: the clients begin and end their time differently.
const RATE_OFF_MAX_RATIO: f64 = 0.35;
/// Longest text of a client that gave no report.
const MESSAGE_CHARS_MAX: usize = 200;

/// What a client reports, as text, and whether it is the truth.
struct Cell {
    text: String,
    is_right: bool,
}

/// `rows` has the outcomes of each scenario, in the order of `clients`.
pub fn table(
    scenarios: &[Scenario],
    installed: &[InstalledClient],
    rows: &[Vec<Outcome>],
) -> String {
    let names: Vec<String> =
        installed.iter().map(|one| format!("{} {}", one.client.name(), one.version)).collect();
    let mut text = format!(
        "| fault | the server | the truth | {} |\n| --- | --- | --- |{}\n",
        names.join(" | "),
        " --- |".repeat(names.len())
    );
    let mut notes = Vec::new();
    for (scenario, outcomes) in scenarios.iter().zip(rows) {
        let cells: Vec<String> = outcomes
            .iter()
            .zip(installed)
            .map(|(outcome, one)| shown(scenario, outcome, one.client.name(), &mut notes))
            .collect();
        let (fault, server) = (scenario.fault, scenario.server);
        let _ =
            writeln!(text, "| {fault} | {server} | {} | {} |", truth(scenario), cells.join(" | "));
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = write!(text, "\n{}. {note}", number + 1);
    }
    text
}

fn truth(scenario: &Scenario) -> String {
    let requests = scenario.load.requests;
    match scenario.truth {
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

fn shown(scenario: &Scenario, outcome: &Outcome, client: &str, notes: &mut Vec<String>) -> String {
    match outcome {
        Outcome::Report(figures, observed) => {
            let cell = cell(scenario, figures, observed);
            if cell.is_right { cell.text } else { format!("**{}**", cell.text) }
        }
        Outcome::Nothing(message) => {
            let message =
                message.replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ");
            let message: String = message.chars().take(MESSAGE_CHARS_MAX).collect();
            format!("no report ({})", number_of(format!("{client}: “{message}”"), notes))
        }
        Outcome::NoEnd => "**no end**".to_owned(),
    }
}

/// Of a note, which may be there already.
fn number_of(note: String, notes: &mut Vec<String>) -> usize {
    let index = notes.iter().position(|one| *one == note).unwrap_or_else(|| {
        notes.push(note);
        notes.len() - 1
    });
    index + 1
}

fn cell(scenario: &Scenario, figures: &ReportedFigures, observed: &Observation) -> Cell {
    let requests = scenario.load.requests as f64;
    match scenario.truth {
        Truth::Good(good) => ended(figures, good as f64, requests),
        Truth::FirstMs(any) => {
            let is_right = |ms: f64| {
                any.iter().any(|truth| (ms - truth).abs() <= OFF_MAX_MS + truth * OFF_MAX_RATIO)
            };
            time(figures.first_ms, is_right)
        }
        Truth::TokenMs(Some(truth)) => {
            time(figures.token_ms, |ms| (ms / truth - 1.0).abs() <= TOKEN_OFF_MAX_RATIO)
        }
        // Reporting a time is a fault too.
        Truth::TokenMs(None) => {
            let cell = time(figures.token_ms, |_| false);
            Cell { is_right: figures.token_ms.is_none(), ..cell }
        }
        Truth::Tokens(truth) => match figures.tokens.filter(|tokens| *tokens > 0.0) {
            None => Cell { text: "none".to_owned(), is_right: true },
            Some(tokens) => {
                Cell { text: format!("{tokens:.0} tokens"), is_right: tokens == truth as f64 }
            }
        },
        Truth::GoodPerS(good) => {
            let truth = good as f64 / (observed.asking.as_secs_f64() + SLOW_S);
            let rate = figures.good_per_s.unwrap_or(0.0);
            let ended = ended(figures, good as f64, requests);
            let is_right = ended.is_right && (rate / truth - 1.0).abs() <= RATE_OFF_MAX_RATIO;
            Cell { text: format!("{}; {rate:.1}/s of {truth:.1}/s", ended.text), is_right }
        }
        Truth::Open(open) => {
            Cell { text: observed.open.to_string(), is_right: observed.open == open }
        }
        Truth::Connections(most) => {
            let text = observed.connections.to_string();
            Cell { text, is_right: observed.connections <= most }
        }
    }
}

fn ended(figures: &ReportedFigures, good: f64, requests: f64) -> Cell {
    let (reported_good, reported_failed) =
        (figures.good.unwrap_or(0.0), figures.failed.unwrap_or(0.0));
    let is_right = reported_good == good && reported_failed == requests - good;
    Cell { text: format!("{reported_good:.0} good, {reported_failed:.0} failed"), is_right }
}

fn time(ms: Option<f64>, is_right: impl Fn(f64) -> bool) -> Cell {
    match ms {
        Some(ms) if ms < 1.0 => Cell { text: format!("{ms:.3} ms"), is_right: is_right(ms) },
        Some(ms) if ms < 10.0 => Cell { text: format!("{ms:.2} ms"), is_right: is_right(ms) },
        Some(ms) => Cell { text: format!("{ms:.0} ms"), is_right: is_right(ms) },
        None => Cell { text: "none".to_owned(), is_right: false },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::scenarios::{BROKEN, FIRST, TOKENS};
    use super::*;

    fn check(scenario: &Scenario, figures: ReportedFigures, expected: &str) {
        let observed =
            Observation { requests: 32, open: 4, connections: 4, asking: Duration::ZERO };
        let outcome = Outcome::Report(figures, observed);
        assert_eq!(shown(scenario, &outcome, "a client", &mut Vec::new()), expected);
    }

    #[test]
    fn a_figure_that_differs_from_the_truth_is_bold() {
        let ended = |good, failed| ReportedFigures { good, failed, ..ReportedFigures::default() };
        check(&BROKEN[0], ended(Some(0.0), Some(32.0)), "0 good, 32 failed");
        check(&BROKEN[0], ended(Some(32.0), None), "**32 good, 0 failed**");
        let first = |first_ms| ReportedFigures { first_ms, ..ReportedFigures::default() };
        check(&FIRST[0], first(Some(219.0)), "219 ms");
        check(&FIRST[0], first(Some(5.4)), "**5.40 ms**");
        check(&FIRST[0], first(None), "**none**");
        let token = |token_ms| ReportedFigures { token_ms, ..ReportedFigures::default() };
        check(&TOKENS[2], token(None), "none");
        check(&TOKENS[2], token(Some(0.002)), "**0.002 ms**");
    }

    #[test]
    fn a_client_without_a_report_is_quoted_once() {
        let mut notes = Vec::new();
        let outcome = Outcome::Nothing("exit code 1: no\nrecords | at all".to_owned());
        for _ in 0..2 {
            assert_eq!(shown(&BROKEN[0], &outcome, "it", &mut notes), "no report (1)");
        }
        assert_eq!(notes, ["it: “exit code 1: no records at all”"]);
    }
}
