//! Flags of language model suites, and the values of the suite that they set.

use std::path::PathBuf;

use clap::Args;
use plimsoll_engine::pacer::Recorded;
use plimsoll_model::suite::{ProfileName, Suite};
use plimsoll_model::units::{Nanos, span_text};
use plimsoll_protocol::InputFile;
use plimsoll_protocol::host::arguments::parse_number;
use plimsoll_run::{load_file, protocols};

use super::url::{Set, UrlArgs, absolute};
use crate::exit::Failure;

/// The protocol whose suites have these flags.
pub(super) const PROTOCOL: &str = "llm";
/// Table of the keys of HTTP in its suites.
pub(super) const TRANSPORT: &str = "workload.http";
/// How much longer the requests of a recorded load may take than when they were recorded.
const TRACE_GRACE: Nanos = Nanos::from_secs(3_600);

/// Flags of language model suites only.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of language model suites, llm-chat and its like")]
pub(crate) struct LlmArgs {
    /// Name of the model [default: the server's only model]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Key of the server's API, from an environment variable or a file
    #[arg(long, value_name = "env:VARIABLE|@FILE")]
    pub api_key: Option<String>,
    /// Tokens of a prompt: a number, "uniform 64..256" or "lognormal 200 150 1..2000" (mean,
    /// standard deviation, bounds)
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    pub input_tokens: Option<toml::Value>,
    /// Tokens of an answer, in the same format
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    pub output_tokens: Option<toml::Value>,
    /// Prompts of your own, one a line: JSON with prompt or messages, and optionally max_tokens
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input_tokens", "trace"])]
    pub prompts: Option<PathBuf>,
    /// Recorded load to replay with suite llm-trace: JSON lines of Mooncake, CSV of Azure or
    /// BurstGPT
    #[arg(long, value_name = "FILE", conflicts_with_all = ["clients", "points", "peak", "steps", "requests", "warm_up"])]
    pub trace: Option<PathBuf>,
}

impl LlmArgs {
    /// Sets the values of the flags, and of those of `url` that mean something else for these suites.
    pub(super) fn set(&self, url: &UrlArgs, set: &mut Set) -> Result<(), Failure> {
        set.given("ladder.points", url.clients.map(|clients| vec![f64::from(clients)]));
        if url.requests.is_some() && url.clients.is_none() && url.rate.is_empty() {
            return Err(Failure::wrong(
                "--requests: of which load? write --clients N or --rate N beside it",
            ));
        }
        set.given("workload.model", self.model.clone());
        set.given("workload.input_tokens", self.input_tokens.clone());
        set.given("workload.output_tokens", self.output_tokens.clone());
        set.given("workload.prompts_file", self.prompts.as_deref().map(absolute));
        if let Some(key) = &self.api_key {
            refuse_key(key)?;
            let mut headers = url.headers()?;
            headers.push(format!("Authorization: Bearer {key}"));
            set.to(&format!("{TRANSPORT}.headers"), headers);
        }
        Ok(())
    }

    /// Sets a recorded load: its rate, and the part of it that the profile's window holds.
    pub(super) fn set_trace(
        &self,
        (suite, speed): (&Suite, Option<f64>),
        url: &UrlArgs,
        profile: ProfileName,
        set: &mut Set,
    ) -> Result<Option<InputFile>, Failure> {
        let Some(file) = &self.trace else { return Ok(None) };
        let trace = load_file::read(file, suite)?;
        let its = protocols::of_suite(suite)?.protocol.load_files;
        let recorded = its.and_then(|its| (its.due_times)(&trace.content)).ok_or_else(|| {
            Failure::wrong(format!(
                "{}: it says no time at which its requests are due",
                file.display()
            ))
        })?;
        let speed = speed.unwrap_or(1.0);
        if url.rate.is_empty() {
            set.to("ladder.kind", "points");
            set.to("ladder.points", vec![recorded.rate() * speed]);
        }
        let window = suite.profiles.get(profile).measure;
        let ops = ops_of(&recorded, url.length.unwrap_or(window), speed);
        let name = profile.as_str();
        set.to(&format!("profiles.{name}.ops"), ops as i64);
        let took = Nanos::from_secs_f64(recorded.length().as_secs_f64() / speed);
        let bound = url.length.unwrap_or(window.min(took)) + TRACE_GRACE;
        set.to(&format!("profiles.{name}.measure"), span_text(bound));
        set.to(&format!("profiles.{name}.warm_up"), "0s");
        Ok(Some(trace))
    }
}

/// A number of tokens, or its distribution. The suite checks the text.
fn parse_tokens(text: &str) -> Result<toml::Value, String> {
    let number = parse_number(text).filter(|number| number.fract() == 0.0 && *number < 1e15);
    Ok(number.map_or_else(|| text.into(), |number| (number as i64).into()))
}

/// Refuses a key on the command line, where everybody on the host could see it.
fn refuse_key(key: &str) -> Result<(), Failure> {
    let source = key.strip_prefix("env:").or(key.strip_prefix('@'));
    match source.is_some_and(|source| !source.is_empty()) {
        true => Ok(()),
        false => Err(Failure::wrong(
            "--api-key: write env:VARIABLE or @FILE, which holds the key; others on this host see \
             what stands on a command line",
        )),
    }
}

/// Requests of the trace that are due within a window, at least two.
fn ops_of(recorded: &Recorded, window: Nanos, speed: f64) -> u64 {
    let of_trace = Nanos::from_secs_f64(window.as_secs_f64() * speed);
    recorded.ops_within(of_trace).max(2)
}
