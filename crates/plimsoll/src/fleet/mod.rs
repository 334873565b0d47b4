//! The program's side of many agents: their processes, their cores, and what they plan from.

mod crew;
mod deploy;
mod order;
mod pump;
mod seats;

pub(crate) use crew::{Fleet, Member, Tried};
pub(crate) use order::{AgentDial, order_of, plan_of};
pub(crate) use seats::AgentSeat;
