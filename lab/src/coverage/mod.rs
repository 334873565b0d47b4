//! `cargo lab coverage`: do the stated intervals hold the truth as often as they say?
//!
//! Many ordinary runs against the calibrated server, each with its own seed, in cells of window
//! and utilisation, half of them beside a process that takes a fifth of the worker's core. The
//! truth of a cell is the percentile, from due to the reply handed to the kernel, of all ops of its
//! quiet runs, by the server's logs. What a run found is a line of a file, so that a measurement
//! that was interrupted goes on where it was.

mod disturber;
mod measure;
mod outcome;
mod table;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use xtask::verb::Result;
use xtask::workspace;

use crate::page::Table;
use crate::program;
pub use disturber::disturb;
use outcome::Outcome;

/// Word that makes this program the disturber.
pub const DISTURBER: &str = "coverage-disturber";
const TABLE: Table<'_> = Table { page: "docs/calibration.md", name: "coverage" };
const UTILISATIONS: [f64; 3] = [0.3, 0.6, 0.9];
/// The window of `--profile quick`.
const QUICK_S: u64 = 3;

/// What the command line asked for.
struct Options {
    runs: u64,
    seed: u64,
    /// Of the runs that are not as long as quick's, in seconds.
    window_s: u64,
    /// What was found so far.
    file: PathBuf,
    write: bool,
    /// What to measure, instead of a release build made now.
    program: Option<PathBuf>,
    /// More options of `plimsoll run`.
    of_run: Vec<String>,
}

/// What one run is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Wanted {
    number: u64,
    seed: u64,
    window_s: u64,
    utilisation: f64,
    disturbed: bool,
}

impl Wanted {
    /// Cells take turns, so that what the host does meanwhile is shared by all: a third of the runs
    /// has quick's window, and half of each cell's are disturbed.
    fn number(number: u64, options: &Options) -> Self {
        Self {
            number,
            seed: options.seed + number,
            window_s: if number.is_multiple_of(3) { QUICK_S } else { options.window_s },
            utilisation: UTILISATIONS[(number / 3 % 3) as usize],
            disturbed: !(number / 9).is_multiple_of(2),
        }
    }
}

/// Makes the runs that are missing, prints the table, and writes it where that is asked for.
pub fn coverage(words: &[&str]) -> Result<()> {
    let options = options(words)?;
    if options.write {
        TABLE.check()?;
    }
    let program = options.program.clone().map_or_else(program::plimsoll, Ok)?;
    let mut found = read(&options.file)?;
    for number in 0..options.runs {
        let wanted = Wanted::number(number, &options);
        if found.iter().any(|outcome| outcome.is_of(&wanted)) {
            continue;
        }
        let outcome = measure::run(&program, &wanted, &options.of_run)?;
        eprintln!("{}", outcome.line());
        append(&options.file, &outcome)?;
        found.push(outcome);
    }
    let wanted: Vec<Wanted> = (0..options.runs).map(|n| Wanted::number(n, &options)).collect();
    found.retain(|outcome| wanted.iter().any(|wanted| outcome.is_of(wanted)));
    let text = format!(
        "Command: `cargo lab coverage --runs {} --seed {} --window {}`\n\n{}",
        options.runs,
        options.seed,
        options.window_s,
        table::table(&found)
    );
    println!("{text}");
    if options.write { TABLE.write(&text) } else { Ok(()) }
}

fn options(words: &[&str]) -> Result<Options> {
    let target = workspace::root().join("target");
    let mut options = Options {
        runs: 200,
        seed: 1,
        window_s: 10,
        file: target.join("coverage.jsonl"),
        write: false,
        program: None,
        of_run: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: &&str| {
            let number = text.parse::<u64>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("{word} {text}: not a number above 0"))
        };
        match *word {
            "--runs" => options.runs = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--window" => options.window_s = number(value()?)?,
            "--file" => options.file = PathBuf::from(*value()?),
            "--program" => options.program = Some(PathBuf::from(*value()?)),
            "--write" => options.write = true,
            "--" => {
                options.of_run = words.by_ref().map(|word| (*word).to_owned()).collect();
            }
            other => return Err(format!("{other}: no such option of coverage")),
        }
    }
    Ok(options)
}

/// What was found so far; a line that was cut off is left out, and its run made again.
fn read(file: &PathBuf) -> Result<Vec<Outcome>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text.lines().filter_map(Outcome::parse).collect()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(format!("{}: {e}", file.display())),
    }
}

fn append(file: &PathBuf, outcome: &Outcome) -> Result<()> {
    let wrong = |e: std::io::Error| format!("{}: {e}", file.display());
    let mut file = OpenOptions::new().create(true).append(true).open(file).map_err(wrong)?;
    // The blank line ends one that was cut off.
    writeln!(file, "\n{}", outcome.json()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_runs_is_quick_half_are_disturbed_and_no_seed_is_used_twice() {
        let options = options(&["--runs", "180", "--seed", "5", "--window", "8"]).unwrap();
        let all: Vec<Wanted> = (0..180).map(|n| Wanted::number(n, &options)).collect();
        let count = |of: &dyn Fn(&Wanted) -> bool| all.iter().filter(|one| of(one)).count();
        assert_eq!(count(&|one| one.window_s == QUICK_S), 60);
        assert_eq!(count(&|one| one.disturbed), 90);
        for utilisation in UTILISATIONS {
            assert_eq!(count(&|one| one.utilisation == utilisation), 60);
            let quick = |one: &Wanted| one.utilisation == utilisation && one.window_s == QUICK_S;
            assert_eq!(count(&|one| quick(one) && one.disturbed), 10);
        }
        assert!((5..185).all(|seed| count(&|one| one.seed == seed) == 1));
    }

    #[test]
    fn the_page_has_a_place_for_the_table() {
        assert_eq!(TABLE.check(), Ok(()));
        assert!(Table { name: "no such table", ..TABLE }.check().is_err());
    }

    #[test]
    fn options_behind_two_dashes_are_for_the_runs() {
        let options = options(&["--write", "--", "--pacing", "spin"]).unwrap();
        assert!(options.write);
        assert_eq!(options.of_run, ["--pacing", "spin"]);
        assert!(super::options(&["--runs", "0"]).is_err());
    }
}
