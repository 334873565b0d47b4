//! `plimsoll capacity SUITE TARGET --within LIMITS`: the highest load within limits.

use clap::Args;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::capacity::{CapacityRequest, LoadFigure, Within};
use plimsoll_model::suite::{Ladder, LoadSpec};
use plimsoll_run::coordinator::RunRequest;

use super::run::{refuse_goodput, refuse_streams, request_of, run_and_show, write_junit};
use crate::exit::{Exit, Failure};
use crate::flags::url::{URL_SUITE, USERS_SUITE, has_users};
use crate::flags::values::parse_number;
use crate::flags::{Reported, RunArgs, hide_load_flags};
use crate::interrupts;

/// Initial rate of an open load of web-url; the search sets its loads itself.
const ANY_RATE: f64 = 1.0;
/// More than any server has.
const USERS_MAX: f64 = 1e9;

// The search sets the loads itself: the flags of a ladder are answered, but hidden.
#[derive(Debug, Args)]
#[command(mut_args(hide_load_flags))]
pub(crate) struct CapacityArgs {
    /// Limits the load must stay within, for example p99<50ms,errors<0.1% or
    /// first_output.p90<500ms,tpot.p90<50ms; figures: mean, p50, p90, p95, p99, p999, max of the
    /// response, of first_output, first_visible, chunk_gap, tpot; errors, goodput (goodput>0.95); of
    /// users page.NAME.p95, journey.p95 and journey.completed>99%; the load must always be
    /// sustained
    #[arg(long, required = true, value_name = "LIMITS")]
    pub within: Within,
    /// How many users one client represents [default: 1; of methods whose clients are no users,
    /// none]
    #[arg(long, value_name = "N", value_parser = parse_users)]
    pub users_per_client: Option<f64>,
    /// Suite web-users: search how many sessions may arrive per second, instead of how many users
    /// there may be
    #[arg(long)]
    pub arrive: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// A number of users, or of users of a client.
pub(crate) fn parse_users(text: &str) -> Result<f64, String> {
    match parse_number(text) {
        Some(value) if value > 0.0 && value <= USERS_MAX => Ok(value),
        _ => Err("write a number of users above zero, for example 5".to_owned()),
    }
}

/// Searches the capacity, and shows it.
pub(crate) fn perform(args: &CapacityArgs) -> Result<Exit, Failure> {
    refuse_ladder(&args.run)?;
    let request = request(args)?;
    BundleWriter::refuse_occupied(&request.out)?;
    let signals = interrupts::listen()?;
    let end = run_and_show(&request, &signals, args.run.output)?;
    write_junit(&args.run, std::slice::from_ref(&end.result))?;
    Ok(Exit::from(&end))
}

/// Refuses flags of a ladder: the loads are searched.
pub(crate) fn refuse_ladder(run: &RunArgs) -> Result<(), Failure> {
    let (ladder, url) = (&run.ladder, &run.url);
    let given = [
        (!ladder.points.is_empty(), "--points"),
        (ladder.peak.is_some(), "--peak"),
        (ladder.steps.is_some(), "--steps"),
        (url.clients.is_some(), "--clients"),
        (!url.rate.is_empty(), "--rate"),
        (!url.sessions.is_empty(), "--sessions"),
        (run.shape.is_some(), "--shape"),
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

/// The request that the flags describe.
pub(crate) fn request(args: &CapacityArgs) -> Result<RunRequest, Failure> {
    let mut run = args.run.clone();
    let mut think_arg = run.url.think;
    if args.arrive {
        if !has_users(&run.suite) {
            return Err(Failure::wrong(format!(
                "--arrive: sessions arrive in suite {USERS_SUITE}, not in {}; leave it out",
                run.suite
            )));
        }
        run.url.sessions = vec![ANY_RATE];
    }
    // A URL's load is open, in requests per second, unless the flags describe a user's behaviour.
    if run.suite != URL_SUITE {
        think_arg = run.take_think();
    } else if think_arg.is_none() && args.users_per_client.is_none() {
        if run.like.is_some() {
            return Err(Failure::wrong(format!(
                "--like: plimsoll capacity sets the load of suite {URL_SUITE} itself; leave --like \
                 out, or give --think"
            )));
        }
        run.url.rate = vec![ANY_RATE];
    }
    let mut request = request_of(&run)?;
    if request.suite.workload.is_recorded() {
        return Err(Failure::wrong(format!(
            "suite {}: a replay has the load of its log and no other; play it faster with plimsoll \
             run … --speed K, or search the capacity of the model",
            request.suite.name
        )));
    }
    match (&mut request.suite.load, think_arg) {
        (LoadSpec::Closed { think, .. }, Some(requested)) => {
            think.mean = requested.mean;
            think.distribution = requested.distribution.unwrap_or(think.distribution);
            request.suite.profiles.get_mut(request.profile).think_scale = 1.0;
        }
        (LoadSpec::Open { .. }, _) if args.users_per_client.is_some() => {
            return Err(Failure::wrong(format!(
                "--users-per-client: suite {} has an open load, whose capacity is in {}; write --think, \
                 the pause of a user, to have it in users",
                request.suite.name,
                request.suite.load.unit(request.suite.metric)
            )));
        }
        _ => {}
    }
    if let Ladder::Think { clients, .. } = request.suite.ladder {
        // With a ladder of think times, the think time is fixed and the clients are searched.
        if think_arg.is_none() {
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
    request.capacity = Some(CapacityRequest {
        within: args.within.clone(),
        think: think_arg.map(|think| think.mean),
        users_per_client: args.users_per_client,
    });
    Ok(request)
}
