//! The requests of one worker: their bodies, the conversations that they continue, and which comes
//! next.
//!
//! Without conversations a request is named by its number ([`HttpOp::key`]), and nothing is kept of
//! it. A conversation is named by its place here, and its request is the one under way.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_engine::seam::{ClientSeat, Script, Step, Turn};
use plimsoll_http::site::{Bodies, HttpOp, Request};
use plimsoll_http::wire::request::Method;
use plimsoll_model::assignment::Load;
use plimsoll_model::outcome::OpKind;
use plimsoll_model::suite::Arrivals;

use super::prompts::body::write_escaped;
use super::prompts::{Number, Prompts};
use super::reader::Requests;

/// A conversation that has grown to this begins anew: more than any context holds.
const HISTORY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The requests of one worker.
#[derive(Debug)]
pub(crate) struct WorkerRequests {
    prompts: Arc<Prompts>,
    nonce: u64,
    /// Questions of a conversation; 1 where there are none.
    turns: u32,
    conversations: RefCell<Vec<Conversation>>,
}

/// One client's conversation.
#[derive(Debug, Default)]
struct Conversation {
    /// All its parts, the question under way too.
    history: Vec<u8>,
    /// Number of the request under way.
    index: u64,
    /// Questions asked.
    asked: u32,
    /// The last was answered.
    is_answered: bool,
}

impl WorkerRequests {
    /// Those of a load point.
    pub(crate) fn new(prompts: Arc<Prompts>, nonce: u64, turns: u32) -> Self {
        Self { prompts, nonce, turns, conversations: RefCell::default() }
    }

    /// The requests are turns of conversations.
    fn converses(&self) -> bool {
        self.turns > 1
    }

    /// A place for one more client's conversation.
    pub(crate) fn add_client(&self) -> u64 {
        let mut all = self.conversations.borrow_mut();
        if self.converses() {
            all.push(Conversation::default());
        }
        all.len().saturating_sub(1) as u64
    }

    /// The request of that number, by the client of that place.
    pub(crate) fn op(&self, place: u64, index: u64) -> HttpOp {
        let key = match self.converses() {
            true => {
                self.next_turn(place, index);
                place
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

    /// Goes on with a conversation whose last question was answered, or begins one.
    fn next_turn(&self, place: u64, index: u64) {
        let mut all = self.conversations.borrow_mut();
        let Some(conversation) = all.get_mut(place as usize) else { return };
        let goes_on = conversation.is_answered
            && conversation.asked < self.turns
            && conversation.history.len() < HISTORY_BYTES_MAX;
        if !goes_on {
            conversation.history.clear();
            conversation.asked = 0;
            self.prompts.begin_history(self.number(index), &mut conversation.history);
        }
        conversation.asked += 1;
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
            self.prompts.write_turn(&conversation.history, self.number(conversation.index), out);
        }
    }
}

impl Requests for WorkerRequests {
    fn tokens_asked(&self, key: u64) -> Option<u64> {
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
        if conversation.asked < self.turns {
            let mut text = Vec::with_capacity(answer.len() + 2);
            write_escaped(&answer, &mut text);
            let number = self.number(conversation.index);
            self.prompts.grow_history(&text, number, &mut conversation.history);
        }
    }
}

/// What a client, or a pool of them, asks for next: the request whose number is its turn. Numbers
/// count over all clients and agents, so that no two requests of a load point are alike.
#[derive(Debug)]
pub(crate) struct ChatScript {
    requests: Rc<WorkerRequests>,
    /// Of its conversation.
    place: u64,
    /// Its first number, and the distance of the others.
    first: u64,
    step: u64,
}

impl ChatScript {
    /// Of the client in this seat.
    pub(crate) fn new(requests: Rc<WorkerRequests>, load: &Load, seat: &ClientSeat) -> Self {
        let (first, step) = match load {
            // The turn is a place in the schedule of all.
            Load::Open { arrivals: Arrivals::Shared, .. } => (0, 1),
            _ => (u64::from(seat.client), u64::from(load.clients().max(1))),
        };
        let place = requests.add_client();
        Self { requests, place, first, step }
    }
}

impl Script for ChatScript {
    type Op = HttpOp;

    fn next(&mut self, turn: Turn) -> Step<HttpOp> {
        let index = self.first.wrapping_add(turn.index.wrapping_mul(self.step));
        Step::Issue(self.requests.op(self.place, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offers::Offers;
    use crate::parameters::LlmWorkload;
    use crate::prompts::body::Frame;
    use crate::prompts::fit::Fit;
    use crate::prompts::words::Words;
    use crate::prompts::{Made, Source};

    fn requests(turns: u32) -> WorkerRequests {
        let workload = LlmWorkload { turns, ..LlmWorkload::default() };
        let frame = Frame::new("m", workload.endpoint, Offers::ALL, &workload.extra);
        let source = Source::Made(Made::new(&workload, Fit::UNKNOWN));
        let words = (1, Arc::new(Words::new(1)));
        let prompts = Prompts::new(words, frame, Fit::UNKNOWN, workload.salt, source);
        WorkerRequests::new(Arc::new(prompts), 7, turns)
    }

    fn messages(requests: &WorkerRequests, op: HttpOp) -> Vec<String> {
        let mut body = Vec::new();
        requests.write(op.key, &mut body);
        let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let all = json["messages"].as_array().unwrap();
        all.iter().map(|one| one["content"].as_str().unwrap().to_owned()).collect()
    }

    fn answer(requests: &WorkerRequests, op: HttpOp, text: &str) {
        requests.answered(op.key, text.to_owned());
    }

    #[test]
    fn a_conversation_grows_until_it_has_all_its_turns_and_then_begins_anew() {
        let requests = requests(2);
        let (ann, ben) = (requests.add_client(), requests.add_client());
        let first = requests.op(ann, 0);
        let of_ben = messages(&requests, requests.op(ben, 1));
        let begun = messages(&requests, first);
        assert_eq!(begun.len(), 1);
        assert_ne!(begun, of_ben);
        answer(&requests, first, "so \"it\" is\n");
        let second = requests.op(ann, 2);
        let grown = messages(&requests, second);
        assert_eq!((grown.len(), &grown[..1], &*grown[1]), (3, &begun[..], "so \"it\" is\n"));
        assert_eq!(messages(&requests, second), grown, "sent again it is the same");
        answer(&requests, second, "yes");
        let anew = messages(&requests, requests.op(ann, 4));
        assert!(anew.len() == 1 && anew != begun);
    }

    #[test]
    fn a_question_that_was_not_answered_ends_its_conversation() {
        let requests = requests(3);
        let place = requests.add_client();
        let begun = messages(&requests, requests.op(place, 0));
        let anew = messages(&requests, requests.op(place, 1));
        assert!(anew.len() == 1 && anew != begun);
    }

    #[test]
    fn without_conversations_a_request_is_its_number() {
        let requests = requests(1);
        let place = requests.add_client();
        assert_eq!(requests.op(place, 9).key, 9);
        assert_eq!(requests.tokens_asked(9), Some(128));
        assert!(!requests.keeps_texts());
        answer(&requests, requests.op(place, 9), "ignored");
    }
}
