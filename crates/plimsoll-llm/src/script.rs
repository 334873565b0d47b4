//! What a client asks for next: the request whose number is its turn. Numbers count over all
//! clients and agents, so that no two requests of a load point are alike.

use std::rc::Rc;

use plimsoll_engine::seam::{ClientSeat, Script, Step, Turn};
use plimsoll_http::site::HttpOp;
use plimsoll_model::assignment::Load;
use plimsoll_model::suite::Arrivals;

use super::requests::WorkerRequests;

/// Script of a client, or of a pool of them.
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
