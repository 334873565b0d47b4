//! `cargo lab fleet failures`: agents, links and controllers fail at random instants of real runs.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::rng;
use xtask::verb::Result;

use super::site::{AGENTS, FAR_AGENT, POINTS, Site};
use super::trial::{Outcome, Trial, undisturbed};
use super::verdict::Fault;
use super::{Options, PAGE};
use crate::page::Table;
use crate::program;

const TABLE: Table<'_> = Table { page: PAGE, name: "fleet failures" };
/// From before the agents have greeted.
const FIRST_INSTANT: Duration = Duration::from_millis(50);
/// Of the time that a run takes: up to the last load point.
const LAST_INSTANT: f64 = 0.9;
/// Pauses that go unnoticed, and pauses that outlast the silence limit and the end of the agent.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));

/// Makes the runs and prints the table.
pub fn failures(program: &Path, options: &Options) -> Result<()> {
    if options.write {
        TABLE.check()?;
    }
    let folder = program::temporary()?;
    let site = Site::new(program, folder.path())?;
    let mut tally: BTreeMap<Fault, Vec<Outcome>> = BTreeMap::new();
    let took = undisturbed(&site, folder.path())?;
    println!("a run takes {:.1} s", took.as_secs_f64());
    for trial in trials(options, took) {
        let outcome = trial.make(&site, folder.path())?;
        println!("{}", line(&trial, &outcome));
        if !outcome.is_good() {
            keep(folder.path(), trial.number)?;
        }
        tally.entry(trial.fault).or_default().push(outcome);
    }
    let text = table(&tally, options.seed);
    println!("\n{text}");
    if options.write {
        TABLE.write(&text)?;
    }
    match tally.values().flatten().filter(|outcome| !outcome.is_good()).count() {
        0 => Ok(()),
        bad => Err(format!("{bad} runs are not as they must be; see above")),
    }
}

/// The failures of agents in rotation, then those of controllers; all instants follow from the
/// seed. `took` is the time of a run.
fn trials(options: &Options, took: Duration) -> Vec<Trial> {
    let instants = (FIRST_INSTANT, took.mul_f64(LAST_INSTANT).max(2 * FIRST_INSTANT));
    let agents = (0..options.agents).map(|number| match number % 3 {
        0 => Fault::Kill,
        1 => Fault::Stop,
        _ => Fault::Cut,
    });
    let faults = agents.chain((0..options.controllers).map(|_| Fault::Controller));
    let trial = |(number, fault): (u32, Fault)| {
        let draw = |what: u64| rng::key(&[options.seed, u64::from(number), what]);
        let between = |(low, high): (Duration, Duration), what| {
            low + Duration::from_nanos(rng::below(draw(what), (high - low).as_nanos() as u64))
        };
        let agent = match fault {
            Fault::Cut => FAR_AGENT,
            _ => rng::below(draw(0), AGENTS as u64) as usize,
        };
        Trial { number, fault, agent, after: between(instants, 1), pause: between(PAUSES, 2) }
    };
    (1..).zip(faults).map(trial).collect()
}

/// Puts what a run left where it stays.
fn keep(folder: &Path, number: u32) -> Result<()> {
    let kept = xtask::workspace::target().join("fleet-failures").join(number.to_string());
    let mut copy = std::process::Command::new("cp");
    std::fs::create_dir_all(&kept).map_err(|e| format!("{}: {e}", kept.display()))?;
    let run = folder.join(format!("run-{number}"));
    println!("kept in {}", kept.display());
    // A run that was refused has no bundle.
    let _ = copy.arg("-r").arg(&run).arg(run.with_extension("log")).arg(kept).status();
    Ok(())
}

fn name(fault: Fault) -> &'static str {
    match fault {
        Fault::Kill => "agent killed (SIGKILL)",
        Fault::Stop => "agent stopped (SIGSTOP) for 0.5 to 8 s",
        Fault::Cut => "agent behind ssh cut off (link down)",
        Fault::Controller => "controller killed (SIGKILL), then `plimsoll resume`",
    }
}

fn line(trial: &Trial, outcome: &Outcome) -> String {
    let word = if outcome.is_good() { "good" } else { "BAD" };
    let who = match trial.fault {
        Fault::Controller => String::new(),
        _ => format!(" {}", trial.agent + 1),
    };
    let pause = match trial.fault {
        Fault::Stop => format!(" for {:.1} s", trial.pause.as_secs_f64()),
        _ => String::new(),
    };
    let after = trial.after.as_secs_f64();
    let Outcome { verdict, counted, valid, resumed, .. } = outcome;
    format!(
        "{word}: {}. {:?}{who} after {after:.2} s{pause}, {counted} counted before, {valid} in \
         the end; resumed: {resumed}; {verdict:?}, endless {}, left {}, missing {}",
        trial.number, trial.fault, outcome.endless, outcome.left, outcome.missing
    )
}

fn table(tally: &BTreeMap<Fault, Vec<Outcome>>, seed: u64) -> String {
    let mut text = String::from(
        "| what failed | times | in a load point under way | which was made again | finished \
         points lost | points wrongly valid | points whose ops are not the server's requests | requests \
         too late | processes left | runs without end |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (fault, outcomes) in tally {
        let sum = |of: &dyn Fn(&Outcome) -> u32| outcomes.iter().map(of).sum::<u32>();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
            name(*fault),
            outcomes.len(),
            sum(&|outcome| outcome.verdict.hit),
            sum(&|outcome| outcome.verdict.again),
            sum(&|outcome| outcome.verdict.lost) + sum(&|outcome| outcome.missing),
            sum(&|outcome| outcome.verdict.wrongly_valid),
            sum(&|outcome| outcome.verdict.miscounted),
            sum(&|outcome| outcome.verdict.late_requests),
            sum(&|outcome| outcome.left),
            sum(&|outcome| outcome.endless),
        ));
    }
    let runs: usize = tally.values().map(Vec::len).sum();
    text.push_str(&format!(
        "\n{runs} runs of {POINTS} load points by {AGENTS} agents, instants from seed {seed}. Too \
         late is a request more than 1 s after the end of an agent's stream, or 4 s after its last \
         sign of life, before the next load point begins.\n"
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_instants_and_every_kind_of_failure() {
        let options = Options { agents: 30, controllers: 20, ..Options::of_seed(7) };
        let took = Duration::from_secs(8);
        let (first, second) = (trials(&options, took), trials(&options, took));
        assert_eq!(format!("{first:?}"), format!("{second:?}"));
        let count = |fault| first.iter().filter(|trial| trial.fault == fault).count();
        let all = [Fault::Kill, Fault::Stop, Fault::Cut, Fault::Controller].map(count);
        assert_eq!(all, [10, 10, 10, 20]);
        assert!(first.iter().all(|trial| trial.after < took && trial.pause >= PAUSES.0));
        assert!(trials(&Options::of_seed(8), took)[0].after != first[0].after);
    }
}
