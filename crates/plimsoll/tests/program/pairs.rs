//! Rows of `cargo lab pairs` that take a few seconds each: features in pairs, on servers of others
//! and our own. Asserts what holds on a busy machine too.

use std::path::PathBuf;

use plimsoll_testkit::pairs::checks::{CHECKS, CheckResult, run};
use plimsoll_testkit::pairs::{RESUME, Row, VERB, array};
use plimsoll_testkit::program::{alone, command};

/// Rows that run, of the shortest verb.
const RUN: usize = 6;
const REFUSED: usize = 2;
/// Checks whose figures another program of the machine can change.
const OF_FIGURES: [&str; 2] = ["limit", "cost"];

#[test]
fn eight_rows_of_the_array_are_right() {
    let all = array::rows();
    let plain = |row: &&Row| row.is(VERB, "run") && row.refusal.is_none();
    let runs = all.iter().filter(plain).take(RUN);
    let refused = all.iter().filter(|row| row.refusal.is_some()).take(REFUSED);
    let rows: Vec<&Row> = runs.chain(refused).collect();
    assert_eq!(rows.len(), RUN + REFUSED);
    assert!(rows.iter().any(|row| row.is(RESUME, "yes")));
    let program = PathBuf::from(command(&[]).get_program());
    // Six runs at once would disturb the measurements of other tests.
    let _alone = alone();
    // Each in namespaces of its own.
    std::thread::scope(|scope| {
        let started = |row: &&'_ Row| {
            let (row, program) = ((*row).clone(), program.clone());
            scope.spawn(move || (row.name(), run(&program, &row)))
        };
        let threads: Vec<_> = rows.iter().map(started).collect();
        for thread in threads {
            let (row, outcome) = thread.join().unwrap();
            let Some((line, results)) = outcome else { continue };
            for (check, result) in CHECKS.iter().zip(&results) {
                let is_fault = matches!(result, CheckResult::Fault(_));
                let tolerated = OF_FIGURES.contains(check);
                assert!(!is_fault || tolerated, "{row}: {check}: {result}\n{line:?}");
            }
        }
    });
}
