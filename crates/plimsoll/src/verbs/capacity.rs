//! `plimsoll capacity SUITE TARGET --within LIMITS`: the highest load within limits.

use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::capacity::{CapacityAsked, LoadFigure};
use plimsoll_model::suite::{Ladder, LoadSpec};

use super::run::{refuse_goodput, refuse_streams, request_of, run_and_show, write_junit};
use super::url_flags::URL_SUITE;
use crate::cli::{CapacityArgs, Reported, RunArgs};
use crate::coordinator::RunRequest;
use crate::exit::{Exit, Failure};
use crate::signals::Signals;

/// What an open load of web-url begins as; the search names its loads itself.
const ANY_RATE: f64 = 1.0;

/// Searches the capacity, and shows it.
pub(crate) fn perform(args: &CapacityArgs) -> Result<Exit, Failure> {
    refuse_ladder(&args.run)?;
    let request = request(args)?;
    BundleWriter::refuse_occupied(&request.out)?;
    let signals = Signals::listen()?;
    let end = run_and_show(&request, &signals, args.run.output)?;
    write_junit(&args.run, std::slice::from_ref(&end.result))?;
    Ok(end.exit)
}

/// Flags of a ladder make no sense: the loads are searched.
fn refuse_ladder(run: &RunArgs) -> Result<(), Failure> {
    let (ladder, url) = (&run.ladder, &run.url);
    let given = [
        (!ladder.points.is_empty(), "--points"),
        (ladder.peak.is_some(), "--peak"),
        (ladder.steps.is_some(), "--steps"),
        (url.clients.is_some(), "--clients"),
        (!url.rate.is_empty(), "--rate"),
        (run.repeat > 1, "--repeat"),
        (run.report == Reported::Last, "--report"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, flag)) => Err(Failure::wrong(format!(
            "{flag}: plimsoll capacity finds the load itself and runs it again; leave {flag} out, \
             or use plimsoll run"
        ))),
    }
}

fn request(args: &CapacityArgs) -> Result<RunRequest, Failure> {
    let mut run = args.run.clone();
    // As users ask of a URL: so many requests a second, unless they name what a user does.
    if run.suite == URL_SUITE && args.think.is_none() && args.users_per_client.is_none() {
        run.url.rate = vec![ANY_RATE];
    }
    let mut request = request_of(&run)?;
    match (&mut request.suite.load, args.think) {
        (LoadSpec::Closed { think, .. }, Some(asked)) => {
            think.mean = asked;
            request.suite.profiles.get_mut(request.profile).think_scale = 1.0;
        }
        (LoadSpec::Open { .. }, _) if args.users_per_client.is_some() => {
            return Err(Failure::wrong(format!(
                "--users-per-client: suite {} has an open load, whose capacity is in ops/s; write \
                 --think, the pause of a user, to have it in users",
                request.suite.name
            )));
        }
        _ => {}
    }
    if let Ladder::Think { clients, .. } = request.suite.ladder {
        // Of such a ladder the think time is given and the clients are searched.
        if args.think.is_none() {
            return Err(Failure::wrong(format!(
                "suite {} has a ladder of think times: write --think, for example --think 25s, to \
                 search how many clients that is",
                request.suite.name
            )));
        }
        request.suite.ladder = Ladder::Points { points: vec![f64::from(clients)] };
    }
    for limit in args.within.limits() {
        let flag = format!("--within {}", limit.figure.name());
        refuse_streams(&request.suite, &flag, limit.figure.needs_streams())?;
        refuse_goodput(&request.suite, &flag, limit.figure == LoadFigure::Goodput)?;
    }
    request.capacity = Some(CapacityAsked {
        within: args.within.clone(),
        think: args.think,
        users_per_client: args.users_per_client.unwrap_or(1.0),
    });
    Ok(request)
}
