//! Many agents on the program's side: their processes, their cores, and their plan orders.

mod allocation;
mod deploy;
mod members;
mod order;
mod pump;
mod targets;

pub(crate) use allocation::AgentAllocation;
pub use members::{Fleet, Member, Tried, own_program};
pub(crate) use order::{AgentDial, order_of, plan_of};
pub(crate) use targets::ServerEndpoint;
