//! The law without a batch: every request as if it were the only one. For checking clients, whose
//! streams then come at different instants and not all at the end of a step.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};

use plimsoll_model::units::Nanos;
use plimsoll_servers::queue::ServiceQueue;

use super::{Counts, First, Token, TokenRequest};

/// All requests by the instant of their next token.
pub(super) struct Alone {
    start: Start,
    step: Nanos,
    due: BinaryHeap<Reverse<Due>>,
    /// Gone, and still in `due`.
    gone: HashSet<u64>,
    counts: Counts,
}

/// When a request has its first token.
enum Start {
    After(Nanos),
    Queue(Box<ServiceQueue>),
}

/// The first fields decide the order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    id: u64,
    number: u32,
    output_tokens: u32,
}

impl Alone {
    pub(super) fn new(first: &First, step: Nanos) -> Self {
        let start = match first {
            First::After(after) => Start::After(*after),
            First::Queue(spec) => Start::Queue(Box::new(ServiceQueue::new(spec))),
        };
        let (due, gone) = (BinaryHeap::new(), HashSet::new());
        Self { start, step, due, gone, counts: Counts::default() }
    }

    pub(super) fn arrive(&mut self, now_ns: u64, id: u64, request: &TokenRequest) {
        let TokenRequest { prompt_tokens, output_tokens, .. } = *request;
        self.counts.prompt_tokens += u64::from(prompt_tokens);
        let at_ns = match &mut self.start {
            Start::After(after) => now_ns + after.0,
            Start::Queue(queue) => queue.arrive(now_ns).completion_ns,
        };
        self.due.push(Reverse(Due { at_ns, id, number: 1, output_tokens }));
    }

    pub(super) const fn has_no_queue(&self) -> bool {
        matches!(self.start, Start::After(_))
    }

    pub(super) fn cancel(&mut self, id: u64) {
        if self.due.iter().any(|Reverse(due)| due.id == id) {
            self.gone.insert(id);
        }
    }

    pub(super) fn next_event_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse(due)| due.at_ns)
    }

    pub(super) fn advance(&mut self, now_ns: u64, give: &mut impl FnMut(Token)) {
        while let Some(mut top) = self.due.peek_mut() {
            let Reverse(due) = &mut *top;
            let Due { at_ns, id, number, output_tokens } = *due;
            if at_ns > now_ns {
                return;
            }
            let is_gone = !self.gone.is_empty() && self.gone.remove(&id);
            if is_gone || number == output_tokens {
                PeekMut::pop(top);
            } else {
                due.at_ns += self.step.0;
                due.number += 1;
            }
            if !is_gone {
                self.counts.generation_tokens += 1;
                give(Token { id, at_ns, number, cached_tokens: 0 });
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        Counts { running: (self.due.len() - self.gone.len()) as u64, ..self.counts }
    }
}
