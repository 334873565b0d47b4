//! What is learnt about a server before any load: its model, the fields that it accepts, the tokens
//! of a word. A wrong name or a missing key is reported within a second, with the server's own
//! text.

use plimsoll_http::parameters::HttpVersion;
use plimsoll_protocol::net::SetupError;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::offers::Offers;
use super::parameters::LlmWorkload;
use super::prompts::word_sequence::{Fit, PROBE_WORD_COUNTS, Probed};
use super::server_reply::{ServerReply, Streamed};

/// Number of words of the first request.
const FIRST_WORD_COUNT: u32 = 64;
/// Tokens of its answer: enough to see that it comes in chunks.
const FIRST_TOKENS: u32 = 16;
/// Fields that are left out one after the other.
const ATTEMPTS_MAX: u32 = 8;
/// Names of models that a message quotes.
const MODELS_SHOWN: usize = 8;
/// How to run regardless.
const INSIST: &str = "--no-check measures it all the same, with a word taken for a token";

/// Sends requests to the server.
pub(crate) trait Asks {
    /// For the models that it has.
    fn models(&self) -> Result<ServerReply, SetupError>;
    /// For an answer to a body.
    fn post(&self, body: &[u8]) -> Result<ServerReply, SetupError>;
    /// The server cannot be measured, and why.
    fn unusable(&self, why: String) -> SetupError;
}

/// Builds the body of a request from a number of words and of tokens.
pub(crate) trait Trials {
    /// A streamed request.
    fn streamed(&self, model: &str, offers: Offers, trial: Trial) -> Vec<u8>;

    /// One whose answer comes in one document.
    fn plain(&self, model: &str, offers: Offers, trial: Trial) -> Vec<u8> {
        let streamed = self.streamed(model, offers, trial);
        let mut json: Json = serde_json::from_slice(&streamed).unwrap_or_default();
        if let Some(fields) = json.as_object_mut() {
            fields.remove("stream_options");
            fields.insert("stream".to_owned(), json!(false));
        }
        json.to_string().into_bytes()
    }
}

/// A request that finds something out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    /// Its number; no two are alike.
    pub(crate) number: u64,
    /// Words of its prompt.
    pub(crate) word_count: u32,
    /// Tokens of its answer at most.
    pub(crate) output_tokens: u32,
}

/// What was learnt. Agents get it from their controller, and send no such requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Learnt {
    /// Name of the model.
    pub(crate) model: String,
    /// Fields that are sent.
    pub(crate) offers: Offers,
    /// Fields that the server refused.
    pub(crate) refused: Vec<String>,
    /// Words to tokens.
    pub(crate) fit: Fit,
    /// Probes that the fit is of; none where the server counts no tokens.
    pub(crate) probes: u32,
    /// The probe that is furthest from the fit, in tokens.
    pub(crate) furthest_tokens: f64,
    /// Tokens are counted at the end of a stream.
    pub(crate) says_usage: bool,
    /// And with each chunk.
    pub(crate) says_continuous_usage: bool,
    /// The first answer was shorter than it was to be.
    pub(crate) is_cut_short: bool,
    /// Longest prompt and answer together, if the server reports it.
    pub(crate) context_tokens: Option<u64>,
    /// What is spoken.
    pub(crate) http: HttpVersion,
}

impl Learnt {
    /// Without requests: the model that the suite names, and one token a word.
    pub(crate) fn nothing(workload: &LlmWorkload) -> Self {
        Self {
            model: workload.model.clone(),
            offers: Offers::from_workload(workload),
            refused: Vec::new(),
            fit: Fit::UNKNOWN,
            probes: 0,
            furthest_tokens: 0.0,
            says_usage: true,
            says_continuous_usage: false,
            is_cut_short: false,
            context_tokens: None,
            http: workload.http.http,
        }
    }

    /// Combines with another server's: requests are the same for all.
    pub(crate) fn and(self, other: Self, server: &dyn Asks) -> Result<Self, SetupError> {
        if self.model != other.model {
            return Err(server.unusable(format!(
                "its model is {}, and that of the target before it {}; run them one after the other",
                other.model, self.model
            )));
        }
        let mut refused = self.refused;
        for name in other.refused {
            if !refused.contains(&name) {
                refused.push(name);
            }
        }
        Ok(Self {
            offers: self.offers.and(other.offers),
            refused,
            says_usage: self.says_usage && other.says_usage,
            says_continuous_usage: self.says_continuous_usage && other.says_continuous_usage,
            is_cut_short: self.is_cut_short || other.is_cut_short,
            ..self
        })
    }
}

/// Learns everything about a server.
pub(crate) fn learn(
    workload: &LlmWorkload,
    server: &dyn Asks,
    trials: &dyn Trials,
) -> Result<Learnt, SetupError> {
    let models = server.models()?;
    let mut learnt =
        Learnt { model: model(workload, server, &models)?, ..Learnt::nothing(workload) };
    learnt.context_tokens = context_tokens(&models, &learnt.model);
    first_answer(&mut learnt, (workload, &models), server, trials)?;
    let probes = probe(&mut learnt, server, trials)?;
    if let Some(fit) = Fit::through(&probes) {
        learnt.fit = fit;
        learnt.furthest_tokens = fit.furthest_tokens(&probes);
        learnt.probes = probes.len() as u32;
    }
    check_context(workload, &learnt, server)?;
    Ok(learnt)
}

/// The model that the suite names, or the only one there is.
fn model(
    workload: &LlmWorkload,
    server: &dyn Asks,
    models: &ServerReply,
) -> Result<String, SetupError> {
    if !workload.model.is_empty() {
        return Ok(workload.model.clone());
    }
    let names = names(models);
    match &names[..] {
        [only] => Ok(only.clone()),
        [] => Err(server.unusable(format!(
            "no model is named, and the list of the server's models (GET models) ended with {}; \
             write --model NAME, and see whether the URL is that of an OpenAI-compatible server: \
             http://HOST:PORT/v1",
            models.outcome()
        ))),
        _ => Err(server.unusable(format!(
            "the server has several models; write --model with one of {}",
            listed(&names)
        ))),
    }
}

fn names(models: &ServerReply) -> Vec<String> {
    let all = models.json();
    let all = all["data"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect()
}

fn listed(names: &[String]) -> String {
    let mut shown = names.iter().take(MODELS_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MODELS_SHOWN {
        shown.push_str(", …");
    }
    shown
}

/// As vLLM and SGLang report it for a model, or llama.cpp for a slot.
fn context_tokens(models: &ServerReply, model: &str) -> Option<u64> {
    let all = models.json();
    let of = all["data"].as_array()?.iter().find(|one| one["id"] == model)?;
    of["max_model_len"].as_u64().or(of["meta"]["n_ctx"].as_u64()).filter(|tokens| *tokens > 0)
}

/// One real streamed request, without the fields that the server refuses.
fn first_answer(
    learnt: &mut Learnt,
    (workload, models): (&LlmWorkload, &ServerReply),
    server: &dyn Asks,
    trials: &dyn Trials,
) -> Result<(), SetupError> {
    let output_tokens = FIRST_TOKENS.min(workload.output_tokens.most());
    for attempt in 0..ATTEMPTS_MAX {
        let trial =
            Trial { number: u64::from(attempt), word_count: FIRST_WORD_COUNT, output_tokens };
        let body = trials.streamed(&learnt.model, learnt.offers, trial);
        let reply = server.post(&body)?;
        if reply.is_good() {
            return look_at(learnt, &reply, output_tokens, server);
        }
        let message = reply.message();
        let refused =
            reply.refuses_fields().then(|| learnt.offers.without_refused(&message, workload));
        let Some((offers, name)) = refused.flatten() else {
            return Err(server.unusable(complaint(&reply, &message, models)));
        };
        learnt.offers = offers;
        learnt.refused.push(name.to_owned());
    }
    Err(server.unusable(format!(
        "the server refuses the first request whatever is left out of it: {}",
        learnt.refused.join(", ")
    )))
}

fn look_at(
    learnt: &mut Learnt,
    reply: &ServerReply,
    output_tokens: u32,
    server: &dyn Asks,
) -> Result<(), SetupError> {
    let Some(stream) = reply.streamed() else {
        return Err(server.unusable(format!(
            "the answer to the first request is no stream of events, though \"stream\": true was \
             asked for; it begins with {:?}; see whether what is between streams answers",
            reply.beginning()
        )));
    };
    let Streamed { error, has_output, usage, is_continuous } = stream;
    if let Some(error) = error {
        return Err(server.unusable(format!(
            "the first answer has an error in its stream: {error}; see what the server's log says"
        )));
    }
    if !has_output {
        return Err(server.unusable(
            "the first answer is a stream without any text; see whether the model is one that \
             generates text, and with --set workload.endpoint=completions whether it has a template \
             for chats"
                .to_owned(),
        ));
    }
    learnt.says_usage = usage.is_some();
    learnt.says_continuous_usage = is_continuous;
    learnt.is_cut_short = usage.is_some_and(|tokens| tokens < u64::from(output_tokens));
    Ok(())
}

/// Numbers of words of the probes that fit into the server's context, and their tokens.
fn probe(
    learnt: &mut Learnt,
    server: &dyn Asks,
    trials: &dyn Trials,
) -> Result<Vec<Probed>, SetupError> {
    let mut probes = Vec::new();
    for (number, word_count) in (u64::from(ATTEMPTS_MAX)..).zip(PROBE_WORD_COUNTS) {
        let trial = Trial { number, word_count, output_tokens: 1 };
        let reply = server.post(&trials.plain(&learnt.model, learnt.offers, trial))?;
        let tokens = reply.json()["usage"]["prompt_tokens"].as_u64();
        let tokens = tokens.and_then(|tokens| u32::try_from(tokens).ok());
        match tokens.filter(|_| reply.is_good()) {
            Some(tokens) => probes.push(Probed { word_count, tokens }),
            // Longer than the context, or the server counts no tokens.
            None => break,
        }
    }
    Ok(probes)
}

fn check_context(
    workload: &LlmWorkload,
    learnt: &Learnt,
    server: &dyn Asks,
) -> Result<(), SetupError> {
    let Some(context) = learnt.context_tokens.filter(|_| workload.prompts_file.is_none()) else {
        return Ok(());
    };
    let (input, output) = (workload.input_tokens.most(), workload.output_tokens.most());
    let later = u64::from(workload.turns - 1)
        * (u64::from(workload.turn_tokens.most()) + u64::from(output));
    let needed = u64::from(input) + u64::from(output) + later;
    if needed <= context {
        return Ok(());
    }
    let conversation_note = if later > 0 { " at the end of a conversation" } else { "" };
    Err(server.unusable(format!(
        "{} has a context of {context} tokens, and {needed} are asked for{conversation_note}: {input} in, \
         {output} out; write --input-tokens and --output-tokens with smaller numbers",
        learnt.model
    )))
}

/// Why the first request was refused, and what to do.
fn complaint(reply: &ServerReply, message: &str, models: &ServerReply) -> String {
    let lower = message.to_ascii_lowercase();
    let names = names(models);
    let model_advice = match &names[..] {
        [] => "write --model with the name that the server was started with".to_owned(),
        names => format!("write --model with one of {}", listed(names)),
    };
    let advice = match reply.status() {
        Some(401 | 403) => {
            "the server wants a key: write --api-key env:VARIABLE or --api-key @FILE"
        }
        Some(400 | 404 | 422) if lower.contains("model") && !lower.contains("context") => {
            &model_advice
        }
        Some(404 | 405) => {
            "see whether the URL is that of an OpenAI-compatible server: http://HOST:PORT/v1"
        }
        Some(400 | 413 | 422) if lower.contains("context") || lower.contains("exceed") => {
            "the server's context is too small for 64 words; raise it"
        }
        Some(400 | 422) => {
            "see what it says of the request; --set workload.ignore_eos=off and workload.extra \
             change it"
        }
        Some(429) => "the server limits how often one may ask: lift that for this host",
        Some(503) => "the server is not ready: wait until its model is loaded",
        Some(500..) => "the server fails before there is any load: see what its log says",
        _ => "see what the server's log says",
    };
    let quoted = if message.is_empty() { String::new() } else { format!(", saying {message:?}") };
    format!("the first request ended with {}{quoted}; {advice}; {INSIST}", reply.outcome())
}

#[cfg(test)]
mod tests;
