//! `plimsoll scale SUITE managed:X|builtin: --over cores=0.5,1,2`: an experiment of one factor, what
//! the server gets.

use plimsoll_model::comparison::experiment::Response;
use plimsoll_model::target::TargetSpec;

use super::experiment::design::{Design, Order};
use super::experiment::{self, Asked, Begin, file, refuse_occupied, requests};
use super::run::default_out;
use crate::cli::{Reported, ScaleArgs};
use crate::exit::{Exit, Failure};
use crate::signals::Signals;

const VERB: &str = "scale";

/// Makes the runs of each step, and lays the steps side by side.
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
    let mut base = args.run.clone();
    let ratios = experiment::split_conditions(&mut base);
    // Of one run a step, the order of growth is the one a user can follow.
    let order = match args.run.repeat {
        1 => Order::Alternating,
        _ => Order::Seeded(args.run.seed),
    };
    let design = Design::new(vec![file::factor_of_scale(&args.over)], args.run.repeat, order);
    let requests = requests(&base, &design)?;
    let name = &requests[0].suite.name;
    let dir = args.run.out.clone().unwrap_or_else(|| default_out(&format!("{VERB}-{name}")));
    if begin == Begin::New {
        refuse_occupied(&dir, &design)?;
    }
    let asked = Asked {
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
    asked.conduct(&Signals::listen()?)
}
