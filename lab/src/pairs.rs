//! `cargo lab pairs`: do features work in pairs? A covering array of runs
//! (`plimsoll_testkit::pairs`), each checked by the same list. The outcome of a row is a line of a
//! file, so that an interrupted measurement can resume.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::Parser;
use plimsoll_testkit::pairs::checks::{self, CHECKS, CheckResult, RowResults};
use plimsoll_testkit::pairs::{EXCLUDED, FACTORS, Row, array};
use serde_json::{Value, json};
use xtask::verb::Result;
use xtask::workspace;

use crate::page::Table;
use crate::process::now;
use crate::program;

const TABLE: Table<'_> = Table { page: "docs/pairs.md", name: "pairs" };

/// Options of `cargo lab pairs`.
#[derive(Parser)]
pub struct Options {
    /// Rows whose names contain this.
    #[arg(long, value_name = "WORD", default_value = "", hide_default_value = true)]
    only: String,
    /// File with the rows made so far; they are not made again. [default: target/pairs.jsonl]
    #[arg(long)]
    file: Option<PathBuf>,
    /// Print the rows, and make none.
    #[arg(long)]
    list: bool,
    /// Replace the table in docs/pairs.md.
    #[arg(long)]
    write: bool,
    /// Program to measure instead of a release build made now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Makes the rows that are missing, and prints the table.
pub fn pairs(options: &Options) -> Result<()> {
    TABLE.check()?;
    let rows = array::rows();
    if options.list {
        rows.iter().for_each(|row| println!("{}", row.name()));
        return Ok(());
    }
    let program = options.program.clone().map_or_else(program::plimsoll, Ok)?;
    let program = fs::canonicalize(&program).map_err(|e| format!("{}: {e}", program.display()))?;
    let file = options.file.clone().unwrap_or_else(|| workspace::target().join("pairs.jsonl"));
    let mut lines = finished(&file)?;
    for row in rows.iter().filter(|row| row.name().contains(&options.only)) {
        if let Entry::Vacant(missing) = lines.entry(row.name()) {
            let line = measure(&program, row);
            eprintln!("{}: {}", row.name(), worst(&line));
            append(&file, &line)?;
            missing.insert(line);
        }
    }
    let text = table(&rows, &lines);
    println!("{text}");
    if options.write { TABLE.write(&text) } else { Ok(()) }
}

/// Lines of the file by row.
fn finished(file: &Path) -> Result<BTreeMap<String, Value>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let parse = |line: &str| -> Result<(String, Value)> {
        let line: Value =
            serde_json::from_str(line).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok((line["row"].as_str().unwrap_or_default().to_owned(), line))
    };
    text.lines().map(parse).collect()
}

fn append(file: &Path, line: &Value) -> Result<()> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut opened| writeln!(opened, "{line}"));
    written.map_err(|e| format!("{}: {e}", file.display()))
}

/// The line of a row. A row that cannot be set up has failed.
fn measure(program: &Path, row: &Row) -> Value {
    let begin = now();
    let ended = catch_unwind(AssertUnwindSafe(|| checks::run(program, row)));
    let seconds = begin.elapsed().as_secs_f64();
    let (command, results) = match ended {
        Ok(Some((command, results))) => (command, texts(&results)),
        Ok(None) => (Vec::new(), vec!["– (a peer is missing)".to_owned()]),
        Err(_) => (Vec::new(), vec!["FAULT: it panicked; see above".to_owned()]),
    };
    json!({ "row": row.name(), "seconds": seconds, "command": command, "results": results })
}

fn texts(results: &RowResults) -> Vec<String> {
    results.iter().map(CheckResult::to_string).collect()
}

fn results(line: &Value) -> Vec<&str> {
    line["results"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// All that is neither right nor without an object.
fn worst(line: &Value) -> String {
    let is_plain = |text: &str| text == "right" || text.starts_with('–');
    let others: Vec<&str> = results(line).into_iter().filter(|text| !is_plain(text)).collect();
    if others.is_empty() { "right".to_owned() } else { others.join("; ") }
}

fn table(rows: &[Row], lines: &BTreeMap<String, Value>) -> String {
    let factors = FACTORS.map(|factor| factor.name).join(" | ");
    let mut text = format!("| {factors} | {} |\n", CHECKS.join(" | "));
    text += &"|---".repeat(FACTORS.len() + CHECKS.len());
    text += "|\n";
    let (mut made, mut faults, mut disturbed, mut seconds) = (0, 0, 0, 0.0);
    for row in rows {
        let Some(line) = lines.get(&row.name()) else { continue };
        let results = results(line);
        made += 1;
        seconds += line["seconds"].as_f64().unwrap_or_default();
        faults += usize::from(results.iter().any(|it| it.starts_with("FAULT")));
        disturbed += usize::from(results.iter().any(|it| it.starts_with("disturbed")));
        let cells = (0..CHECKS.len()).map(|at| results.get(at).map_or("", |text| cell(text)));
        let cells: Vec<&str> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", row.levels.join(" | "), cells.join(" | "));
    }
    let minutes = seconds / 60.0;
    let _ = write!(
        text,
        "\n{made} of {} rows in {minutes:.0} min: {faults} with a fault, {disturbed} disturbed. {} \
         combinations do not exist.",
        rows.len(),
        EXCLUDED.len()
    );
    text
}

/// What fits into a table.
fn cell(text: &str) -> &str {
    match text.split([' ', ':']).next() {
        Some("FAULT") => "FAULT",
        Some("disturbed") => "disturbed",
        Some("right") => "right",
        _ => "–",
    }
}
