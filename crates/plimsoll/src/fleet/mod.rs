//! The program's side of a fleet.

#![allow(dead_code, reason = "the verb `agent` and `--agents` call it")]

mod order;

pub(crate) use order::{AgentDial, order_of, plan_of};
