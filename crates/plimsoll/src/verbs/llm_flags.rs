//! Flags of language model suites as values of the suite.

use plimsoll_engine::pacer::Recorded;
use plimsoll_model::suite::{Override, ProfileName};
use plimsoll_model::units::{Nanos, span_text};
use plimsoll_protocol::InputFile;

use super::flag_values::{Set, absolute, headers};
use crate::cli::RunArgs;
use crate::exit::Failure;
use crate::{load_file, protocols, suite_source};

/// The protocol whose suites have these flags.
const PROTOCOL: &str = "llm";
/// Where its suites have the keys of HTTP.
pub(super) const TRANSPORT: &str = "workload.http";
/// How much longer the requests of a recorded load may take than when it was recorded.
const TRACE_GRACE: Nanos = Nanos::from_secs(3_600);

/// Flags of language model suites are given, and the suite is one.
pub(super) fn has_flags(args: &RunArgs) -> Result<bool, Failure> {
    let own = args.llm.first_given();
    let shared = args.url.first_given().or(args.url.first_of_web());
    if own.or(shared).is_none() && args.ladder.peak.is_none() {
        return Ok(false);
    }
    let suite = suite_source::find(&args.suite, &[])?;
    if suite.protocol != PROTOCOL {
        return match own {
            None => Ok(false),
            Some(flag) => Err(Failure::wrong(format!(
                "{flag} belongs to language model suites, such as llm-chat; {} is none",
                suite.name
            ))),
        };
    }
    match args.url.first_of_requests() {
        None => Ok(true),
        Some(flag) => Err(Failure::wrong(format!(
            "{flag} belongs to suite web-url; the requests of {} are prompts: write --input-tokens \
             and --output-tokens, --prompts FILE, or --set workload.extra.NAME=VALUE for a further \
             field",
            suite.name
        ))),
    }
}

/// Sets what the flags say.
pub(super) fn set(
    args: &RunArgs,
    profile: ProfileName,
    set: &mut Set,
) -> Result<Option<InputFile>, Failure> {
    let llm = &args.llm;
    set.given("ladder.points", args.url.clients.map(|clients| vec![f64::from(clients)]));
    if args.url.requests.is_some() && args.url.clients.is_none() && args.url.rate.is_empty() {
        return Err(Failure::wrong(
            "--requests: of which load? write --clients N or --rate N beside it",
        ));
    }
    set.given("workload.model", llm.model.clone());
    set.given("workload.input_tokens", llm.input_tokens.clone());
    set.given("workload.output_tokens", llm.output_tokens.clone());
    set.given("workload.prompts_file", llm.prompts.as_deref().map(absolute));
    if let Some(key) = &llm.api_key {
        refuse_key(key)?;
        let mut headers = headers(&args.url)?;
        headers.push(format!("Authorization: Bearer {key}"));
        set.to(&format!("{TRANSPORT}.headers"), headers);
    }
    set_trace(args, profile, set)
}

/// A key that stands on the command line is seen by everybody on the host.
fn refuse_key(key: &str) -> Result<(), Failure> {
    let place = key.strip_prefix("env:").or(key.strip_prefix('@'));
    match place.is_some_and(|place| !place.is_empty()) {
        true => Ok(()),
        false => Err(Failure::wrong(
            "--api-key: write env:VARIABLE or @FILE, which holds the key; others on this host see \
             what stands on a command line",
        )),
    }
}

/// A recorded load: its rate, and as much of it as the profile's window holds.
fn set_trace(
    args: &RunArgs,
    profile: ProfileName,
    set: &mut Set,
) -> Result<Option<InputFile>, Failure> {
    let Some(file) = &args.llm.trace else { return Ok(None) };
    let all: Vec<Override> = set.values().iter().chain(&args.set).cloned().collect();
    let suite = suite_source::find(&args.suite, all.as_slice())?;
    let trace = load_file::read(file, &suite)?;
    let its = protocols::of(&suite)?.protocol.load_files;
    let recorded = its.and_then(|its| (its.due_times)(&trace.content)).ok_or_else(|| {
        Failure::wrong(format!("{}: it says no time at which its requests are due", file.display()))
    })?;
    let speed = args.llm.speed.unwrap_or(1.0);
    if args.url.rate.is_empty() {
        set.to("ladder.kind", "points");
        set.to("ladder.points", vec![recorded.rate() * speed]);
    }
    let window = suite.profiles.get(profile).measure;
    let ops = ops_of(&recorded, args.url.length.unwrap_or(window), speed);
    let name = profile.as_str();
    set.to(&format!("profiles.{name}.ops"), ops as i64);
    let took = Nanos::from_secs_f64(recorded.length().as_secs_f64() / speed);
    let bound = args.url.length.unwrap_or(window.min(took)) + TRACE_GRACE;
    set.to(&format!("profiles.{name}.measure"), span_text(bound));
    set.to(&format!("profiles.{name}.warm_up"), "0s");
    Ok(Some(trace))
}

/// Requests of the trace that are due within a window, two at least.
fn ops_of(recorded: &Recorded, window: Nanos, speed: f64) -> u64 {
    let of_trace = Nanos::from_secs_f64(window.as_secs_f64() * speed);
    recorded.ops_within(of_trace).max(2)
}
