//! Flags of language model suites.

use std::path::PathBuf;

use clap::Args;

use super::values::{first_of, parse_rate, parse_tokens};

/// Flags of language model suites only.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of language model suites, llm-chat and its like")]
pub(crate) struct LlmArgs {
    /// Name of the model [default: the only one that the server has]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Key of the server's API, from an environment variable or a file
    #[arg(long, value_name = "env:VARIABLE|@FILE")]
    pub api_key: Option<String>,
    /// Tokens of a prompt: a number, "uniform 64..256" or "lognormal 200 150 1..2000" (mean,
    /// standard deviation, bounds)
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    pub input_tokens: Option<toml::Value>,
    /// Tokens of an answer, likewise
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    pub output_tokens: Option<toml::Value>,
    /// Prompts of your own, one a line: JSON with prompt or messages, and perhaps max_tokens
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input_tokens", "trace"])]
    pub prompts: Option<PathBuf>,
    /// Recorded load to replay with suite llm-trace: JSON lines of Mooncake, CSV of Azure or
    /// BurstGPT
    #[arg(long, value_name = "FILE", conflicts_with_all = ["clients", "points", "peak", "steps", "requests", "warm_up"])]
    pub trace: Option<PathBuf>,
    /// With --trace: so many times as fast as recorded [default: 1]
    #[arg(long, value_name = "K", requires = "trace", conflicts_with = "rate", value_parser = parse_rate)]
    pub speed: Option<f64>,
}

impl LlmArgs {
    /// The first flag given, if any.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        first_of([
            (self.model.is_some(), "--model"),
            (self.api_key.is_some(), "--api-key"),
            (self.input_tokens.is_some(), "--input-tokens"),
            (self.output_tokens.is_some(), "--output-tokens"),
            (self.prompts.is_some(), "--prompts"),
            (self.trace.is_some(), "--trace"),
            (self.speed.is_some(), "--speed"),
        ])
    }
}
