//! The `[workload]` table of suites with `protocol = "llm"`.

use plimsoll_http::parameters::{Connections, HttpWorkload, check_headers, complete_http2};
use plimsoll_model::suite::{AsTable as _, Parameters, SuiteError, TableReader};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use toml::Table;

use super::lengths::{Length, TOKENS_MAX};

/// Of `[workload.http]` what the requests here decide themselves.
const OWN_KEYS: [&str; 11] = [
    "requests",
    "opened_per_s",
    "method",
    "expect",
    "first_check",
    "stream",
    "verify_one_in",
    "body",
    "body_file",
    "urls",
    "file_set",
];
/// Fields of a request's body that a suite cannot set, since requests have their own.
const OWN_FIELDS: [&str; 10] = [
    "model",
    "messages",
    "prompt",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "min_tokens",
    "ignore_eos",
    "n",
];
/// Turns of a conversation.
const EXCHANGES_MAX: u32 = 1_000;
/// System prompts that requests share.
const PREFIXES_MAX: u32 = 1_000_000;

/// Parameters of a workload of generated text, every default explicit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LlmWorkload {
    /// Name of the model; empty means the one that the server has.
    pub model: String,
    /// What the requests ask for.
    pub endpoint: Endpoint,
    /// Tokens of a prompt: a number, "uniform 64..256" or "lognormal 200 150 1..2000" (mean,
    /// standard deviation, bounds). In a conversation, of its first exchange.
    pub input_tokens: Length,
    /// Tokens of an answer, likewise.
    pub output_tokens: Length,
    /// Position of the part that makes a prompt differ from all others, so that a server's cache
    /// does not have it.
    pub salt: Salt,
    /// Of `input_tokens`, those of a system prompt that requests share.
    #[schemars(range(min = 0, max = TOKENS_MAX))]
    pub prefix_tokens: u32,
    /// Different system prompts; each request has one of them.
    #[schemars(range(min = 1, max = PREFIXES_MAX))]
    pub prefixes: u32,
    /// Questions of a conversation; each is sent with all before it and their answers.
    #[schemars(range(min = 1, max = EXCHANGES_MAX))]
    pub turns: u32,
    /// Tokens of the questions after the first.
    pub turn_tokens: Length,
    /// File of prompts to send instead, one a line: JSON with `prompt` or `messages`, and perhaps
    /// `max_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_file: Option<String>,
    /// Ask the server to go on after the model would have ended, so that answers are as long as
    /// they are to be.
    pub ignore_eos: Offer,
    /// Ask for answers that are no shorter than `output_tokens`.
    pub min_tokens: Offer,
    /// Ask for the tokens so far with each chunk.
    pub continuous_usage: Offer,
    /// Before any load, send one request and look at its answer, and a few more to learn how many
    /// tokens a word is.
    pub first_check: bool,
    /// Further fields of each request, for example `temperature`.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub extra: Table,
    /// Header fields, TLS and connections, as suites of protocol `http` have them.
    #[serde(serialize_with = "transport")]
    #[schemars(schema_with = "transport_schema")]
    pub http: HttpWorkload,
}

/// What the requests ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `/v1/chat/completions`: messages, which the server puts into the model's template.
    #[default]
    Chat,
    /// `/v1/completions`: a text as it stands.
    Completions,
}

impl Endpoint {
    /// Path below the target's own.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "chat/completions",
            Self::Completions => "completions",
        }
    }
}

/// Where a prompt differs from all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Salt {
    /// Before everything: nothing is shared.
    #[default]
    First,
    /// After the system prompt, which may be cached.
    AfterPrefix,
    /// Nowhere: prompts of a file are sent as they stand.
    None,
}

/// Whether a field that not every server knows is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// Unless the server refuses it.
    #[default]
    Auto,
    /// Whatever the server reports.
    On,
    /// No.
    Off,
}

impl Parameters for LlmWorkload {
    fn generates(&self) -> bool {
        true
    }
}

impl Default for LlmWorkload {
    fn default() -> Self {
        Self {
            model: String::new(),
            endpoint: Endpoint::default(),
            input_tokens: Length::Fixed(512),
            output_tokens: Length::Fixed(128),
            salt: Salt::default(),
            prefix_tokens: 0,
            prefixes: 1,
            turns: 1,
            turn_tokens: Length::Fixed(64),
            prompts_file: None,
            ignore_eos: Offer::default(),
            min_tokens: Offer::default(),
            continuous_usage: Offer::default(),
            first_check: true,
            extra: Table::new(),
            http: HttpWorkload::default(),
        }
    }
}

/// The keys of the transport, without those that the requests here decide.
fn transport<S: Serializer>(http: &HttpWorkload, serializer: S) -> Result<S::Ok, S::Error> {
    let mut table = http.as_table();
    OWN_KEYS.iter().for_each(|key| drop(table.remove(*key)));
    table.serialize(serializer)
}

fn transport_schema(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = HttpWorkload::json_schema(generator);
    schema.remove("required");
    if let Some(keys) = schema.get_mut("properties").and_then(|keys| keys.as_object_mut()) {
        OWN_KEYS.iter().for_each(|key| drop(keys.remove(*key)));
    }
    schema
}

/// Reads the table, every default explicit.
pub fn read(table: &TableReader<'_>) -> Result<LlmWorkload, SuiteError> {
    let mut workload: LlmWorkload = table.read()?;
    if let Some(key) = OWN_KEYS.iter().find(|key| table.has(&format!("http.{key}"))) {
        return Err(table
            .error_at(&format!("http.{key}"), format!("`workload.http.{key}` is decided here"))
            .with_help("leave it out: the requests are those of [workload]"));
    }
    if let Some(key) = OWN_FIELDS.iter().find(|key| workload.extra.contains_key(**key)) {
        return Err(table
            .error_at(&format!("extra.{key}"), format!("`{key}` is no further field"))
            .with_help("set it by its key of [workload], or leave it out"));
    }
    check_headers(table, "http.headers", &workload.http.headers)?;
    complete_http2(table, "http.", &mut workload.http)?;
    if workload.http.connections == Connections::Held {
        return Err(table
            .error_at("http.connections", "connections are held by suite web-url alone")
            .with_help("write connections = \"keep-alive\" or \"per-request\""));
    }
    check_prompts(table, &workload)?;
    Ok(workload)
}

fn check_prompts(table: &TableReader<'_>, workload: &LlmWorkload) -> Result<(), SuiteError> {
    let has_file = workload.prompts_file.is_some();
    let least = match workload.input_tokens {
        Length::Fixed(tokens) => tokens,
        Length::Uniform { from, .. } | Length::Lognormal { from, .. } => from,
    };
    let (key, message, help) = match workload {
        LlmWorkload { turns: 2.., .. } if has_file => (
            "turns",
            "the prompts of a file are no conversations",
            "leave out turns, or prompts_file",
        ),
        LlmWorkload { salt: Salt::None, .. } if !has_file => {
            ("salt", "prompts that are made here are salted", "write \"first\" or \"after_prefix\"")
        }
        LlmWorkload { prefix_tokens, .. } if !has_file && *prefix_tokens >= least => (
            "prefix_tokens",
            "the system prompt leaves nothing of input_tokens for a question",
            "write a smaller number here, or a larger one there",
        ),
        LlmWorkload { prefix_tokens: 0, prefixes: 2.., .. } => {
            ("prefixes", "there is no system prompt", "set prefix_tokens, or leave this out")
        }
        _ => return Ok(()),
    };
    Err(table.error_at(key, format!("`workload.{key}`: {message}")).with_help(help))
}

#[cfg(test)]
mod tests {
    use plimsoll_model::suite::Suite;
    use plimsoll_testkit::suites::small_suite;

    use super::*;

    fn suite(set: &[&str]) -> Result<Suite, SuiteError> {
        small_suite(("llm", ""), set, read)
    }

    fn typed(set: &[&str]) -> LlmWorkload {
        suite(set).unwrap().workload.parameters::<LlmWorkload>().clone()
    }

    fn refusal(set: &[&str]) -> String {
        let error = suite(set).unwrap_err();
        format!("{error} | {}", error.help.as_deref().unwrap_or_default())
    }

    #[test]
    fn what_a_suite_says_reads_back_as_written() {
        let set = [
            "workload.model=m",
            "workload.input_tokens=uniform 64..256",
            "workload.output_tokens=7",
            "workload.extra.temperature=0.5",
            "workload.extra.stop=[\"x\"]",
            "workload.http.tls_verify=false",
            "workload.http.headers=[\"Authorization: Bearer env:KEY\"]",
        ];
        let workload = typed(&set);
        assert_eq!(workload.input_tokens, Length::Uniform { from: 64, to: 256 });
        assert_eq!(workload.output_tokens, Length::Fixed(7));
        assert!(!workload.http.tls_verify && workload.http.headers.len() == 1);
        let written = suite(&set).unwrap().to_toml();
        assert!(!written.contains("first_check = true\nrequests"), "{written}");
    }

    #[test]
    fn an_empty_table_is_the_daily_question() {
        assert_eq!(typed(&[]), LlmWorkload::default());
    }

    #[test]
    fn wrong_workloads_are_refused_with_a_next_move() {
        for (set, expected) in [
            ("workload.output_tokens=long", "\"long\", not a number of tokens from 1"),
            ("workload.output_tokens=0", "not a number of tokens from 1"),
            ("workload.input_token=3", "did you mean `input_tokens`?"),
            ("workload.endpoint=chats", "did you mean \"chat\"?"),
            ("workload.http.urls=[\"/\"]", "leave it out: the requests are those of [workload]"),
            ("workload.http.stream=true", "leave it out: the requests are those of [workload]"),
            ("workload.extra.stream=false", "set it by its key of [workload]"),
            ("workload.prefix_tokens=512", "leaves nothing of input_tokens"),
            ("workload.prefixes=2", "there is no system prompt"),
            ("workload.salt=none", "are salted"),
            ("workload.turns=0", "from 1 to 1000"),
            ("workload.http.streams=4", "only HTTP/2 has streams"),
            ("workload.http.connections=held", "held by suite web-url alone"),
        ] {
            assert!(refusal(&[set]).contains(expected), "{set}: {}", refusal(&[set]));
        }
        let both = refusal(&["workload.turns=3", "workload.prompts_file=p.jsonl"]);
        assert!(both.contains("no conversations"), "{both}");
    }

    #[test]
    fn the_schema_names_the_keys_of_the_transport_and_not_those_decided_here() {
        let schema = schemars::schema_for!(LlmWorkload).as_value().to_string();
        for key in ["input_tokens", "turn_tokens", "tls_ca_file", "connect_to"] {
            assert!(schema.contains(key), "{key}");
        }
        assert!(!schema.contains("opened_per_s"));
    }
}
