//! An answer in progress: its tokens as chunks of an event stream, or as one reply at its end.

use std::io::Write as _;

use plimsoll_servers::web::{Reply, Status};

use super::log::Row;
use super::reply::JSON;
use super::request::{Finish, Kind};
use super::tokens::Answer;
use super::{LlmConfig, UsageStyle};

/// The answer that a request gets.
#[derive(Debug)]
pub(super) struct Answering {
    /// Of the law.
    pub(super) id: u64,
    kind: Kind,
    stream: Option<UsageStyle>,
    answer: Answer,
    output_tokens: u32,
    finish: Finish,
    /// Of every event of a stream, up to the choices.
    prefix: String,
    /// Text that no chunk has had yet; of a reply in one, all of it.
    text: String,
    reasoning: String,
    tokens_in_text: u32,
    /// Chunks that are written and not yet handed to the kernel: when the first was due.
    unsent_since_ns: Option<u64>,
    pub(super) row: Row,
    pub(super) is_finished: bool,
}

/// What becomes an answer.
pub(super) struct Start {
    pub(super) id: u64,
    pub(super) kind: Kind,
    pub(super) stream: Option<UsageStyle>,
    pub(super) answer: Answer,
    pub(super) finish: Finish,
    pub(super) created_s: u64,
    pub(super) output_tokens: u32,
    pub(super) row: Row,
}

impl Answering {
    pub(super) fn new(start: Start, config: &LlmConfig) -> Self {
        let Start { id, kind, stream, answer, finish, created_s, output_tokens, row } = start;
        let (name, object) = match (kind, stream) {
            (Kind::Chat, Some(_)) => ("chatcmpl", "chat.completion.chunk"),
            (Kind::Chat, None) => ("chatcmpl", "chat.completion"),
            (Kind::Completion, _) => ("cmpl", "text_completion"),
        };
        let (number, model) = (row.number, config.model_json());
        let prefix = format!(
            "{{\"id\":\"{name}-{number}\",\"object\":\"{object}\",\"created\":{created_s},\
             \"model\":{model},\"choices\":["
        );
        Self {
            id,
            kind,
            stream: stream.map(|requested| requested.min(config.usage)),
            answer,
            output_tokens,
            finish,
            prefix,
            text: String::new(),
            reasoning: String::new(),
            tokens_in_text: 0,
            unsent_since_ns: None,
            row,
            is_finished: false,
        }
    }

    /// The head of a stream; nothing of a reply in one, whose head comes with it.
    pub(super) fn write_head(&self, config: &LlmConfig, out: &mut Vec<u8>) {
        if self.stream.is_none() {
            return;
        }
        let fields = match config.closes_after_stream {
            true => "cache-control: no-cache\r\nkeep-alive: timeout=5, max=100\r\n",
            false => "cache-control: no-cache\r\n",
        };
        let content_type = "text/event-stream; charset=utf-8";
        Reply { status: Status::Ok, content_type, fields: fields.into(), body: None }
            .write_head(out);
    }

    /// A comment, so that no proxy considers the connection dead.
    pub(super) fn write_ping(&self, out: &mut Vec<u8>) {
        if self.stream.is_some() {
            out.extend_from_slice(b"8\r\n: ping\n\n\r\n");
        }
    }

    pub(super) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Takes the next token, and writes what is to be sent of it.
    pub(super) fn take_token(&mut self, at_ns: u64, config: &LlmConfig, out: &mut Vec<u8>) {
        let Some(word) = self.answer.next() else { return };
        let key = self.key(config);
        let space = if self.row.output_tokens == 0 { "" } else { " " };
        self.row.output_tokens += 1;
        self.tokens_in_text += 1;
        let text = match (key, self.stream) {
            (REASONING, None) => &mut self.reasoning,
            _ => &mut self.text,
        };
        text.push_str(space);
        text.push_str(word);
        let is_last = self.row.output_tokens == self.output_tokens;
        let ends_reasoning = self.row.output_tokens == config.reasoning_tokens;
        let is_full = self.tokens_in_text >= config.tokens_per_chunk || ends_reasoning;
        if self.stream.is_some() && (is_full || is_last) {
            if self.row.chunks == 0 && self.kind == Kind::Chat {
                self.write_choice(
                    "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}",
                    "null",
                    (config, out),
                );
            }
            self.write_chunk(key, (config, out));
            self.row.chunks += 1;
            self.note_due(at_ns);
        }
        if is_last {
            self.end(config, out);
            self.note_due(at_ns);
            self.is_finished = true;
        }
    }

    /// Everything written has been handed to the kernel: how long after it was due.
    pub(super) fn sent(&mut self, now_ns: u64) -> Option<u64> {
        let due_ns = self.unsent_since_ns.take()?;
        if self.row.first_sent_ns == 0 {
            self.row.first_sent_ns = now_ns;
        }
        self.row.last_sent_ns = now_ns;
        Some(now_ns.saturating_sub(due_ns))
    }

    fn note_due(&mut self, at_ns: u64) {
        self.unsent_since_ns.get_or_insert(at_ns);
        if self.row.first_due_ns == 0 {
            self.row.first_due_ns = at_ns;
        }
        self.row.last_due_ns = at_ns;
    }

    /// Where the next token's text stands.
    fn key(&self, config: &LlmConfig) -> &'static str {
        match self.kind {
            Kind::Chat if self.row.output_tokens < config.reasoning_tokens => REASONING,
            Kind::Chat => "\"delta\":{\"content\":\"",
            Kind::Completion => "\"text\":\"",
        }
    }

    fn write_chunk(&mut self, key: &str, (config, out): (&LlmConfig, &mut Vec<u8>)) {
        let text = std::mem::take(&mut self.text);
        let end = if self.kind == Kind::Chat { "\"}" } else { "\"" };
        let choice = [key, &text, end];
        self.event(out, |this, out| {
            out.extend_from_slice(b"{\"index\":0,");
            choice.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
            out.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":null}]");
            this.write_usage_of_chunk(config, out);
        });
        self.text = text;
        self.text.clear();
        self.tokens_in_text = 0;
    }

    fn write_choice(&self, choice: &str, finish: &str, (config, out): (&LlmConfig, &mut Vec<u8>)) {
        self.event(out, |this, out| {
            let _ = write!(
                out,
                "{{\"index\":0,{choice},\"logprobs\":null,\"finish_reason\":{finish}}}]"
            );
            this.write_usage_of_chunk(config, out);
        });
    }

    fn write_usage_of_chunk(&self, config: &LlmConfig, out: &mut Vec<u8>) {
        if self.stream == Some(UsageStyle::Continuous) {
            out.push(b',');
            self.write_usage(config, out);
        }
        out.push(b'}');
    }

    /// An event in a chunk of HTTP's, whose length of four digits is filled in once it is known.
    fn event(&self, out: &mut Vec<u8>, rest: impl FnOnce(&Self, &mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(b"0000\r\ndata: ");
        out.extend_from_slice(self.prefix.as_bytes());
        rest(self, out);
        out.extend_from_slice(b"\n\n");
        put_length(out, start);
        out.extend_from_slice(b"\r\n");
    }

    fn end(&mut self, config: &LlmConfig, out: &mut Vec<u8>) {
        let finish = format!("\"{}\"", self.finish.name());
        let Some(usage) = self.stream else { return self.write_reply(&finish, config, out) };
        let empty = if self.kind == Kind::Chat { "\"delta\":{}" } else { "\"text\":\"\"" };
        self.write_choice(empty, &finish, (config, out));
        if usage > UsageStyle::None {
            self.event(out, |this, out| {
                out.extend_from_slice(b"],");
                this.write_usage(config, out);
                out.push(b'}');
            });
        }
        out.extend_from_slice(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }

    fn write_reply(&self, finish: &str, config: &LlmConfig, out: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(self.prefix.len() + self.text.len() + 256);
        body.extend_from_slice(self.prefix.as_bytes());
        let (text, reasoning) = (&self.text, &self.reasoning);
        let _ = match self.kind {
            Kind::Chat if reasoning.is_empty() => write!(
                body,
                "{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{text}\"}}"
            ),
            Kind::Chat => write!(
                body,
                "{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"reasoning_content\":\
                 \"{reasoning}\",\"content\":\"{text}\"}}"
            ),
            Kind::Completion => write!(body, "{{\"index\":0,\"text\":\"{text}\""),
        };
        let _ = write!(body, ",\"logprobs\":null,\"finish_reason\":{finish}}}]");
        if config.usage > UsageStyle::None {
            body.push(b',');
            self.write_usage(config, &mut body);
        }
        body.push(b'}');
        Reply::new(Status::Ok, JSON, body).write(out);
    }

    fn write_usage(&self, config: &LlmConfig, out: &mut Vec<u8>) {
        let Row { prompt_tokens, output_tokens, cached_tokens, .. } = self.row;
        let total = prompt_tokens + output_tokens;
        let _ = write!(
            out,
            "\"usage\":{{\"prompt_tokens\":{prompt_tokens},\"total_tokens\":{total},\
             \"completion_tokens\":{output_tokens}"
        );
        if config.law.has_prefix_cache() {
            let _ = write!(out, ",\"prompt_tokens_details\":{{\"cached_tokens\":{cached_tokens}}}");
        }
        out.push(b'}');
    }
}

const REASONING: &str = "\"delta\":{\"reasoning_content\":\"";

/// Puts the length of what follows `0000\r\n` at `start` over the zeros.
fn put_length(out: &mut [u8], start: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let length = out.len() - start - 6;
    for (index, shift) in (start..start + 4).zip([12, 8, 4, 0]) {
        out[index] = DIGITS[(length >> shift) & 15];
    }
}
