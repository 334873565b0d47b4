//! Converts cells to the requests of their runs.

use plimsoll_model::disclosure::Setting;
use plimsoll_model::event::ServerLimits;
use plimsoll_model::suite::{Ladder, LoadSpec};
use plimsoll_model::target::TargetSpec;
use plimsoll_run::coordinator::RunRequest;

use super::design::{Change, Design};
use super::file::CommonRun;
use crate::exit::Failure;
use crate::flags::RunArgs;

/// The request of each cell's runs. `common_run` reads the run with the flags of a cell. Its output
/// directory is not set yet.
pub(crate) fn requests(
    design: &Design,
    common_run: impl Fn(&[String]) -> Result<CommonRun, Failure>,
) -> Result<Vec<RunRequest>, Failure> {
    let of_cell = |cell| cell_run(design, cell, &common_run);
    let mut all: Vec<CommonRun> = (0..design.cells.len()).map(of_cell).collect::<Result<_, _>>()?;
    let starts = |args: &RunArgs| {
        let is_started = |text: &String| TargetSpec::parse(text).is_ok_and(|it| it.is_started());
        args.targets.iter().any(is_started)
    };
    let mut all_args: Vec<&mut RunArgs> = all.iter_mut().map(CommonRun::args).collect();
    if all_args.iter().any(|args| starts(args)) {
        // The option is for the servers of the other cells alone.
        let others = all_args.iter_mut().filter(|args| !starts(args));
        others.for_each(|args| args.agents.listen_on = None);
    }
    let request = |(cell, run): (usize, &CommonRun)| {
        let mut request = run.request()?;
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

/// The run with the changes of a cell's levels to its command line.
fn cell_run(
    design: &Design,
    cell: usize,
    common_run: impl Fn(&[String]) -> Result<CommonRun, Failure>,
) -> Result<CommonRun, Failure> {
    let levels = design.factors.iter().zip(&design.cells[cell].levels);
    let changes: Vec<&Change> =
        levels.flat_map(|(factor, level)| &factor.levels[*level].changes).collect();
    let flag = |change: &&Change| match change {
        Change::Flag(flag) => flag.clone(),
        _ => None,
    };
    let flags: Vec<String> = changes.iter().filter_map(flag).collect();
    let mut run = common_run(&flags)?;
    let args = run.args();
    args.repeat = 1;
    for change in changes {
        match change {
            Change::Keys(overrides) => args.set.extend_from_slice(overrides),
            Change::Target(target) => args.targets = vec![target.clone()],
            Change::Flag(_) | Change::Server(_) | Change::Commands(_) | Change::AfterStart(_) => {}
        }
    }
    Ok(run)
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
        Change::Commands(_) | Change::Keys(_) | Change::Flag(_) | Change::Target(_) => {}
    }
    Ok(())
}

/// Combines the limits of two factors.
fn both(one: ServerLimits, other: ServerLimits) -> ServerLimits {
    ServerLimits {
        cores: other.cores.or(one.cores),
        quota_cores: other.quota_cores.or(one.quota_cores),
        memory_bytes: other.memory_bytes.or(one.memory_bytes),
        disk_bytes_per_s: other.disk_bytes_per_s.or(one.disk_bytes_per_s),
        disk_transfers_per_s: other.disk_transfers_per_s.or(one.disk_transfers_per_s),
        link_bits_per_s: other.link_bits_per_s.or(one.link_bits_per_s),
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
