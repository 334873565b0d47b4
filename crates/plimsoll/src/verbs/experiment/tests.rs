//! The experiment engine without servers: hooks, Ctrl-C and `kill -9`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_run::Signals;
use plimsoll_run::level_commands::LevelCommands;
use plimsoll_testkit::program::kill;

use super::design::{Change, Design, Factor, HandSet, Level, Order, Step};
use super::hand::Person;
use super::records::{CellEnd, Log, Record, Started};
use super::series::{Bench, Made, Series};
use crate::exit::{Exit, Failure};

/// Directory of the experiment of a child of these tests, which is killed.
const CHILD_DIR: &str = "PLIMSOLL_TEST_EXPERIMENT";
/// Kills of one experiment.
const KILLS: usize = 30;

fn level(name: &str, changes: Vec<Change>) -> Level {
    Level { name: name.to_owned(), value: None, changes }
}

fn by_command(name: &str, levels: &[&str], [set, verify]: [&str; 2]) -> Factor {
    let of = |text: &&str| {
        let commands = LevelCommands {
            factor: name.to_owned(),
            level: (*text).to_owned(),
            set: Some(set.to_owned()),
            verify: Some(verify.to_owned()),
            settle: Duration::ZERO,
            timeout: Duration::from_secs(3),
            cores: Vec::new(),
            more: Vec::new(),
        };
        level(text, vec![Change::Commands(commands)])
    };
    let levels = levels.iter().map(of).collect();
    Factor { name: name.to_owned(), unit: None, levels, hand: None, undo: None }
}

fn plain(name: &str, levels: &[&str]) -> Factor {
    let levels = levels.iter().map(|text| level(text, Vec::new())).collect();
    Factor { name: name.to_owned(), unit: None, levels, hand: None, undo: None }
}

/// Writes a file for each run, and takes a while.
#[derive(Default)]
struct Fake {
    takes: Duration,
    made: Vec<(usize, u32)>,
    /// Outcomes of the first runs of a cell, in their order.
    outcomes: BTreeMap<usize, Vec<Result<Made, Failure>>>,
}

const VALID: Made = Made { exit: Exit::Valid, counts: true, again: false };
const INVALID: Made = Made { exit: Exit::Invalid, counts: false, again: true };

impl Bench for Fake {
    fn make(&mut self, step: &Step, dir: &Path) -> Result<Made, Failure> {
        self.made.push((step.cell, step.block));
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("begun"), "").unwrap();
        std::thread::sleep(self.takes);
        let next = self.outcomes.get_mut(&step.cell).filter(|left| !left.is_empty());
        let made = next.map_or(Ok(VALID), |left| left.remove(0))?;
        if made.exit != Exit::Interrupted {
            std::fs::rename(dir.join("begun"), dir.join("finished")).unwrap();
        }
        Ok(made)
    }

    fn finished(&mut self, _: &Step, dir: &Path) -> Result<Option<Made>, Failure> {
        Ok(dir.join("finished").exists().then_some(VALID))
    }

    fn keep(&mut self, _: &Log) -> Result<(), Failure> {
        Ok(())
    }
}

/// Records its requests.
#[derive(Default)]
struct Willing(Vec<String>);

impl Person for Willing {
    fn sets(
        &mut self,
        factor: &Factor,
        (level, _): (usize, Option<usize>),
        block: u32,
        _: &Signals,
    ) -> Result<bool, Failure> {
        self.0.push(format!("{block}: {}", factor.level_text(level)));
        Ok(true)
    }
}

fn log(dir: &Path, design: &Design) -> Log {
    if dir.join("experiment.jsonl").exists() {
        return Log::resume(dir, &design.names).unwrap();
    }
    Log::create(dir, Started::now(Vec::new(), design.names.clone()).unwrap()).unwrap()
}

fn conduct(
    dir: &Path,
    design: &Design,
    fake: &mut Fake,
) -> (Log, Result<Exit, Failure>, Vec<String>) {
    let signals = Signals::unheard();
    let mut person = Willing::default();
    let (log, outcome) =
        Series::new(design, dir, log(dir, design), &signals).make(fake, &mut person);
    (log, outcome, person.0)
}

#[test]
fn a_hook_that_lies_ends_its_cells_and_no_others() {
    let temp_dir = tempfile::tempdir().unwrap();
    let state = temp_dir.path().join("state").display().to_string();
    std::fs::write(&state, "off").unwrap();
    let set = format!("[ $LEVEL = stuck ] || echo $LEVEL > {state}");
    let verify = format!("cat {state}; [ $(cat {state}) = $LEVEL ]");
    let mut cache = by_command("cache", &["off", "on", "stuck"], [&set, &verify]);
    cache.undo = Some(format!("echo undone after $LEVEL > {state}"));
    let design = Design::new(vec![cache, plain("size", &["1", "2"])], 3, Order::Seeded(3));
    let mut fake = Fake::default();
    let (log, outcome, _) = conduct(&temp_dir.path().join("e"), &design, &mut fake);
    assert_eq!(outcome.unwrap(), Exit::Invalid);
    let stuck = |cell: usize| design.cells[cell].levels[0] == 2;
    for cell in 0..design.cells.len() {
        let runs = fake.made.iter().filter(|(made, _)| *made == cell).count();
        assert_eq!(runs, if stuck(cell) { 0 } else { 3 }, "{}", design.names[cell]);
        match log.ended(cell) {
            Some(CellEnd::Hook(failure)) => {
                assert!(
                    stuck(cell) && ["off", "on"].contains(&failure.output.as_str()),
                    "{failure}"
                );
            }
            other => assert!(!stuck(cell) && other.is_none(), "{other:?}"),
        }
    }
    assert!(std::fs::read_to_string(state).unwrap().starts_with("undone after o"));
}

#[test]
fn a_hook_that_hangs_ends_its_cell_and_resume_tries_it_again() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (dir, sign) = (temp_dir.path().join("e"), temp_dir.path().join("mended"));
    let set = format!("[ $LEVEL = on ] && ! [ -e {} ] && sleep 300; true", sign.display());
    let cache = by_command("cache", &["off", "on"], [&set, "true"]);
    let design = Design::new(vec![cache], 2, Order::Seeded(1));
    let mut fake = Fake::default();
    assert_eq!(conduct(&dir, &design, &mut fake).1.unwrap(), Exit::Invalid);
    assert_eq!(fake.made.len(), 2);
    std::fs::write(sign, "").unwrap();
    let (_, outcome, _) = conduct(&dir, &design, &mut fake);
    assert_eq!((outcome.unwrap(), fake.made.len()), (Exit::Valid, 4));
}

#[test]
fn an_invalid_run_is_made_again_once_and_then_its_repeat_is_missing() {
    let temp_dir = tempfile::tempdir().unwrap();
    let design = Design::new(vec![plain("size", &["1", "2"])], 2, Order::Seeded(1));
    let outcomes = BTreeMap::from([(0, vec![Ok(INVALID)]), (1, vec![Ok(INVALID), Ok(INVALID)])]);
    let mut fake = Fake { outcomes, ..Fake::default() };
    let (log, outcome, _) = conduct(temp_dir.path(), &design, &mut fake);
    assert_eq!((outcome.unwrap(), fake.made.len()), (Exit::Invalid, 6));
    let counts: Vec<Option<bool>> = design.steps.iter().map(|step| log.made(step)).collect();
    assert_eq!(counts.iter().filter(|valid| **valid == Some(false)).count(), 1, "{counts:?}");
    assert_eq!(std::fs::read_dir(temp_dir.path().join("set-aside")).unwrap().count(), 2);
}

#[test]
fn a_server_that_is_gone_ends_the_experiment_and_one_bad_level_does_not() {
    let gone = || Err(Failure::unusable("nobody answers"));
    let design = Design::new(vec![plain("size", &["1", "2", "3", "4"])], 2, Order::Alternating);
    let temp_dir = tempfile::tempdir().unwrap();
    let mut fake = Fake { outcomes: BTreeMap::from([(1, vec![gone()])]), ..Fake::default() };
    let (log, outcome, _) = conduct(&temp_dir.path().join("one"), &design, &mut fake);
    assert_eq!((outcome.unwrap(), fake.made.len()), (Exit::Invalid, 7));
    assert!(matches!(log.ended(1), Some(CellEnd::Run(_))));
    let outcomes = (0..4).map(|cell| (cell, vec![gone()])).collect();
    let mut fake = Fake { outcomes, ..Fake::default() };
    let (_, outcome, _) = conduct(&temp_dir.path().join("all"), &design, &mut fake);
    assert_eq!((Exit::from(&outcome.unwrap_err()), fake.made.len()), (Exit::Unusable, 2));
}

#[test]
fn the_user_is_asked_once_for_each_setting_and_again_after_an_interruption() {
    let temp_dir = tempfile::tempdir().unwrap();
    let clock = Factor { hand: Some(HandSet::EachBlock), ..plain("clock", &["350", "450"]) };
    let design = Design::new(vec![clock, plain("size", &["1", "2"])], 2, Order::Seeded(1));
    let interrupted = Ok(Made { exit: Exit::Interrupted, counts: false, again: false });
    let third = design.steps[2].cell;
    let mut fake =
        Fake { outcomes: BTreeMap::from([(third, vec![interrupted])]), ..Fake::default() };
    let (_, outcome, prompts) = conduct(temp_dir.path(), &design, &mut fake);
    assert_eq!((outcome.unwrap(), prompts.len()), (Exit::Interrupted, 2), "{prompts:?}");
    let (log, outcome, prompts) = conduct(temp_dir.path(), &design, &mut fake);
    assert_eq!((outcome.unwrap(), prompts.len()), (Exit::Valid, 3), "{prompts:?}");
    assert!(design.steps.iter().all(|step| log.made(step) == Some(true)));
    assert_eq!(fake.made.len(), 9, "the run that was cut off is made again");
}

/// The design of the experiment that is killed.
fn killed_design() -> Design {
    let cache = by_command("cache", &["off", "on"], ["true", "true"]);
    Design::new(vec![cache, plain("size", &["1", "2", "3"])], 6, Order::Seeded(5))
}

/// Not a test of its own: `kill_9_at_any_instant…` kills this program.
#[test]
fn child_that_conducts_an_experiment() {
    let Some(dir) = std::env::var_os(CHILD_DIR).map(PathBuf::from) else { return };
    let mut fake = Fake { takes: Duration::from_millis(20), ..Fake::default() };
    conduct(&dir, &killed_design(), &mut fake).1.unwrap();
}

#[test]
fn kill_9_at_any_instant_loses_no_finished_run_and_counts_none_twice() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (dir, design) = (temp_dir.path().join("e"), killed_design());
    let child = || -> Child {
        let program = std::env::current_exe().unwrap();
        let (_, here) = module_path!().split_once("::").unwrap();
        let name = format!("{here}::child_that_conducts_an_experiment");
        let mut command = Command::new(program);
        command.args(["--exact", &name]).env(CHILD_DIR, &dir);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let finished = || -> Vec<PathBuf> {
        let markers =
            design.steps.iter().map(|step| design.bundle_dir(&dir, step).join("finished"));
        markers.filter(|marker| marker.exists()).collect()
    };
    let mut before: Vec<(PathBuf, std::time::SystemTime)> = Vec::new();
    let mut killed = 0;
    for number in 0..KILLS {
        let mut running = child();
        let instant = plimsoll_engine::rng::below(plimsoll_engine::rng::key(&[number as u64]), 90);
        std::thread::sleep(Duration::from_millis(10 + instant));
        if running.try_wait().unwrap().is_none() {
            kill(running.id(), "KILL");
            killed += 1;
        }
        running.wait().unwrap();
        for (path, at) in &before {
            let is = path.metadata().and_then(|it| it.modified()).unwrap();
            assert_eq!(is, *at, "{} was made again", path.display());
        }
        let modified = |path: PathBuf| (path.metadata().unwrap().modified().unwrap(), path);
        before = finished().into_iter().map(modified).map(|(at, path)| (path, at)).collect();
    }
    assert!(child().wait().unwrap().success());
    assert_eq!(finished().len(), design.steps.len());
    let log = Log::resume(&dir, &design.names).unwrap();
    let recorded = |step: &&Step| {
        let of = |record: &&Record| {
            matches!(record, Record::Run { cell, block, .. }
            if (*cell, *block) == (step.cell, step.block))
        };
        log.records().iter().filter(of).count() == 1
    };
    assert_eq!(design.steps.iter().filter(recorded).count(), design.steps.len());
    println!("{killed} of {KILLS} instants were within the experiment");
}
