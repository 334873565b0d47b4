//! `plimsoll recover SUITE TARGET`: does the server come back after a pulse?

use clap::Args;
use plimsoll_model::bundle::BundleWriter;
use plimsoll_model::recovery::{RecoverLoad, RecoverRequest, RecoveryOutcome, span_of};
use plimsoll_model::suite::{Ladder, LoadSpec, Peak};
use plimsoll_model::units::Nanos;
use plimsoll_run::coordinator::RunRequest;

use super::run::{request_of, run_and_show, write_junit};
use crate::exit::{Exit, Failure};
use crate::flags::shape::refuse_others;
use crate::flags::url::{URL_SUITE, USERS_SUITE, has_users};
use crate::flags::values::{parse_rate, parse_span_arg};
use crate::flags::{Reported, RunArgs, hide_load_flags};
use crate::interrupts;

/// Initial rate; the search sets its loads itself.
const ANY_RATE: f64 = 1.0;
/// A pulse of a hundred times the load is an attack.
const PULSE_MAX: f64 = 100.0;

// The search sets the loads itself: the flags of a ladder are answered, but hidden.
#[derive(Debug, Args)]
#[command(mut_args(hide_load_flags))]
pub(crate) struct RecoverArgs {
    /// Load before and after the pulse: 0.8x of the peak, which is searched first, or ops/s, which
    /// needs no search
    #[arg(long, default_value = "0.8x", value_name = "RATIOx|RATE", value_parser = parse_at)]
    pub at: RecoverLoad,
    /// How many times that load the pulse is
    #[arg(long, default_value = "2x", value_name = "RATIOx", value_parser = parse_pulse)]
    pub pulse: f64,
    /// Length of the pulse
    #[arg(long, default_value = "10s", value_name = "SPAN", value_parser = parse_span_arg)]
    pub pulse_for: Nanos,
    /// How long the server is watched after it [default: three times as long as a healthy queue
    /// needs, between 30 s and 10 min]
    #[arg(long, value_name = "SPAN", value_parser = parse_span_arg)]
    pub watch: Option<Nanos>,
    #[command(flatten)]
    pub run: RunArgs,
}

fn parse_at(text: &str) -> Result<RecoverLoad, String> {
    match text.strip_suffix(['x', '×']) {
        None => parse_rate(text).map(RecoverLoad::PerSecond),
        Some(ratio) => match ratio.trim().parse::<f64>() {
            Ok(ratio) if ratio > 0.0 && ratio < 1.0 => Ok(RecoverLoad::Ratio(ratio)),
            _ => Err("write a share of the peak below 1, for example 0.8x, or ops/s".to_owned()),
        },
    }
}

fn parse_pulse(text: &str) -> Result<f64, String> {
    let ratio = text.trim().trim_end_matches(['x', '×']).parse::<f64>();
    match ratio {
        Ok(ratio) if ratio > 1.0 && ratio <= PULSE_MAX => Ok(ratio),
        _ => Err("write how many times the load the pulse is, above 1, for example 2x".to_owned()),
    }
}

/// Finds the load, pulses, watches, and answers in one sentence.
pub(crate) fn perform(args: &RecoverArgs) -> Result<Exit, Failure> {
    let request = request(args)?;
    BundleWriter::refuse_occupied(&request.out)?;
    let signals = interrupts::listen()?;
    let end = run_and_show(&request, &signals, args.run.output)?;
    write_junit(&args.run, std::slice::from_ref(&end.result))?;
    let recovered = end.result.recovery.iter().all(|it| it.outcome == RecoveryOutcome::Recovered);
    let exit = Exit::from(&end);
    Ok(if recovered { exit } else { exit.max(Exit::Invalid) })
}

/// The request that the flags describe.
fn request(args: &RecoverArgs) -> Result<RunRequest, Failure> {
    let mut run = args.run.clone();
    refuse_loads(&run)?;
    refuse_others(&run, "plimsoll recover")?;
    match &run.suite[..] {
        URL_SUITE => run.ladder.peak = Some(Peak::Auto),
        suite if has_users(suite) => run.url.sessions = vec![ANY_RATE],
        _ => {}
    }
    let mut request = request_of(&run)?;
    let suite = &mut request.suite;
    if matches!(suite.load, LoadSpec::Closed { .. }) {
        return Err(Failure::wrong(format!(
            "plimsoll recover: suite {} has a closed load, whose clients wait for a slow server \
             instead of adding to its queue, so a pulse shows nothing; use {URL_SUITE}, \
             {USERS_SUITE} or another suite with an open load",
            suite.name
        )));
    }
    let profile = suite.profiles.get(request.profile);
    let recover = RecoverRequest {
        at: args.at,
        pulse: args.pulse,
        pulse_for_ns: args.pulse_for,
        before_ns: profile.measure.max(span_of(args.pulse_for)),
        watch_ns: args.watch,
    };
    match args.at {
        RecoverLoad::Ratio(_) => {
            suite.ladder = Ladder::Auto { steps: 1, headroom: 1.0 };
            request.options.recover = Some(recover);
        }
        // There is nothing to search for.
        RecoverLoad::PerSecond(_) => {
            let shape = recover.shape(None).map_err(|e| Failure::wrong(format!("--at: {e}")))?;
            suite.ladder = Ladder::Points { points: vec![shape.max().ceil()] };
            request.options.shape = Some(shape);
        }
    }
    Ok(request)
}

/// Refuses flags of other loads: the load is searched.
fn refuse_loads(run: &RunArgs) -> Result<(), Failure> {
    let url = &run.url;
    let given = [
        (run.shape.is_some(), "--shape"),
        (url.clients.is_some(), "--clients"),
        (!url.rate.is_empty(), "--rate"),
        (!url.sessions.is_empty(), "--sessions"),
        (run.repeat > 1, "--repeat"),
        (run.report == Reported::Last, "--report"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, flag)) => Err(Failure::wrong(format!(
            "{flag}: plimsoll recover finds the load itself, or takes it from --at; leave {flag} \
             out, or use plimsoll run with --shape"
        ))),
    }
}
