//! Converts cells to the requests of their runs.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::ServerLimits;
use plimsoll_model::suite::{Ladder, LoadSpec};
use plimsoll_model::target::TargetSpec;
use plimsoll_run::coordinator::RunRequest;

use super::design::{Change, Design};
use crate::exit::Failure;
use crate::flags::RunArgs;

/// The request of each cell's runs, which `request_of` makes of its flags. Its output directory is
/// not set yet.
pub(crate) fn requests(
    base: &RunArgs,
    design: &Design,
    request_of: impl Fn(&RunArgs) -> Result<RunRequest, Failure>,
) -> Result<Vec<RunRequest>, Failure> {
    let mut all: Vec<RunArgs> =
        (0..design.cells.len()).map(|cell| arguments(base, design, cell)).collect();
    let starts = |args: &RunArgs| {
        let is_started = |text: &String| TargetSpec::parse(text).is_ok_and(|it| it.is_started());
        args.targets.iter().any(is_started)
    };
    if all.iter().any(starts) {
        // The option is for the servers of the other cells alone.
        all.iter_mut().filter(|args| !starts(args)).for_each(|args| args.agents.listen_on = None);
    }
    let request = |(cell, args): (usize, &RunArgs)| {
        let mut request = request_of(args)?;
        for (factor, level) in design.factors.iter().zip(&design.cells[cell].levels) {
            for change in &factor.levels[*level].changes {
                apply(change, &mut request)?;
                if matches!(change, Change::Commands(_) | Change::AfterStart(_)) {
                    request.statements.push(Setting::new(&factor.name, factor.shown(*level)));
                }
            }
        }
        Ok::<_, Failure>(request)
    };
    let requests: Vec<RunRequest> =
        all.iter().enumerate().map(request).collect::<Result<_, _>>()?;
    refuse_modes(&requests)?;
    Ok(requests)
}

/// The command line with the changes of a cell's levels.
fn arguments(base: &RunArgs, design: &Design, cell: usize) -> RunArgs {
    let mut args = base.clone();
    args.repeat = 1;
    for (factor, level) in design.factors.iter().zip(&design.cells[cell].levels) {
        for change in &factor.levels[*level].changes {
            match change {
                Change::Keys(overrides) => args.set.extend_from_slice(overrides),
                Change::Target(target) => args.targets = vec![target.clone()],
                Change::Server(_) | Change::Commands(_) | Change::AfterStart(_) => {}
            }
        }
    }
    args
}

fn apply(change: &Change, request: &mut RunRequest) -> Result<(), Failure> {
    let is_started = request.targets.iter().any(TargetSpec::is_started);
    match change {
        Change::Server(limits) => {
            if !is_started {
                return Err(Failure::wrong(
                    "a server is held to less than it could have, so it must be started here: \
                     write builtin: or managed:NAME",
                ));
            }
            let all = request.options.server_limits.unwrap_or_default();
            request.options.server_limits = Some(both(all, *limits));
        }
        Change::AfterStart(commands) => {
            if !is_started {
                return Err(Failure::wrong(format!(
                    "factor {}: after_start is for servers that each run starts, builtin: or \
                     managed:NAME; leave it out",
                    commands.factor
                )));
            }
            request.after_start.push(commands.clone());
        }
        Change::Commands(_) | Change::Keys(_) | Change::Target(_) => {}
    }
    Ok(())
}

/// Combines the limits of two factors.
fn both(one: ServerLimits, other: ServerLimits) -> ServerLimits {
    ServerLimits {
        cores: other.cores.or(one.cores),
        quota_cores: other.quota_cores.or(one.quota_cores),
        memory_bytes: other.memory_bytes.or(one.memory_bytes),
        threads: other.threads.or(one.threads),
        work: other.work.or(one.work),
    }
}

/// Refuses to mix closed and open loads: they have no load in common.
fn refuse_modes(requests: &[RunRequest]) -> Result<(), Failure> {
    let closed = |it: &RunRequest| matches!(it.suite.load, LoadSpec::Closed { .. });
    let Some((first, others)) = requests.split_first() else { return Ok(()) };
    if others.iter().any(|it| closed(it) != closed(first) || it.profile != first.profile) {
        return Err(Failure::wrong(
            "--set-a, --set-b, key: one side has an open load and the other a closed one, which \
             cannot be compared; set load.mode for all with --set",
        ));
    }
    Ok(())
}

/// Refuses cells with different ladders.
pub(crate) fn refuse_ladders(requests: &[RunRequest]) -> Result<(), Failure> {
    let ladder = |it: &RunRequest| -> Ladder { it.suite.ladder.clone() };
    match requests.windows(2).all(|pair| ladder(&pair[0]) == ladder(&pair[1])) {
        true => Ok(()),
        false => Err(Failure::wrong(
            "--set-a, --set-b: the two sides would have different ladders; write --points, or set \
             the ladder for both with --set",
        )),
    }
}
