//! From a suite and its targets to a workload, with what was learnt about the servers.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::pacer::Recorded;
use plimsoll_http::headers::{HEADER_FACT, Header};
use plimsoll_http::look::reach;
use plimsoll_http::transport::{TlsLoad, check_targets};
use plimsoll_http::version::{Spoken, check_streams, peer_fact};
use plimsoll_model::disclosure::Setting;
use plimsoll_model::method::Practice;
use plimsoll_model::suite::{Arrivals, LoadSpec, Suite};
use plimsoll_protocol::{Content, LoadFiles, Plan, PlanError, PlanRequest, Planner};

use super::endpoint::{Server, site};
use super::learn::{Learnt, Trial, Trials, learn};
use super::lengths::Length;
use super::offers::Offers;
use super::parameters::{LlmWorkload, Salt};
use super::prompts::body::Frame;
use super::prompts::file::UserPrompts;
use super::prompts::trace::{self, Trace};
use super::prompts::word_sequence::{Fit, WordSequence};
use super::prompts::{FileError, Made, Number, Prompts, Source};
use super::requests::LlmLoad;

/// Suite whose load is recorded.
const TRACE_SUITE: &str = "llm-trace";

/// How recorded loads are replayed.
pub(crate) const LOAD_FILES: LoadFiles = LoadFiles {
    belong_to: "suite llm-trace and to language model suites with an open load",
    fit: is_shared_schedule,
    read: |reader, name| Ok(Arc::new(trace::read(reader, name).map_err(PlanError::own)?)),
    due_times,
};

fn is_shared_schedule(suite: &Suite) -> bool {
    matches!(suite.load, LoadSpec::Open { arrivals: Arrivals::Shared, .. })
}

fn due_times(content: &Content) -> Option<Recorded> {
    let trace = Arc::clone(content).downcast::<Trace>().ok()?;
    Recorded::new(trace.rows.iter().map(|row| row.due).collect::<Vec<_>>())
}

/// Makes the workload of a run.
pub(crate) fn plan(request: &PlanRequest<'_>) -> Result<Plan, PlanError> {
    let workload = request.suite.workload.parameters::<LlmWorkload>();
    let secure = check_targets(request.targets)?;
    check_load(request, workload)?;
    let received: Option<Learnt> =
        request.learnt.map(serde_json::from_str).transpose().map_err(PlanError::own)?;
    let decided = received.as_ref().map(|received| received.http);
    let spoken = Spoken::new(&workload.http, secure, request, decided)?;
    let draft =
        Draft { request, workload, word_sequence: Arc::new(WordSequence::new(request.seed)) };
    // A file that cannot be used is reported before any request.
    let file = draft.user_prompts()?;
    let mut facts = Vec::new();
    let learnt = draft.learnt(received, &spoken, &mut facts)?;
    let learnt = Learnt { http: spoken.version(), ..learnt };
    facts.extend(draft.facts(&learnt, file.as_deref()));
    let Spoken { h2, tls, facts: of_version } = spoken;
    facts.extend(of_version);
    let recorded = request.loadfile.and_then(|file| due_times(&file.content));
    let prompts = draft.prompts(&learnt, draft.source(&learnt, file));
    let site = |url| site(&workload.http, url, workload.endpoint, h2).map(Arc::new);
    let sites = request.targets.iter().map(|target| site(&target.url));
    let load = LlmLoad {
        sites: sites.collect::<Result<_, _>>()?,
        tls,
        h2,
        prompts: Arc::new(prompts),
        exchanges: workload.turns,
        recorded,
    };
    let fixed = Plan::fixed(Arc::new(load), practices(workload), facts);
    let learnt = serde_json::to_string(&learnt).map_err(PlanError::own)?;
    Ok(Plan { learnt: Some(learnt), ..fixed })
}

fn check_load(request: &PlanRequest<'_>, workload: &LlmWorkload) -> Result<(), PlanError> {
    let suite = request.suite;
    let reason = match &suite.load {
        LoadSpec::Open { .. } if workload.turns > 1 => {
            "a conversation waits for its answers: it goes with load.mode = \"closed\""
        }
        load if load.is_sessions() => {
            "its requests arrive, not sessions; set load.arrivals to \"shared\""
        }
        _ if suite.name == TRACE_SUITE && request.loadfile.is_none() => {
            return Err(PlanError::own(NoTrace));
        }
        _ => return Ok(()),
    };
    Err(PlanError::Unfit { suite: suite.name.clone(), reason: reason.to_owned() })
}

/// There is nothing to replay.
#[derive(Debug, thiserror::Error)]
#[error(
    "{TRACE_SUITE} replays a recorded load: write --trace FILE (JSON lines of Mooncake, CSV of Azure \
     or BurstGPT)"
)]
struct NoTrace;

/// A plan in the making.
struct Draft<'a> {
    request: &'a PlanRequest<'a>,
    workload: &'a LlmWorkload,
    word_sequence: Arc<WordSequence>,
}

impl Draft<'_> {
    /// What the servers report, or have reported to the controller.
    fn learnt(
        &self,
        received: Option<Learnt>,
        spoken: &Spoken,
        facts: &mut Vec<Setting>,
    ) -> Result<Learnt, PlanError> {
        let Self { request, workload, .. } = *self;
        match (request.planner, received) {
            (Planner::Agent, Some(received)) => {
                reach(request)?;
                Ok(received)
            }
            (Planner::Controller, _) if workload.first_check => self.ask_all(spoken, facts),
            _ => Ok(Learnt::nothing(workload)),
        }
    }

    /// Learns from every server. Requests are the same for all: without what one of them refuses.
    fn ask_all(&self, spoken: &Spoken, facts: &mut Vec<Setting>) -> Result<Learnt, PlanError> {
        let Self { request, workload, .. } = *self;
        let tls: Vec<_> = spoken.tls.iter().flat_map(TlsLoad::sites).collect();
        let mut agreed: Option<Learnt> = None;
        for (target, at) in request.targets.iter().zip(0..) {
            let server = Server {
                http: &workload.http,
                target,
                tls: tls.get(at).cloned(),
                endpoint: workload.endpoint,
                timeout: Duration::from_nanos(request.suite.op_timeout.0),
                dial: request.dial,
                h2: spoken.h2,
                peer: Cell::default(),
            };
            let one = learn(workload, &server, self)?;
            if let (Some(peer), Some(own)) = (server.peer.get(), spoken.h2) {
                facts.push(peer_fact(peer));
                check_streams(&target.url, peer, own)?;
            }
            agreed = Some(match agreed {
                None => one,
                Some(first) => first.and(one, &server)?,
            });
        }
        agreed.ok_or(PlanError::NoTarget)
    }

    fn source(&self, learnt: &Learnt, file: Option<Arc<UserPrompts>>) -> Source {
        let workload = self.workload;
        if let Some(file) = self.request.loadfile
            && let Ok(trace) = Arc::clone(&file.content).downcast::<Trace>()
        {
            return Source::Trace(trace);
        }
        match file {
            Some(prompts) => Source::File { prompts, output: workload.output_tokens },
            None => Source::Made(Made::new(workload, learnt.fit)),
        }
    }

    /// The prompts of the user's file, where there is one that is sent.
    fn user_prompts(&self) -> Result<Option<Arc<UserPrompts>>, PlanError> {
        let workload = self.workload;
        let file = workload.prompts_file.as_ref().filter(|_| self.request.loadfile.is_none());
        let Some(file) = file else { return Ok(None) };
        let unread = |reason: String| {
            let file = format!("cannot read the prompts from {file}");
            PlanError::own(FileError { file, location: String::new(), reason })
        };
        let bytes = self.request.files.read(Path::new(file));
        let bytes = bytes.map_err(|e| unread(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| unread("it is not text".to_owned()))?;
        let prompts = UserPrompts::read(&text, file, workload.endpoint, workload.salt);
        Ok(Some(Arc::new(prompts.map_err(PlanError::own)?)))
    }

    fn prompts(&self, learnt: &Learnt, source: Source) -> Prompts {
        let workload = self.workload;
        let frame = Frame::new(&learnt.model, workload.endpoint, learnt.offers, &workload.extra);
        let word_source = (self.request.seed, self.word_sequence.clone());
        Prompts::new(word_source, frame, learnt.fit, workload.salt, source)
    }

    /// The facts for the disclosure.
    fn facts(&self, learnt: &Learnt, file: Option<&UserPrompts>) -> Vec<Setting> {
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: String| facts.push(Setting::new(name, value));
        fact("model", learnt.model.clone());
        fact("endpoint", self.workload.endpoint.path().to_owned());
        for header in self.workload.http.headers.iter().filter_map(|field| Header::read(field)) {
            fact(HEADER_FACT, header.shown());
        }
        fact("prompts", self.prompts_fact(file));
        if let Some(recorded) = self.request.loadfile.and_then(|file| due_times(&file.content)) {
            fact("recorded load", self.recorded_fact(&recorded));
        }
        fact("tokens of a prompt", fit_fact(learnt));
        fact("salt", salt_fact(self.workload).to_owned());
        let of_answers = match (learnt.says_usage, learnt.says_continuous_usage) {
            (true, true) => "counted by the server with each chunk and at the end",
            (true, false) => "counted by the server at the end of each answer",
            (false, _) => "not counted by the server: only chunks and characters are",
        };
        fact("tokens of an answer", of_answers.to_owned());
        if !learnt.refused.is_empty() {
            fact("fields that the server refuses", learnt.refused.join(", "));
        }
        if learnt.is_cut_short {
            let why = "the first was, though ignore_eos and min_tokens were sent as far as taken";
            fact("answers shorter than asked for", why.to_owned());
        }
        facts
    }

    fn recorded_fact(&self, recorded: &Recorded) -> String {
        let rate = recorded.rate();
        let speed = self.request.highest_ops_per_s.map_or(1.0, |highest| highest / rate);
        format!(
            "{rate:.3} requests/s on average, over {}; its times, divided by {speed:.3} at the \
             highest load point; it begins anew after its end",
            recorded.length()
        )
    }

    fn prompts_fact(&self, prompts: Option<&UserPrompts>) -> String {
        let workload = self.workload;
        if let Some(file) = self.request.loadfile {
            let trace = Arc::clone(&file.content).downcast::<Trace>();
            let (requests, failed, blocks) = trace.map_or((0, 0, false), |trace| {
                (trace.rows.len(), trace.failed_rows, trace.has_blocks())
            });
            let shared = if blocks { "; blocks of 512 tokens are shared as recorded" } else { "" };
            return format!(
                "made; lengths of {} ({requests} requests; {failed} failed calls left out){shared}",
                file.path.display()
            );
        }
        if let (Some(file), Some(prompts)) = (&workload.prompts_file, prompts) {
            return prompts.fact(file);
        }
        let LlmWorkload {
            input_tokens,
            prefix_tokens,
            prefixes,
            turns: exchanges,
            turn_tokens: message_tokens,
            ..
        } = workload;
        let mut made = format!("made of words; {input_tokens} tokens");
        if *prefix_tokens > 0 {
            made.push_str(&format!(", {prefix_tokens} of a system prompt, one of {prefixes}"));
        }
        if *exchanges > 1 {
            made.push_str(&format!(
                "; conversations of {exchanges}, then {message_tokens} tokens each"
            ));
        }
        made
    }
}

fn fit_fact(learnt: &Learnt) -> String {
    let Fit { base_tokens, tokens_a_word } = learnt.fit;
    match learnt.probes {
        0 => "not counted by the server: a word is taken for a token".to_owned(),
        probes => format!(
            "{base_tokens:.1} + {tokens_a_word:.3} a word, of {probes} probes; the furthest is \
             {:.1} tokens from that",
            learnt.furthest_tokens
        ),
    }
}

const fn salt_fact(workload: &LlmWorkload) -> &'static str {
    match workload.salt {
        Salt::First => "16 hexadecimal digits before everything: no prompt begins like another",
        Salt::AfterPrefix => "16 hexadecimal digits after the system prompt, which is shared",
        Salt::None => "none: prompts are sent as they are in the file",
    }
}

/// Practices that methods mention and no key of a suite sets.
fn practices(workload: &LlmWorkload) -> Vec<Practice> {
    let position = match workload.salt {
        Salt::First => "before everything",
        Salt::AfterPrefix => "between system prompt and question",
        Salt::None => "none",
    };
    vec![
        Practice::new("generator.token_counts", "the server's own (usage)"),
        Practice::new("generator.accuracy", "not judged"),
        Practice::new("generator.salt", position),
        Practice::new("generator.streaming", "yes"),
    ]
}

impl Trials for Draft<'_> {
    fn streamed(&self, model: &str, offers: Offers, requested: Trial) -> Vec<u8> {
        let workload = self.workload;
        let shared = u64::from(workload.prefix_tokens) * u64::from(requested.word_count)
            / u64::from(workload.input_tokens.most().max(1));
        let trial = LlmWorkload {
            input_tokens: Length::Fixed(requested.word_count),
            output_tokens: Length::Fixed(requested.output_tokens),
            prefix_tokens: shared as u32,
            ..workload.clone()
        };
        let frame = Frame::new(model, workload.endpoint, offers, &workload.extra);
        // Words are counted: each is a token here.
        let source = Source::Made(Made::new(&trial, Fit::UNKNOWN));
        let word_source = (self.request.seed, self.word_sequence.clone());
        let salt = if workload.salt == Salt::None { Salt::First } else { workload.salt };
        let prompts = Prompts::new(word_source, frame, Fit::UNKNOWN, salt, source);
        let nonce = self.request.dial.caller().nonce;
        let mut body = Vec::new();
        prompts.write(Number { nonce, index: requested.number }, &mut body);
        body
    }
}
