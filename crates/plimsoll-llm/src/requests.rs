//! The workload as the engine runs it: the requests of one worker, their bodies, the conversations that they continue, and which comes
//! next.
//!
//! Without conversations a request is named by its number ([`HttpOp::key`]), and nothing is kept of
//! it. A conversation is identified by its slot here, and its request is the current one.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::interface::{ClientContext, Script, ScriptContext, Step};
use plimsoll_engine::pacer::Recorded;
use plimsoll_engine::worker::WorkerContext;
use plimsoll_engine::workload::Workload;
use plimsoll_http::h2::windows::H2Settings;
use plimsoll_http::site::{Bodies, HttpOp, Request, Site, WorkerSite};
use plimsoll_http::transport::TlsLoad;
use plimsoll_http::wire::request::Method;
use plimsoll_http::workload::Transport;
use plimsoll_model::assignment::Load;
use plimsoll_model::outcome::{OpKind, OpNames};
use plimsoll_model::suite::Arrivals;

use super::prompts::body::write_escaped;
use super::prompts::{Number, Prompts};
use super::reader::{AnswerReader, Requests};

/// A conversation that has grown to this begins anew: more than any context holds.
const HISTORY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The requests of one worker.
#[derive(Debug)]
pub(crate) struct WorkerRequests {
    prompts: Arc<Prompts>,
    nonce: u64,
    /// Questions of a conversation; 1 where there are none.
    exchanges: u32,
    conversations: RefCell<Vec<Conversation>>,
}

/// One client's conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// All its parts, including the current question.
    history: Vec<u8>,
    /// Number of the current request.
    index: u64,
    /// Questions asked.
    questions: u32,
    /// The last was answered.
    is_answered: bool,
}

impl WorkerRequests {
    /// Those of a load point.
    pub(crate) fn new(prompts: Arc<Prompts>, nonce: u64, exchanges: u32) -> Self {
        Self { prompts, nonce, exchanges, conversations: RefCell::default() }
    }

    /// The requests are exchanges of conversations.
    fn converses(&self) -> bool {
        self.exchanges > 1
    }

    /// Adds a slot for one more client's conversation.
    pub(crate) fn add_client(&self) -> u64 {
        let mut all = self.conversations.borrow_mut();
        if self.converses() {
            all.push(Conversation::default());
        }
        all.len().saturating_sub(1) as u64
    }

    /// The request of that number, by the client of that slot.
    pub(crate) fn op(&self, slot: u64, index: u64) -> HttpOp {
        let key = match self.converses() {
            true => {
                self.advance_conversation(slot, index);
                slot
            }
            false => index,
        };
        HttpOp {
            kind: OpKind(0),
            request: Request::Url(0),
            method: Method::POST,
            verify: false,
            key,
        }
    }

    /// Continues a conversation whose last question was answered, or begins one.
    fn advance_conversation(&self, slot: u64, index: u64) {
        let mut all = self.conversations.borrow_mut();
        let Some(conversation) = all.get_mut(slot as usize) else { return };
        let goes_on = conversation.is_answered
            && conversation.questions < self.exchanges
            && conversation.history.len() < HISTORY_BYTES_MAX;
        if !goes_on {
            conversation.history.clear();
            conversation.questions = 0;
            self.prompts.begin_history(self.number(index), &mut conversation.history);
        }
        conversation.questions += 1;
        conversation.index = index;
        conversation.is_answered = false;
    }

    const fn number(&self, index: u64) -> Number {
        Number { nonce: self.nonce, index }
    }

    /// Number of the request that a key names.
    fn index_of(&self, key: u64) -> u64 {
        match self.converses() {
            true => self.conversations.borrow().get(key as usize).map_or(0, |one| one.index),
            false => key,
        }
    }
}

impl Bodies for WorkerRequests {
    fn write(&self, key: u64, out: &mut Vec<u8>) {
        if !self.converses() {
            return self.prompts.write(self.number(key), out);
        }
        let all = self.conversations.borrow();
        if let Some(conversation) = all.get(key as usize) {
            self.prompts.write_exchange(
                &conversation.history,
                self.number(conversation.index),
                out,
            );
        }
    }
}

impl Requests for WorkerRequests {
    fn tokens_requested(&self, key: u64) -> Option<u64> {
        Some(u64::from(self.prompts.output_tokens(self.index_of(key))))
    }

    fn keeps_texts(&self) -> bool {
        self.converses()
    }

    fn answered(&self, key: u64, answer: String) {
        if !self.converses() {
            return;
        }
        let mut all = self.conversations.borrow_mut();
        let Some(conversation) = all.get_mut(key as usize) else { return };
        conversation.is_answered = true;
        if conversation.questions < self.exchanges {
            let mut text = Vec::with_capacity(answer.len() + 2);
            write_escaped(&answer, &mut text);
            let number = self.number(conversation.index);
            self.prompts.grow_history(&text, number, &mut conversation.history);
        }
    }
}

/// What a client, or a pool of them, requests next, by number. Numbers count over all clients and
/// agents, so that no two requests of a load point are alike.
#[derive(Debug)]
pub(crate) struct ChatScript {
    requests: Rc<WorkerRequests>,
    /// Of its conversation.
    slot: u64,
    /// Its first number, and the distance of the others.
    first: u64,
    step: u64,
}

impl ChatScript {
    /// Of the client of this context.
    pub(crate) fn new(requests: Rc<WorkerRequests>, load: &Load, context: &ClientContext) -> Self {
        let (first, step) = match load {
            // The index is one in the schedule of all.
            Load::Open { arrivals: Arrivals::Shared, .. } => (0, 1),
            _ => (u64::from(context.client), u64::from(load.clients().max(1))),
        };
        let slot = requests.add_client();
        Self { requests, slot, first, step }
    }
}

impl Script for ChatScript {
    type Op = HttpOp;

    fn next(&mut self, context: ScriptContext) -> Step<HttpOp> {
        let index = self.first.wrapping_add(context.index.wrapping_mul(self.step));
        Step::Issue(self.requests.op(self.slot, index))
    }
}

/// The one kind of op.
pub(crate) const OP: &str = "chat";

/// Everything the clients of a load point share.
#[derive(Debug)]
pub(crate) struct LlmLoad {
    /// One per target.
    pub(crate) sites: Vec<Arc<Site>>,
    /// For `https` targets.
    pub(crate) tls: Option<TlsLoad>,
    /// Of HTTP/2, where that is spoken.
    pub(crate) h2: Option<H2Settings>,
    /// The content of the requests.
    pub(crate) prompts: Arc<Prompts>,
    /// Questions of a conversation.
    pub(crate) exchanges: u32,
    /// Due times of a recorded load.
    pub(crate) recorded: Option<Recorded>,
}

impl Workload for LlmLoad {
    fn op_names(&self) -> OpNames {
        OpNames(vec![OP.to_owned()])
    }

    fn recorded(&self) -> Option<Recorded> {
        self.recorded.clone()
    }

    fn clients_per_session(&self) -> u32 {
        self.h2.map_or(1, |settings| settings.streams)
    }

    fn run_worker(&self, context: WorkerContext<'_>) {
        let nonce = context.assignment.nonce;
        let requests = WorkerRequests::new(self.prompts.clone(), nonce, self.exchanges);
        let requests = Rc::new(requests);
        let site = |site: &Arc<Site>| WorkerSite::with_bodies(site.clone(), requests.clone());
        let load = &context.assignment.load;
        let transport = Transport { sites: &self.sites, tls: self.tls.as_ref(), h2: self.h2 };
        let reader = |_: &_| AnswerReader::new(requests.clone());
        transport.drive(context, site, reader, |c| ChatScript::new(requests.clone(), load, c));
    }
}

#[cfg(test)]
mod tests;
