//! The program's side of many agents: their processes, their cores, and what they plan from.

mod crew;
mod deploy;
mod order;
mod pump;
mod seats;
mod targets;

pub(crate) use crew::{Fleet, Member, Tried, own_program};
pub(crate) use order::{AgentDial, order_of, plan_of};
pub(crate) use seats::AgentSeat;
pub(crate) use targets::Whereabouts;
