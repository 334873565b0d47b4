//! Flags of `plimsoll serve llm`, and what they start.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, ValueEnum};
use plimsoll_model::calibrated::CalibratedSpec;
use plimsoll_model::units::Nanos;
use plimsoll_protocol::host::arguments::{
    parse_count, parse_rate, parse_span_arg, parse_span_or_none_arg,
};
use plimsoll_protocol::host::{Console, HostError};
use plimsoll_servers::{cores, raise_descriptor_limit};

use crate::server::law::{BatchSpec, First, LawSpec};
use crate::server::{LlmConfig, LlmServer, UsageStyle};

/// How it is measured.
const RUNS: [&str; 2] =
    ["llm-chat URL", "llm-chat URL --clients 8 --for 10s --set workload.output_tokens=64"];
/// More tokens in a chunk would not fit into the four digits of its length.
const TOKENS_PER_CHUNK_MAX: i64 = 1_000;

/// Its flags.
pub(super) fn command() -> clap::Command {
    ServeLlmArgs::augment_args(clap::Command::new("llm").about(
        "The reference server of language models: no model, but the timing of one by a known law",
    ))
}

/// Serves until it is stopped.
pub(super) fn serve(matches: &clap::ArgMatches, console: &Console) -> Result<(), HostError> {
    let args = ServeLlmArgs::from_arg_matches(matches)?;
    // First of all, so that no thread of ours runs elsewhere; serving reports a failure.
    let _ = cores::pin_current_thread(&args.cores);
    raise_descriptor_limit();
    let server = LlmServer::bind(&args.config())?;
    let stop = console.listens(&server.url(), args.stop_with_stdin, &RUNS)?;
    let late = server.serve_until(&stop)?;
    if let Some(text) = late.filter(|_| !args.stop_with_stdin) {
        (console.note)(&text);
    }
    Ok(())
}

#[derive(Debug, Args)]
struct ServeLlmArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Name of the model
    #[arg(long, value_name = "NAME", default_value = "plimsoll")]
    model: String,
    /// Most requests at work at a time; more wait
    #[arg(long, value_name = "N", default_value = "64")]
    slots: NonZeroU32,
    /// Prompt tokens computed in a second
    #[arg(long, value_name = "N", default_value = "20k", value_parser = parse_rate)]
    prefill: f64,
    /// Time of a step, in which each request at work gets a token
    #[arg(long, value_name = "TIME", default_value = "8ms", value_parser = parse_span_arg, alias = "work")]
    step: Nanos,
    /// Time more of a step for each request that gets a token in it
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = parse_span_or_none_arg)]
    step_per_slot: Nanos,
    /// Most prompt tokens that are computed in a step; a longer prompt takes several
    #[arg(long, value_name = "N", default_value = "2048")]
    chunk: NonZeroU32,
    /// Tokens of prompts and answers that memory has room for; the newest request is preempted when
    /// there is none
    #[arg(long, value_name = "N", default_value = "256k", value_parser = parse_count)]
    kv_tokens: u64,
    /// Most tokens of a prompt and its answer; a request for more is refused
    #[arg(long, value_name = "N", default_value = "32768")]
    context: NonZeroU32,
    /// Compute the beginnings of prompts, in blocks of 16 tokens, only once
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Switch::Off)]
    prefix_cache: Switch,
    /// Instead of a batch: each request by itself, its first token after so long, the others a step
    /// apart
    #[arg(long, value_name = "TIME", value_parser = parse_span_arg, conflicts_with_all = ["slots", "prefill", "step_per_slot", "chunk", "kv_tokens", "prefix_cache"])]
    first: Option<Nanos>,
    /// End each answer by itself after N tokens, unless the request says ignore_eos [default: only
    /// max_tokens ends one]
    #[arg(long, value_name = "N")]
    answer: Option<NonZeroU32>,
    /// Tokens in a chunk of a stream
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=TOKENS_PER_CHUNK_MAX))]
    tokens_per_chunk: u32,
    /// Tokens of reasoning before the text of each answer to a chat
    #[arg(long, value_name = "N", default_value_t = 0)]
    reasoning: u32,
    /// The most usage that answers give, where a request wants it
    #[arg(long, value_enum, value_name = "HOW", default_value_t = UsageStyle::Continuous)]
    usage: UsageStyle,
    /// Close the connection after each streamed answer, although it was to be kept
    #[arg(long)]
    close_after_stream: bool,
    /// Send a comment on each stream that is silent for so long
    #[arg(long, value_name = "TIME", value_parser = parse_span_arg)]
    ping: Option<Nanos>,
    /// Refuse requests without this key
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// Write what happened to each request here, at the end
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Core to use; the server does not sleep there while there are requests
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<u32>,
    /// Sleep until shortly before a chunk is due, on the cores of --cores too
    #[arg(long)]
    sleep: bool,
    /// Give each request its first token when a queue of known law would have served it, for
    /// example service=exp:1ms,servers=4
    #[arg(long, value_name = "SPEC", hide = true, conflicts_with = "first")]
    calibrated: Option<CalibratedSpec>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

impl ServeLlmArgs {
    fn batch(&self) -> BatchSpec {
        BatchSpec {
            slots: self.slots.get(),
            prefill_tokens_per_s: self.prefill,
            step: self.step,
            step_per_slot: self.step_per_slot,
            chunk_tokens: self.chunk.get(),
            kv_tokens: self.kv_tokens,
            has_prefix_cache: self.prefix_cache == Switch::On,
        }
    }

    fn config(&self) -> LlmConfig {
        let law = match (&self.calibrated, self.first) {
            (Some(queue), _) => LawSpec::Alone(First::Queue(queue.clone()), self.step),
            (None, Some(first)) => LawSpec::Alone(First::After(first), self.step),
            (None, None) => LawSpec::Batch(self.batch()),
        };
        LlmConfig {
            listen: self.listen,
            law,
            model: self.model.clone(),
            context_tokens: self.context.get(),
            ends_after_tokens: self.answer.map(NonZeroU32::get),
            tokens_per_chunk: self.tokens_per_chunk,
            reasoning_tokens: self.reasoning,
            usage: self.usage,
            closes_after_stream: self.close_after_stream,
            ping: self.ping,
            api_key: self.api_key.clone(),
            log: self.log.clone(),
            cores: if self.sleep { Vec::new() } else { self.cores.clone() },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    /// Yes
    On,
    /// No
    Off,
}
