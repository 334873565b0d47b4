//! `plimsoll scale SUITE managed:X|builtin: --over cores=0.5,1,2`: an experiment of one factor, the
//! server's resources.

use clap::Args;
use plimsoll_model::comparison::experiment::Response;
use plimsoll_model::target::TargetSpec;

use super::experiment::design::{Design, Factor, Order};
use super::experiment::file::CommonRun;
use super::experiment::{self, Begin, ExperimentRequest, file, refuse_occupied, requests};
use super::run::default_out;
use crate::exit::{Exit, Failure};
use crate::flags::{Reported, RunArgs};
use crate::interrupts;

const VERB: &str = "scale";

#[derive(Debug, Args)]
#[command(mut_arg("report", |arg| arg.hide(true)))]
pub(crate) struct ScaleArgs {
    /// The server's resources, step by step: cores=0.5,1,2 (a fraction is a quota),
    /// memory=256MiB,1GiB, disk_rate=50MiB/s,100MiB/s, link_rate=100Mbit/s,1000Mbit/s, or
    /// threads=1,4,16 (of the reference server of transactions)
    #[arg(long, required = true, value_name = "WHAT=LIST", value_parser = file::parse_scaled_resource)]
    pub over: Factor,
    /// Take invalid runs too; every output is marked
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Makes the runs of each step, and compares the steps.
pub(crate) fn perform(args: &ScaleArgs, begin: Begin) -> Result<Exit, Failure> {
    let is_started = |text: &String| Ok(TargetSpec::parse(text)?.is_started());
    let started = args.run.targets.iter().map(is_started).collect::<Result<Vec<_>, Failure>>()?;
    if started.contains(&false) {
        return Err(Failure::wrong(
            "plimsoll scale holds a server to less than it could have, so it must start it: write \
             builtin: or managed:NAME",
        ));
    }
    if args.run.report == Reported::Last {
        return Err(Failure::wrong("--report last: every run of plimsoll scale counts"));
    }
    if args.run.shape.is_some() {
        return Err(Failure::wrong(
            "--shape: plimsoll scale compares ladders of loads, which a shape does not have; use \
             plimsoll run",
        ));
    }
    let mut base = args.run.clone();
    let ratios = experiment::split_conditions(&mut base, args.run.repeat)?;
    // With one run a step, a user can follow increasing order best.
    let order = match args.run.repeat {
        1 => Order::Alternating,
        _ => Order::Seeded(args.run.seed),
    };
    let design = Design::new(vec![args.over.clone()], args.run.repeat, order);
    let requests = requests(&design, |_| Ok(CommonRun::Ladder(Box::new(base.clone()))))?;
    let name = &requests[0].suite.name;
    let dir = args.run.out.clone().unwrap_or_else(|| default_out(&format!("{VERB}-{name}")));
    if begin == Begin::New {
        refuse_occupied(&dir, &design)?;
    }
    let request = ExperimentRequest {
        verb: VERB,
        dir: &dir,
        begin,
        design: &design,
        requests: &requests,
        response: Response::default(),
        ratios: &ratios,
        gates: &args.run.gates,
        force: args.force,
        output: args.run.output,
    };
    request.conduct(&interrupts::listen()?)
}
